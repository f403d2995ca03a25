"""The chat in tmux, with the keys that act on the terminal itself."""

import os
import random
import re
import shlex
import signal

from conversation import PROMPT, RESUME, USAGE, Conversation, environment, faults, prepare
from tmux import Tmux, is_running, poll

WAITING = "echo started; until test -e go; do sleep 0.01; done; echo finished"
# The command writes its own id, so that a signal is sent to nuncio and to nothing else. No shell
# with job control runs it, which would restore the terminal itself. The pane must not end before it
# was looked at.
SCRIPT = """stty -a >before
sh -c 'echo $$ >pid; exec "$@"' - "$@"
code=$?
stty -a >after
echo "exit code $code"
exec sleep 1000"""
END = re.compile(r"exit code \d+")


def bash(command):
    return {"name": "bash", "input": {"command": command}}


class Window:
    """A chat with a scripted model in a window of tmux."""

    def __init__(self, nuncio, home, steps, mode="auto", shell=False, **size):
        self.work = f"{home}/work"
        chat = prepare(home, steps, nuncio, mode)
        command = ["bash", "--norc", "--noprofile"] if shell else ["sh", "-c", SCRIPT, "-", *chat]
        self.tmux = Tmux(home, command, self.work, {**environment(home), "PS1": "shell> "}, **size)
        try:
            if shell:
                self.tmux.until("shell>")
                self.tmux.keys(shlex.join(chat) + "\r")
            self.tmux.until("/help")
        except BaseException:
            self.tmux.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux.close()

    def path(self, name):
        return f"{self.work}/{name}"

    def text(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def check_end(self):
        """Waits for the end of the chat, and checks that the terminal is as it was before. Returns
        the lines of the terminal."""
        ended = lambda: any(map(END.fullmatch, lines := self.tmux.lines())) and lines
        lines = poll(ended, self.tmux.screen)
        # The first line is the size.
        before, after = (self.text(name).partition("\n")[2] for name in ("before", "after"))
        assert before == after, (before, after)
        names = "cursor #{cursor_flag} wrap #{wrap_flag} alternate #{alternate_on}"
        flags = self.tmux.run("display-message", "-p", names)
        assert flags == "cursor 1 wrap 1 alternate 0\n", flags
        return lines


def first(nuncio, home):
    """The first message, at the top of the screen, leaves no remains"""
    with Window(nuncio, home, [{"text": "the answer"}]) as window:
        window.tmux.keys(f"{PROMPT}\r")
        window.tmux.until(" tokens in, ")
        window.tmux.key("C-d")
        expected = ["", f"> {PROMPT}", "", "the answer", "", USAGE, RESUME, "exit code 0"]
        missing, _, remains = faults(expected, window.check_end())
        assert not missing + remains, "\n".join(missing + remains)


def stop(nuncio, home):
    """Esc stops a turn, and Ctrl-C pressed twice ends the chat."""
    with Window(nuncio, home, [{"tool_calls": [bash(WAITING)]}, {"text": "never"}]) as window:
        window.tmux.keys(f"{PROMPT}\r")
        window.tmux.until("\n  started")
        window.tmux.key("Escape")
        window.tmux.until("■ cancelled")
        window.tmux.until("/help")
        window.tmux.key("C-c")
        window.tmux.until("Ctrl-C again quits")
        window.tmux.key("C-c", "C-c")
        lines = window.check_end()
        assert "exit code 0" in lines and "never" not in lines, lines


def suspend(nuncio, home):
    """Ctrl-Z suspends the chat, and `fg` continues it, with its text, in another size."""
    with Window(nuncio, home, [{"text": "the answer"}], shell=True) as window:
        window.tmux.keys("typed")
        window.tmux.until("> typed")
        window.tmux.key("C-z")
        window.tmux.until("Stopped")
        window.tmux.resize(12, 60)
        window.tmux.keys("echo in the $((1 + 1))nd shell\r")
        window.tmux.until("in the 2nd shell")
        window.tmux.keys("fg\r")
        composer = lambda: window.tmux.screen().rstrip().split("\n")[-2:][0]
        poll(lambda: composer() == "> typed", window.tmux.screen)
        window.tmux.keys(" more\r")
        window.tmux.until("the answer")
        window.tmux.until("/help")
        assert "> typed more" in window.tmux.lines(), window.tmux.lines()
        window.tmux.key("C-d")
        window.tmux.until("To continue this session")
        window.tmux.keys("echo left: $?\r")
        window.tmux.until("left: 0")


def terminate(nuncio, home):
    """SIGTERM during a turn restores the terminal."""
    with Window(nuncio, home, [{"tool_calls": [bash(WAITING)]}]) as window:
        window.tmux.keys(f"{PROMPT}\r")
        window.tmux.until("\n  started")
        pid = int(window.text("pid"))
        os.kill(pid, signal.SIGTERM)
        lines = window.check_end()
        assert not is_running(pid) and any(line.startswith("To continue this session") for line in lines), lines


def request(nuncio, home):
    """A permission request that appears while the user types is not answered by the text."""
    # The chunks take long enough that the user types before and after the request appears.
    answer = {"text": "word " * 40, "delay_ms": 20, "tool_calls": [bash("touch made")]}
    with Window(nuncio, home, [answer, {"text": "the end"}], mode="ask") as window:
        window.tmux.keys(f"{PROMPT}\r")
        window.tmux.until("Esc stops")
        typed = 0

        def types():
            nonlocal typed
            window.tmux.keys("1")
            typed += 1
            return "[1] Allow" in window.tmux.screen()

        poll(types, window.tmux.screen)
        before = typed
        for _ in range(20):
            types()
        window.tmux.until("1" * typed)
        assert before > 1 and "[1] Allow" in window.tmux.screen(), window.tmux.screen()
        assert not os.path.exists(window.path("made"))
        window.tmux.key("Tab")
        window.tmux.until("digits answer")
        window.tmux.keys("1")
        window.tmux.until("the end")
        assert os.path.exists(window.path("made"))
        window.tmux.key("C-c")
        poll(lambda: "1" * typed not in window.tmux.screen(), window.tmux.screen)
        window.tmux.key("C-d")
        window.check_end()


def storm(nuncio, home, seed, widths, longest, count=150):
    """Changes the size during a conversation. Returns the conversation, the lines that tmux shows,
    and the number of sizes."""
    chance = random.Random(seed)
    # tmux 3.3a itself loses parts of wrapped lines with wide characters when its size changes.
    conversation = Conversation(chance, count, longest, wide=False)
    resizes = 0
    with Window(nuncio, home, conversation.steps, rows=24, columns=widths[1]) as window:

        def until(words):
            def found():
                nonlocal resizes
                window.tmux.resize(chance.randrange(8, 50), chance.randrange(*widths))
                resizes += 1
                return words in window.tmux.screen()

            poll(found, window.tmux.screen)

        window.tmux.keys(f"{PROMPT}\r")
        until("\n  started")
        open(window.path("go"), "w").close()
        until(" tokens in, ")
        window.tmux.key("C-d")
        lines = window.check_end()
    return conversation, lines, resizes
