#!/usr/bin/env python3
"""Compares PostgreSQL with SQLite, and calls between nodes with calls in one node: bench.py BINARY

Run it by `tests/postgres/run -- tests/cluster/bench.py BINARY [SESSIONS]`. With SESSIONS, it also creates and prompts so many sessions at
three nodes, and compares the first with the last ones. All figures are from one run on one machine; compare them with each other.
"""
import json, os, statistics, subprocess, sys, threading, time

sys.dont_write_bytecode = True
from chaos import TOKEN, Node, psql, wait, workplace

PROMPTS = 300
PARALLEL = 32
# A node runs 64 turns at once.
ABANDONED = 60


class Client:
    """One connection to a node."""

    def __init__(self, node):
        self.connection = node.connect(120)

    def request(self, method, path, body=None, **headers):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers})
        response = self.connection.getresponse()
        answer = json.loads(response.read() or b"null")
        assert response.status in (200, 201, 202), answer
        return answer

    def session(self, cwd):
        return self.request("POST", "/v1/sessions", {"cwd": str(cwd)})["sessionId"]

    def prompt(self, session, **headers):
        return self.request("POST", f"/v1/sessions/{session}/prompt", {"prompt": [{"type": "text", "text": "go"}]}, **headers)


def prompts(client, session):
    """The median duration of a prompt, in ms."""
    times = []
    for _ in range(PROMPTS):
        began = time.perf_counter()
        client.prompt(session)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def turns_per_second(node, cwd):
    clients = [Client(node) for _ in range(PARALLEL)]
    sessions = [client.session(cwd) for client in clients]

    def work(client, session):
        for _ in range(30):
            client.prompt(session)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(clients, sessions)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 30 * PARALLEL / (time.perf_counter() - began)


def follower_delays(owner, other, cwd):
    """The delays until a reader at another node has received an event, in ms: median and 95th percentile."""
    client = Client(owner)
    session = client.session(cwd)
    connection, delays = other.connect(60), []
    connection.request("GET", f"/v1/sessions/{session}/events", headers={"Authorization": f"Bearer {TOKEN}"})
    response, live = connection.getresponse(), False
    thread = threading.Thread(target=client.prompt, args=(session,))
    while line := response.readline():
        now = 1000 * time.time()
        if line.startswith(b"event: synced"):
            live = True
            thread.start()
        elif live and line.startswith(b"data: ") and b'"seq"' in line:
            event = json.loads(line[6:])
            delays.append(now - event["atMs"])
            if event["body"]["type"] == "turn.completed":
                break
    thread.join()
    delays.sort()
    return statistics.median(delays), delays[int(0.95 * len(delays))]


def take_over(owner, other, cwd, url):
    """The time from the end of a lease until the open turns of the node's sessions are ended, in ms."""
    client = Client(owner)
    Client(other).session(cwd)
    sessions = [client.session(cwd) for _ in range(ABANDONED)]
    for session in sessions:
        client.prompt(session, Prefer="respond-async")
    owner.process.kill()
    owner.process.wait()
    count = "SELECT count(*) FROM sessions WHERE turn IS NOT NULL"
    read = lambda: int(subprocess.run(["psql", "-qAtX", url, "-c", count], check=True, capture_output=True, text=True).stdout)
    open_turns = read()
    # The other node renews its own lease, and looks at the others, at most 5 s later.
    psql(url, "UPDATE nodes SET lease_until = clock_timestamp() + interval '7 s' WHERE name = 'node-1'")
    psql(url, "UPDATE nodes SET lease_until = clock_timestamp() + interval '20 s' WHERE name <> 'node-1'")
    began = time.perf_counter()
    wait(lambda: read() == 0, 60, "the end of the turns")
    return open_turns, 1000 * (time.perf_counter() - began) - 7000


