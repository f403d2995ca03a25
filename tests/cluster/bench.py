#!/usr/bin/env python3
"""Compares PostgreSQL with SQLite, and calls between nodes with calls in one node: bench.py BINARY

Run it by `tests/postgres/run -- tests/cluster/bench.py BINARY [SESSIONS]`. With SESSIONS, it also creates and prompts so many sessions at
three nodes, and compares the first with the last ones. All figures are from one run on one machine; compare them with each other.
"""
import contextlib, itertools, json, os, statistics, subprocess, sys, threading, time

sys.dont_write_bytecode = True
from chaos import TOKEN, Node, psql, wait, workplace

PROMPTS = 300
PARALLEL = 32
# A node runs 64 turns at once.
ABANDONED = 60
IDLE = 1000


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


def prompts(*clients_with_sessions):
    """The median duration of a prompt of each client in its session, in ms. The clients take turns."""
    times = [[] for _ in clients_with_sessions]
    for _ in range(PROMPTS):
        for durations, (client, session) in zip(times, clients_with_sessions):
            began = time.perf_counter()
            client.prompt(session)
            durations.append(1000 * (time.perf_counter() - began))
    return [statistics.median(durations) for durations in times]


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
    psql(url, f"UPDATE nodes SET lease_until = clock_timestamp() + interval '7 s' WHERE name = '{owner.name}'")
    psql(url, f"UPDATE nodes SET lease_until = clock_timestamp() + interval '20 s' WHERE name <> '{owner.name}'")
    began = time.perf_counter()
    wait(lambda: read() == 0, 60, "the end of the turns")
    return open_turns, 1000 * (time.perf_counter() - began) - 7000


def take_over_idle(owner, other, cwd, url):
    """The time from the end of a lease until a prompt in one of the node's idle sessions is answered, and until another node has prompted
    all of them, in ms."""
    client, taker = Client(owner), Client(other)
    taker.session(cwd)
    sessions = [client.session(cwd) for _ in range(IDLE)]
    owner.process.kill()
    owner.process.wait()
    end = time.time() + 3
    psql(url, f"UPDATE nodes SET lease_until = to_timestamp({end}) WHERE name = '{owner.name}'")
    while True:
        try:
            taker.prompt(sessions[0])
            break
        except AssertionError as error:
            assert error.args[0]["error"]["code"] == "session_busy", error
    first = time.time()
    for session in sessions[1:]:
        taker.prompt(session)
    return 1000 * (first - end), 1000 * (time.time() - end)


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
        template = os.environ["NUNCIO_TEST_STORE"]
        psql(template.replace("{database}", "postgres"), "CREATE DATABASE bench")
        url, results, numbers = template.replace("{database}", "bench"), {}, itertools.count()

        @contextlib.contextmanager
        def nodes(steps, *stores):
            """Nodes with these stores and a model with these steps. A model without steps always answers `done`."""
            model = place / f"model{next(numbers)}.json"
            model.write_text(json.dumps({"steps": steps}))
            running = [Node(place, next(numbers), store, model, place, os.path.realpath(sys.argv[1])) for store in stores]
            for node in running:
                node.start()
            yield running
            for node in running:
                node.process.terminate()
                node.process.wait()

        measure(nodes, place, url, results)
        for name, value in results.items():
            print(f"{value:12.1f}  {name}")


def measure(nodes, place, url, results):
    with nodes([], "sqlite", url, url) as (sqlite, first, second):
        client, one, two = map(Client, (sqlite, first, second))
        results["prompt, SQLite, ms"], = prompts((client, client.session(place)))
        results["prompt, PostgreSQL, ms"], results["… forwarded to another node, ms"] = prompts(
            (one, one.session(place)), (two, one.session(place)))
        for name, node in (("SQLite", sqlite), ("PostgreSQL", first)):
            results[f"turns/s over {PARALLEL} sessions, {name}"] = turns_per_second(node, place)
    with nodes([{"text": "x" * 100_000, "chunk_chars": 1}], "sqlite", url) as both:
        for name, node in zip(("SQLite", "PostgreSQL"), both):
            client = Client(node)
            session, began = client.session(place), time.perf_counter()
            client.prompt(session)
            results[f"deltas/s in one session, {name}"] = 100_000 / (time.perf_counter() - began)
    with nodes([{"text": "word " * 200, "chunk_chars": 5, "delay_ms": 10}], url, url) as (first, second):
        median, high = follower_delays(first, second, place)
        results["event seen at another node, ms, median"], results["event seen at another node, ms, p95"] = median, high
    with nodes([], url, url) as (first, second):
        prompted, all_prompted = take_over_idle(first, second, place, url)
        results["prompt in a session of a dead node, after its lease, ms"] = prompted
        results[f"… in all of its {IDLE} sessions, one after the other, ms"] = all_prompted
    with nodes([{"text": "word " * 5000, "chunk_chars": 5, "delay_ms": 20}], url, url) as (first, second):
        turns, duration = take_over(first, second, place, url)
        results[f"{turns} turns of a dead node ended after its lease, ms"] = duration
    if len(sys.argv) > 2:
        with nodes([], url, url, url) as three:
            results |= many(three, place, url, int(sys.argv[2]))


if __name__ == "__main__":
    main()
