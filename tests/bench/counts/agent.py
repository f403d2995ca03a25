"""Drives the program for counts: an ACP client over pipes, a model server that never parses a request."""

import json
import os
import select
import socket
import subprocess
import threading
import time
import urllib.request


def event(delta, finish=None):
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return data({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices})


def data(value):
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
END = event({}, "stop") + data({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": USAGE}) + b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
# Milliseconds that the model thinks before each part of its answer, so that the log does not join its writes by chance.
PAUSE = 8


def chunk(content):
    return b"%x\r\n%b\r\n" % (len(content), content)


class Model:
    """Keep-alive HTTP/1.1 on loopback with constant answers."""

    def __init__(self, deltas):
        body = event({"role": "assistant", "content": ""})
        texts = [event({"content": "ok"})] if deltas == 0 else [event({"content": "t%06d " % i}) for i in range(deltas)]
        self.parts = [HEAD + chunk(body), chunk(b"".join(texts)), chunk(END) + b"0\r\n\r\n"]
        self.pause = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        reader = connection.makefile("rb")
        while line := reader.readline():
            is_get, length = line.startswith(b"GET"), 0
            while (header := reader.readline().lower().strip()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            reader.read(length)
            if is_get:
                models = b'{"object":"list","data":[{"id":"m","object":"model"}]}'
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(models), models))
                continue
            for part in self.parts:
                time.sleep(self.pause / 1e3)
                connection.sendall(part)


class Agent:
    """A process of the program, in a home of its own. `wrap` is a command that runs it."""

    def __init__(self, program, top, steps=None, deltas=0, wrap=(), environment=None, command=("acp",)):
        self.top, self.work, home = top, f"{top}/work", f"{top}/home"
        os.makedirs(self.work, exist_ok=True)
        os.makedirs(home, exist_ok=True)
        with open(f"{self.work}/f.txt", "w") as file:
            file.write("a line of text\n" * 20)
        settings = '[permissions]\ndefault = "ask"\nrules = [ { kind = "read", policy = "allow" } ]\n'
        if steps is None:
            model, self.model = "mock/m", Model(deltas)
            settings += f'[providers.mock]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{self.model.port}/v1"\napi_key_env = "MOCK_KEY"\ncontext_window = 10000000\n'
        else:
            model, self.model = f"scripted:{top}/script.json", None
            with open(f"{top}/script.json", "w") as file:
                json.dump({"steps": [dict(step, delay_ms=PAUSE) for step in steps]}, file)
        with open(f"{home}/config.toml", "w") as file:
            file.write(settings)
        environment = {"PATH": "/usr/bin:/bin", "HOME": top, "NUNCIO_HOME": home, "MOCK_KEY": "x", "LANG": "C"} | (environment or {})
        # One processor, so that threads take turns in the same order more often.
        processor = {min(os.sched_getaffinity(0))}
        self.process = subprocess.Popen(
            [*wrap, program, *command, "--model", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(f"{top}/errors", "ab"), cwd=self.work, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, processor),
        )
        self.wraps, self.number, self.buffer, self.paced = bool(wrap), 0, b"", True

    @property
    def pid(self):
        """The process of the program, which a command that wraps it has started."""
        if not self.wraps:
            return self.process.pid
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return int((file.read().split() or [self.process.pid])[0])

    def read(self, wait):
        if not select.select([self.process.stdout], [], [], wait)[0]:
            return False
        received = os.read(self.process.stdout.fileno(), 1 << 18)
        if not received:
            raise RuntimeError("the program ended: " + open(f"{self.top}/errors").read()[-2000:])
        self.buffer += received
        return True

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":")).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, params):
        """Calls a method, allows what it asks, and returns its result."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            while b"\n" not in self.buffer:
                if not self.read(60):
                    raise RuntimeError(f"no answer to {method}")
            line, self.buffer = self.buffer.split(b"\n", 1)
            if b'"method":"session/update"' in line:
                continue
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                option = next(o["optionId"] for o in message["params"]["options"] if o["kind"] == "allow_once")
                self.send({"id": message["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}})
            elif message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(str(message))
                return message["result"]

    def settle(self):
        """Waits until nothing is written for 60 ms."""
        while self.read(0.06):
            pass
        self.buffer = self.buffer.rpartition(b"\n")[2]

    def warm_up(self, session, prompts):
        """Sends prompts that are not counted, without pauses."""
        self.paced = False
        for _ in range(prompts):
            self.prompt(session)
        self.paced = True
        if self.model:
            self.model.pause = PAUSE

    def rest(self):
        """Waits longer than the stamps of the clock by which the program sees that a file has changed."""
        if self.paced:
            time.sleep(0.025)

    def initialize(self):
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "counts", "version": "1"}})
        return self

    def session(self):
        return self.call("session/new", {"cwd": self.work, "mcpServers": []})["sessionId"]

    def prompt(self, session):
        self.rest()
        self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})

    def load(self, session):
        self.call("session/load", {"sessionId": session, "cwd": self.work, "mcpServers": []})

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Server(Agent):
    """`nuncio serve` with a token, and readers of the events of a session."""

    TOKEN = "0123456789abcdef0123456789abcdef"

    def __init__(self, program, top, **options):
        os.makedirs(f"{top}/home", exist_ok=True)
        with open(f"{top}/home/token", "w") as file:
            file.write(self.TOKEN)
        super().__init__(program, top, command=("serve", "--http", "127.0.0.1:0"), **options)
        self.address = self.process.stdout.readline().decode().split()[-1]

    def post(self, path, body):
        headers = {"authorization": f"Bearer {self.TOKEN}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.address}/v1{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def initialize(self):
        self.ends = 0
        return self

    def session(self):
        session = self.post("/sessions", {"cwd": self.work})["sessionId"]
        for _ in range(10):
            host, port = self.address.removeprefix("http://").split(":")
            reader = socket.create_connection((host, int(port)))
            reader.sendall(f"GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {self.TOKEN}\r\n\r\n".encode())
            threading.Thread(target=self.read_events, args=(reader,), daemon=True).start()
        return session

    def read_events(self, reader):
        while received := reader.recv(1 << 16):
            self.ends += received.count(b"turn.completed")

    def settle(self):
        time.sleep(0.06)

    def prompt(self, session):
        self.rest()
        self.post(f"/sessions/{session}/prompt", {"prompt": [{"type": "text", "text": "hi"}]})

    def end(self):
        os.kill(self.pid, 15)
        super().end()
        if self.ends == 0:
            raise RuntimeError("the readers of events received no end of a turn")