def many(nodes, cwd, url, count):
    """Creates and prompts sessions. Returns the durations in ms of the first and the last tenth, of pages, and the share of HOT updates."""
    creations, turns, lock, left = [], [], threading.Lock(), list(range(count))

    def work(node):
        client = Client(node)
        while True:
            with lock:
                if not left:
                    return
                left.pop()
            began = time.perf_counter()
            session = client.session(cwd)
            created = time.perf_counter()
            client.prompt(session)
            with lock:
                creations.append(1000 * (created - began))
                turns.append(1000 * (time.perf_counter() - created))

    threads = [threading.Thread(target=work, args=(node,)) for node in nodes * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client, pages, cursor = Client(nodes[0]), [], ""
    while cursor is not None:
        began = time.perf_counter()
        cursor = client.request("GET", f"/v1/sessions?cursor={cursor}" if cursor else "/v1/sessions").get("nextCursor")
        pages.append(1000 * (time.perf_counter() - began))
    statistic = "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relname = 'sessions'"
    hot, updates = map(int, subprocess.run(["psql", "-qAtX", "-F", " ", url, "-c", statistic], check=True, capture_output=True,
                                           text=True).stdout.split())
    tenth = count // 10
    yield "creation, first tenth, ms", statistics.median(creations[:tenth])
    yield "creation, last tenth, ms", statistics.median(creations[-tenth:])
    yield "prompt, first tenth, ms", statistics.median(turns[:tenth])
    yield "prompt, last tenth, ms", statistics.median(turns[-tenth:])
    yield f"first of {len(pages)} pages, ms", statistics.median(pages[: len(pages) // 10 + 1])
    yield "last pages, ms", statistics.median(pages[-(len(pages) // 10 + 1):])
    yield "HOT updates of sessions, %", 100 * hot / updates


def main():
    with workplace() as place:
        measure(os.path.realpath(sys.argv[1]), place)


def measure(binary, place):
    template = os.environ["NUNCIO_TEST_STORE"]
    psql(template.replace("{database}", "postgres"), "CREATE DATABASE bench")
    url = template.replace("{database}", "bench")
    short, long, endless = place / "short.json", place / "long.json", place / "endless.json"
    short.write_text(json.dumps({"steps": [{"text": "An answer."}] * 20000}))
    long.write_text(json.dumps({"steps": [{"text": "x" * 100_000, "chunk_chars": 1}] * 20}))
    endless.write_text(json.dumps({"steps": [{"text": "word " * 5000, "chunk_chars": 5, "delay_ms": 20}] * 20}))
    nodes, results = [], {}

    def start(number, store, model):
        node = Node(place / model.stem, number, store, model, place, binary)
        node.start()
        nodes.append(node)
        return node

    for model in (short, long, endless):
        (place / model.stem).mkdir()
    sqlite, first, second = start(0, "sqlite", short), start(1, url, short), start(2, url, short)
    one, two = Client(first), Client(second)
    for name, node in (("SQLite", sqlite), ("PostgreSQL", first)):
        client = Client(node)
        results[f"prompt, {name}, ms"] = prompts(client, client.session(place))
        results[f"turns/s over {PARALLEL} sessions, {name}"] = turns_per_second(node, place)
    if len(sys.argv) > 2:
        results |= many([first, second, start(10, url, short)], place, url, int(sys.argv[2]))
    session = one.session(place)
    results["prompt forwarded to another node, ms"] = prompts(two, session)
    for name, node in (("SQLite", start(3, "sqlite", long)), ("PostgreSQL", start(4, url, long))):
        client = Client(node)
        session, began = client.session(place), time.perf_counter()
        client.prompt(session)
        results[f"deltas/s in one session, {name}"] = 100_000 / (time.perf_counter() - began)
    for node in nodes:
        node.process.terminate()
        node.process.wait()
    efirst, esecond = start(6, url, endless), start(7, url, endless)
    medium = place / "medium.json"
    medium.write_text(json.dumps({"steps": [{"text": "word " * 200, "chunk_chars": 5, "delay_ms": 10}] * 20}))
    (place / "medium").mkdir()
    mfirst, msecond = start(8, url, medium), start(9, url, medium)
    median, high = follower_delays(mfirst, msecond, place)
    results["event seen at another node, ms, median"], results["event seen at another node, ms, p95"] = median, high
    for node in (mfirst, msecond, esecond):
        node.process.terminate()
        node.process.wait()
    (efirst.home / "config.toml").write_text((efirst.home / "config.toml").read_text().replace("node-6", "node-1"))
    efirst.process.terminate()
    efirst.process.wait()
    efirst.start()
    esecond.start()
    turns, duration = take_over(efirst, esecond, place, url)
    results[f"{turns} turns of a dead node ended after its lease, ms"] = duration
    for name, value in results.items():
        print(f"{value:12.1f}  {name}")


if __name__ == "__main__":
    main()
