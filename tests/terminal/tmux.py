"""A tmux server with one window, which runs one command."""

import os
import signal
import subprocess
import time

# Maximum time in seconds of one wait, and between two looks at the screen.
WAIT = 60
LOOK = 0.02


class Tmux:
    """The server of a socket of its own. It reads no configuration."""

    def __init__(self, home, command, cwd, environment, rows=24, columns=80):
        self.socket = f"{home}/tmux"
        self.environment = {**environment, "SHELL": "/bin/sh", "LANG": "C.UTF-8"}
        self.environment.pop("TMUX", None)
        # The limit applies to windows that are created after it was set.
        start = ["start-server", ";", "set-option", "-g", "history-limit", "100000", ";"]
        start += ["new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", cwd, *command]
        self.run(*start)
        self.pid = int(self.run("display-message", "-p", "#{pid}"))

    def run(self, *arguments):
        command = ["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *arguments]
        options = {"env": self.environment, "capture_output": True, "text": True, "timeout": WAIT}
        done = subprocess.run(command, **options)
        if done.returncode != 0:
            raise AssertionError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def keys(self, text):
        self.run("send-keys", "-l", text)

    def key(self, *names):
        self.run("send-keys", *names)

    def screen(self):
        return self.run("capture-pane", "-p")

    def lines(self):
        """Returns the lines of the scrollback and of the screen; wrapped rows are one line."""
        lines = self.run("capture-pane", "-pJ", "-S", "-").rstrip().split("\n")
        return [line.rstrip() for line in lines]

    def until(self, words):
        """Waits until the screen contains the words. Returns the screen."""
        found = lambda: words in (screen := self.screen()) and screen
        return poll(found, lambda: f"no {words!r} in\n{self.screen()}")

    def resize(self, rows, columns):
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def close(self):
        """Ends the server; its window and what runs in it receive SIGHUP."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            poll(lambda: not is_running(self.pid), lambda: "tmux does not end")
        except AssertionError:
            os.kill(self.pid, signal.SIGKILL)
            raise


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def poll(found, complaint):
    """Waits until `found` returns something true, and returns it."""
    deadline = time.monotonic() + WAIT
    while not (value := found()):
        if time.monotonic() > deadline:
            raise AssertionError(complaint())
        time.sleep(LOOK)
    return value
