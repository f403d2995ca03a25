"""Claude Code in a terminal, started by `nuncio agents exec`: its status in a server of nuncio."""

import json
import os
import pty
import re
import subprocess
import threading
import time
import urllib.request

# Maximum times in seconds.
START = 60
STATUS = 30
KEYS = 5


class StatusStream:
    """A server of nuncio, and the statuses of the agents in terminals that it sends."""

    def __init__(self, nuncio, cwd, environment):
        self.rows = []
        self.server = subprocess.Popen(
            [nuncio, "serve", "--http", "127.0.0.1:0"], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        url = self.server.stdout.readline().decode().split()[-1]
        with open(os.path.join(environment["NUNCIO_HOME"], "token")) as file:
            headers = {"Authorization": f"Bearer {file.read().strip()}"}
        request = urllib.request.Request(f"{url}/v1/events?types=agent.status", headers=headers)
        stream = urllib.request.urlopen(request, timeout=START)
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        try:
            for line in stream:
                if line.startswith(b"data: "):
                    self.rows += json.loads(line[6:]).get("terminals", [])
        except OSError:
            pass

    def end(self):
        self.server.terminate()
        self.server.wait()


class Terminal:
    """A command on a pseudo terminal."""

    def __init__(self, command, cwd, environment):
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(command[0], command, {**environment, "TERM": "xterm-256color"})
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while data := os.read(self.fd, 1 << 16):
                self.output += data
        except OSError:
            pass

    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", self.output.decode(errors="replace"))

    def keys(self, text):
        os.write(self.fd, text.encode())

    def end(self, signal):
        try:
            os.kill(self.pid, signal)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.fd)


def trust(home, work, key):
    """Answers the questions that Claude Code asks at its first start."""
    path = os.path.join(home, ".claude.json")
    config = {}
    if os.path.exists(path):
        with open(path) as file:
            config = json.load(file)
    config["hasCompletedOnboarding"] = True
    config["customApiKeyResponses"] = {"approved": [key[-20:]], "rejected": []}
    config.setdefault("projects", {})[work] = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    with open(path, "w") as file:
        json.dump(config, file)


def check(nuncio, name, home, work, environment, key, poll, fail):
    """Runs a denied and an answered prompt, ends Claude Code, and starts it again."""
    trust(home, work, key)
    stream = StatusStream(nuncio, work, environment)
    terminal = None

    def until(status, what, seconds=STATUS):
        """Waits for the next row with this status. Earlier rows are removed."""

        def found():
            while stream.rows:
                row = stream.rows.pop(0)
                if row["status"] == status:
                    ids.append(row["agentSession"])
                    return True
            return False

        return poll(found, seconds) or (what and fail(f"no status {status} after {what}: {terminal.text()[-500:]!r}"))

    def start():
        return Terminal([nuncio, "agents", "exec", name], work, environment)

    def prompt(text, word):
        terminal.keys(text)
        poll(lambda: word in terminal.text(), KEYS)
        # Claude Code takes an early Enter for a part of the text.
        for _ in range(5):
            time.sleep(0.5)
            terminal.keys("\r")
            if until("busy", None, KEYS):
                return
        fail(f"no status busy after {text}: {terminal.text()[-500:]!r}")

    ids = []
    try:
        terminal = start()
        until("idle", "the start", START)
        poll(lambda: "❯" in terminal.text(), START)
        prompt("RUN touch interrupted.txt", "interrupted.txt")
        until("waiting", "a command")
        terminal.keys("\x1b")
        until("idle", "an interrupt")
        prompt("SAY goodbye", "goodbye")
        until("idle", "an answer")
        terminal.end(15)
        until("none", "the end")
        terminal = start()
        until("idle", "the second start", START)
        if not poll(lambda: "goodbye" in terminal.text(), START):
            fail(f"the session did not continue: {terminal.text()[-500:]!r}")
        if len(set(ids)) != 1:
            fail(f"several sessions: {ids}")
    finally:
        if terminal:
            terminal.end(9)
        stream.end()
