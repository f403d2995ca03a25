#!/usr/bin/env python3
"""Three nodes, one PostgreSQL server, and faults: chaos.py [--seconds N] [--seed N] [--sessions N] BINARY

Run it by `tests/postgres/run -- tests/cluster/chaos.py BINARY`, which makes the server. Clients prompt sessions at random nodes, and
readers follow their events and change the node. First the nodes are updated one after the other. Then nodes are killed or stopped, the server is restarted, and the connection of one
node to it is cut or held. Two of the addresses are those of nginx and Caddy with the configurations of docs/DEPLOYMENT.md. At the end it checks that each event that a reader saw is stored once and in order, that each turn has one end,
that turns were completed during the whole time, and that no process is left. Exits with 1 if not.
"""
import argparse, collections, contextlib, hashlib, http.client, json, os, random, select, shutil, signal, socket, ssl, subprocess, sys, tempfile
import threading, time
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

NODES = 3
READERS = 8
WORKERS = 24
# A lease ends 20 s after its last renewal.
LEASE = 20
# The previous version of the messages between nodes.
PREVIOUS = "2"
TOKEN = "chaos-" + os.urandom(16).hex()
MARKER = "chaos-" + os.urandom(8).hex()
TLS = ssl._create_unverified_context()
ENDS = ("turn.completed", "turn.cancelled", "turn.failed", "turn.interrupted")


class Relay:
    """Forwards the connections of one node to the server of the database. They can be cut and held."""

    def __init__(self, directory, port, target):
        self.path, self.target = f"{directory}/.s.PGSQL.{port}", target
        self.pairs, self.held = [], threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                continue
            pair = (client, server)
            self.pairs.append(pair)
            threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, client, server):
        other = {client: server, server: client}
        try:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    while self.held.is_set():
                        time.sleep(0.05)
                    if not data:
                        return
                    other[ready].sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            client.close()
            server.close()

    def cut(self):
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()


class Address:
    """Where clients connect: a node, or the reverse proxy."""

    def __init__(self):
        self.port = free_port()

    def connect(self, timeout):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=TLS)

    def request(self, method, path, body=None, timeout=10):
        connection = self.connect(timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            # A reverse proxy answers with a page, or nothing.
            return response.status, None if response.status == 502 else json.loads(answer or b"null")
        except (http.client.HTTPException, ssl.SSLError, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()


class Proxy(Address):
    """A reverse proxy in front of the nodes, with the configuration of the documentation."""

    def __init__(self, name, place, nodes):
        super().__init__()
        self.name, self.home = name, place / name
        self.home.mkdir()
        text = (Path(__file__).parent / "../../docs/DEPLOYMENT.md").read_text().split(f"```{name}\n")[1].split("```")[0]
        certificate, key = f"{nodes[0].home}/chain.pem", f"{nodes[0].home}/key.pem"
        changes = {f"node-{number}.internal:8686": f"127.0.0.1:{node.port}" for number, node in enumerate(nodes, 1)}
        if name == "nginx":
            changes |= {"listen 443": f"listen 127.0.0.1:{self.port}", "server_name nuncio.example;": "",
                        "/etc/nginx/nuncio.pem": certificate, "/etc/nginx/nuncio.key": key}
        else:
            changes |= {"nuncio.example {": f"https://127.0.0.1:{self.port} {{\n    tls {certificate} {key}"}
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        command = self.nginx(text) if name == "nginx" else self.caddy(text)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NUNCIO_TEST": MARKER}
        log = open(self.home / "output", "w")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def lost_bodies(self):
        """The number of requests that no node received: Caddy up to 2.11.1 closes the body of a request when a node refuses the
        connection, and cannot repeat it at another node (its issue 7546)."""
        return (self.home / "output").read_text().count("http: invalid Read on closed Body")

    def nginx(self, text):
        paths = "".join(f"{name}_temp_path {self.home}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.home / "nginx.conf").write_text(
            f"daemon off; pid {self.home}/pid; error_log {self.home}/log warn; worker_processes 2;\n"
            f"events {{ worker_connections 1024; }}\nhttp {{ access_log off;\n{paths}{text}}}\n")
        return ["nginx", "-p", self.home, "-c", self.home / "nginx.conf"]

    def caddy(self, text):
        (self.home / "Caddyfile").write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{text}")
        return ["caddy", "run", "--config", self.home / "Caddyfile"]


class Node(Address):
    def __init__(self, place, number, url, model, work, binary):
        super().__init__()
        self.name, self.home, self.work, self.binary = f"node-{number}", place / f"node{number}", work, binary
        self.url, self.model, self.process = url, model, None
        self.home.mkdir()
        (self.home / "token").write_text(TOKEN + "\n")
        (self.home / "token").chmod(0o600)
        (self.home / "cluster.secret").write_text("0123456789abcdef0123456789abcdef\n")
        (self.home / "cluster.secret").chmod(0o600)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=node",
                        "-keyout", self.home / "key.pem", "-out", self.home / "chain.pem"], check=True, capture_output=True)
        cluster = f'[cluster]\nname = "{self.name}"\naddress = "https://127.0.0.1"\nsecret_file = "cluster.secret"\n'
        (self.home / "config.toml").write_text(
            f'[http]\ntls_certificate = "{self.home}/chain.pem"\ntls_key = "{self.home}/key.pem"\ndrain_s = 3\n'
            + (cluster if url != "sqlite" else ""))

    def start(self, older=False):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NUNCIO_HOME": str(self.home), "NUNCIO_STORE": self.url,
                       "NUNCIO_TEST": MARKER, **({"NUNCIO_PEER_VERSION": PREVIOUS} if older else {})}
        log = open(self.home / "log", "a")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--http", f"127.0.0.1:{self.port}", "--model", f"scripted:{self.model}", "--mode", "auto"],
            cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait(lambda: self.answers(), 30, f"the start of {self.home.name}")

    def answers(self):
        try:
            return self.request("GET", "/health")[0] == 200
        except OSError:
            return False


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait(condition, seconds, what):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not in {seconds} s")
        time.sleep(0.05)


def digest(event):
    return hashlib.sha256(json.dumps(event["body"], sort_keys=True).encode()).hexdigest()


class Chaos:
    def __init__(self, options, place):
        self.options, self.place, self.random = options, place, random.Random(options.seed)
        self.ending, self.problems, self.counts = threading.Event(), [], collections.Counter()
        self.seen, self.seen_lock, self.completed = {}, threading.Lock(), []
        work = place / "work"
        work.mkdir()
        template = os.environ["NUNCIO_TEST_STORE"]
        psql(template.replace("{database}", "postgres"), "CREATE DATABASE chaos")
        self.url = template.replace("{database}", "chaos")
        query = parse_qs(urlsplit(self.url).query)
        directory, port = query["host"][0], query["port"][0]
        relay_directory = place / "relay"
        relay_directory.mkdir()
        self.relay = Relay(relay_directory, port, f"{directory}/.s.PGSQL.{port}")
        through_relay = self.url.replace(quote(directory, safe="._~-"), quote(str(relay_directory), safe="._~-"))
        assert through_relay != self.url
        tool = {"tool_calls": [{"name": "bash", "input": {"command": "echo x >> calls; sleep 0.1"}}], "text": "A call follows."}
        model = place / "model.json"
        model.write_text(json.dumps({"steps": [tool, {"text": "Some text in pieces. " * 4, "chunk_chars": 8}] * 2000}))
        urls = [self.url] * (NODES - 1) + [through_relay]
        self.nodes = [Node(place, number + 1, url, model, work, options.binary) for number, url in enumerate(urls)]
        for node in self.nodes:
            node.start(older=True)
        self.proxies = []
        for name in ("nginx", "caddy"):
            if not shutil.which(name):
                print(f"skipped: {name} is not installed")
                continue
            self.proxies.append(Proxy(name, place, self.nodes))
            wait(lambda: Node.answers(self.proxies[-1]), 10, f"the start of {name}")
        self.addresses = self.nodes + self.proxies
        self.sessions = []
        for number in range(options.sessions):
            status, made = self.nodes[number % NODES].request("POST", "/v1/sessions", {"cwd": str(work)})
            assert status == 201, made
            self.sessions.append(made["sessionId"])

    def problem(self, text):
        self.problems.append(text)
        print("problem:", text, file=sys.stderr, flush=True)

    # Prompts the sessions of one client at random nodes.
    def work(self, sessions, seed):
        choose = random.Random(seed)
        while not self.ending.is_set():
            session, address = choose.choice(sessions), choose.choice(self.addresses)
            try:
                status, answer = address.request("POST", f"/v1/sessions/{session}/prompt", {"prompt": [{"type": "text", "text": "go"}]}, timeout=30)
            except OSError:
                self.counts["no answer"] += 1
                time.sleep(0.05)
                continue
            if status == 200:
                self.completed.append(time.monotonic())
                self.counts[f"completed through {address.name}" if address in self.proxies else "completed"] += 1
            else:
                code = (answer or {}).get("error", {}).get("code", f"of {address.name}")
                self.counts[f"{status} {code}"] += 1
                if status == 500:
                    self.problem(f"an internal error: {answer}")
                time.sleep(0.05)

    # Follows one session after the other, and changes the node.
    def read(self, seed):
        choose, last = random.Random(seed), {}
        session = choose.choice(self.sessions)
        while not self.ending.is_set():
            address, connection = choose.choice(self.addresses), None
            if choose.random() < 0.2:
                session = choose.choice(self.sessions)
            until = time.monotonic() + choose.uniform(0.5, 4)
            try:
                connection = address.connect(2)
                headers = {"Authorization": f"Bearer {TOKEN}", "Last-Event-ID": str(last.get(session, 0))}
                connection.request("GET", f"/v1/sessions/{session}/events", headers=headers)
                response = connection.getresponse()
                if response.status != 200:
                    time.sleep(0.1)
                    continue
                while time.monotonic() < until and not self.ending.is_set():
                    line = response.readline()
                    if not line:
                        break
                    if line.startswith(b"data: ") and b'"seq"' in line:
                        self.saw(session, json.loads(line[6:]), last)
            except (OSError, http.client.HTTPException, ValueError):
                self.counts["streams ended"] += 1
            finally:
                connection and connection.close()

    def saw(self, session, event, last):
        seq = event["seq"]
        if seq <= last.get(session, 0):
            self.problem(f"{session}: a reader received event {seq} after {last[session]}")
        last[session] = seq
        self.counts["events read"] += 1
        with self.seen_lock:
            known = self.seen.setdefault((session, seq), (digest(event), event["body"]["type"]))
        if known[0] != digest(event):
            self.problem(f"{session}: two contents of event {seq}")

    # Updates the nodes one after the other from the previous version of the messages between them.
    def update(self):
        for node in self.nodes:
            time.sleep(3)
            node.process.terminate()
            node.process.wait(60)
            node.start()
        if not self.completed:
            self.problem("no turn was completed during the update")
        for proxy in self.proxies:
            lost = proxy.lost_bodies()
            if lost:
                print(f"{proxy.name} lost the bodies of {lost} requests that it repeated")
            if (refused := self.counts[f"502 of {proxy.name}"] - lost) > 0:
                self.problem(f"{proxy.name} had no node for {refused} requests while the nodes were updated one after the other")

    def faults(self):
        self.update()
        print(f"{self.counts['completed']} turns were completed during an update of all nodes", flush=True)
        until = time.monotonic() + self.options.seconds
        kinds = [self.kill, self.restart_database, self.stop, self.cut, self.kill, self.hold]
        number = 0
        while time.monotonic() < until:
            fault = kinds[number % len(kinds)]
            print(f"{self.options.seconds - until + time.monotonic():5.0f} s  {fault.__name__}", flush=True)
            fault(self.nodes[self.random.randrange(NODES)])
            self.counts[f"fault {fault.__name__}"] += 1
            number += 1
            time.sleep(2)

    def kill(self, node):
        node.process.kill()
        node.process.wait()
        time.sleep(self.random.choice([0.5, LEASE + 3]))
        node.start()

    def stop(self, node):
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 5)
        node.process.send_signal(signal.SIGCONT)

    def restart_database(self, _):
        subprocess.run([os.environ["NUNCIO_TEST_RESTART"], "2"], check=True, stdout=subprocess.DEVNULL)

    def cut(self, _):
        self.relay.cut()

    def hold(self, _):
        self.relay.held.set()
        time.sleep(LEASE + 5)
        self.relay.held.clear()

    def run(self):
        share = [self.sessions[number::WORKERS] for number in range(WORKERS)]
        threads = [threading.Thread(target=self.work, args=(sessions, number)) for number, sessions in enumerate(share)]
        threads += [threading.Thread(target=self.read, args=(1000 + number,)) for number in range(READERS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            self.faults()
        finally:
            self.ending.set()
        for thread in threads:
            thread.join()
        self.check(began, time.monotonic())

    def busy(self):
        for node in self.nodes:
            page = "/v1/sessions"
            while page:
                status, listed = node.request("GET", page)
                if status != 200 or any(row["status"] == "busy" for row in listed["sessions"]):
                    return True
                page = listed.get("nextCursor") and f"/v1/sessions?cursor={quote(listed['nextCursor'])}"
        return False

    def check(self, began, ended):
        # The last turns end by themselves, at the latest when the lease of their node has ended.
        wait(lambda: not self.busy(), 3 * LEASE, "the end of all turns")
        for proxy in self.proxies:
            proxy.process.terminate()
            proxy.process.wait(10)
            if not self.counts[f"completed through {proxy.name}"]:
                self.problem(f"no turn was completed through {proxy.name}")
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            if node.process.wait(30) != 0:
                self.problem(f"{node.home.name} ended with {node.process.returncode}: {(node.home / 'log').read_text()[-2000:]}")
        wait(lambda: not marked(), 5, "the end of all processes")
        for session in self.sessions:
            self.check_session(session)
        self.completed.sort()
        gaps = [later - earlier for earlier, later in zip([began, *self.completed], [*self.completed, ended])]
        # All clients can wait at a stopped node, for 30 s at most.
        if max(gaps) > 30 + LEASE:
            self.problem(f"no turn was completed for {max(gaps):.0f} s")
        for name, count in sorted(self.counts.items()):
            print(f"{count:8d}  {name}")
        print(f"{len(self.seen):8d}  different events read; longest time without a completed turn: {max(gaps):.1f} s")
        if self.problems or not self.completed:
            raise SystemExit(f"{len(self.problems)} problems")

    def check_session(self, session):
        environment = {"PATH": os.environ["PATH"], "NUNCIO_HOME": str(self.nodes[0].home), "NUNCIO_STORE": self.url}
        shown = subprocess.run([self.options.binary, "sessions", "show", session, "--json"], env=environment, capture_output=True, text=True)
        if shown.returncode != 0:
            return self.problem(f"{session} cannot be read: {shown.stderr}")
        events = [json.loads(line) for line in shown.stdout.splitlines()]
        stored, last, turn = {}, 0, None
        for event in events:
            seq, kind = event["seq"], event["body"]["type"]
            if seq <= last:
                self.problem(f"{session}: event {seq} is stored after {last}")
            last, stored[seq] = seq, digest(event)
            if kind == "turn.started":
                if turn:
                    self.problem(f"{session}: {event['turnId']} started in {turn}")
                turn = event["turnId"]
            elif event.get("turnId") not in (None, turn):
                self.problem(f"{session}: event {seq} of {event['turnId']} while {turn} is open")
            if kind in ENDS:
                self.counts[f"turns {kind[5:]}"] += 1
                turn = None
        if turn:
            self.problem(f"{session}: {turn} has no end")
        for (of, seq), (content, kind) in self.seen.items():
            # Deltas of complete messages are removed when a session is closed.
            if of == session and stored.get(seq) != content and not (seq not in stored and kind.endswith((".delta", ".updated", ".input"))):
                self.problem(f"{session}: event {seq} ({kind}) was read, and is {'other' if seq in stored else 'not'} stored")


def marked():
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if MARKER.encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                pass
    return found


@contextlib.contextmanager
def workplace():
    """A temporary directory. No process that was started in it is left."""
    place = Path(tempfile.mkdtemp(prefix="nuncio-cluster-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        for pid in marked():
            os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)


def psql(url, statement):
    subprocess.run(["psql", "--no-psqlrc", "--quiet", url, "--command", statement], check=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=int, default=120)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--sessions", type=int, default=50)
    arguments.add_argument("binary", type=os.path.realpath)
    options = arguments.parse_args()
    with workplace() as place:
        try:
            Chaos(options, place).run()
        except BaseException:
            for log in sorted(place.glob("node*/log")):
                lines = [line for line in log.read_text().splitlines() if '"level":"INFO"' not in line]
                print(f"== {log.parent.name}", *lines[-20:], sep="\n", file=sys.stderr)
            for log in (place / "caddy/output", place / "nginx/log"):
                lines = [line for line in log.read_text().splitlines() if "error" in line] if log.exists() else []
                print(f"== {log.parent.name}", *lines[:20], sep="\n", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
