"""Records chats on a terminal whose size changes at random."""

import random
import re

from conversation import PROMPT, Conversation, environment, prepare
from recorder import FRAME_END, Recorder

HEIGHTS = (8, 50)
# A terminal that becomes lower than the rows below the output moves their first rows into the
# scrollback, where they remain. Besides the composer, at most 4 rows show a line of an answer that
# is being written, one the work, and one the status.
OTHER_ROWS = 6
COMPOSER_ROWS = 6
# What the user types while the model works. Control-J begins a new line.
TYPED = ["a", "word ", "and more words " * 3, "\n"]
LINES = 60


def chat(nuncio, home, steps, columns=80, program="vscode"):
    """Starts a chat with a scripted model in a terminal of this name, and waits until it takes keys."""
    command = prepare(home, steps, nuncio, "auto")
    terminal = Recorder(command, f"{home}/work", {**environment(home), "TERM_PROGRAM": program}, 24, columns)
    try:
        until_ready(terminal, 0)
    except BaseException:
        terminal.close()
        raise
    return terminal


def composer(end):
    """Returns a pattern of the last row of the composer, which the status row follows."""
    return re.compile(re.escape(end) + rb"(\x1b\[K)?\r\n(\x1b\[[\d;]*[Km])*  ")


def until_ready(terminal, start):
    """Waits until no turn runs and the frame is whole. Returns the number of bytes."""
    return terminal.until(FRAME_END, terminal.until(b"/help", start))


class Storm:
    """Random keys and sizes."""

    def __init__(self, terminal, chance, heights, widths):
        self.terminal, self.random, self.heights, self.widths = terminal, chance, heights, widths
        self.resizes, self.narrowings, self.text = 0, 0, ""
        # The most rows that the composer has had: a frame with them may not be drawn yet.
        self.tallest = 1

    def act(self):
        if self.heights and self.random.random() < 0.4:
            columns = self.random.randrange(*self.widths) if self.widths else self.terminal.columns
            lowest = max(HEIGHTS[0], OTHER_ROWS + self.tallest + 1)
            self.narrowings += columns < self.terminal.columns
            self.resizes += self.terminal.resize(self.random.randrange(lowest, HEIGHTS[1]), columns)
        elif self.random.random() < 0.15:
            # Ctrl-C without a text stops the turn.
            self.press(self.random.choice(TYPED + ["\x03"] * bool(self.text.strip())))

    def press(self, key):
        # The composer has about 70 columns.
        rows = sum(len(line) // 70 + 1 for line in (self.text + key).split("\n"))
        if rows > COMPOSER_ROWS:
            if not self.text.strip():
                return
            key = "\x03"
        self.tallest = max(self.tallest, min(rows, COMPOSER_ROWS))
        self.text = "" if key == "\x03" else self.text + key
        self.terminal.keys(key)

    def until(self, words, start):
        return self.terminal.until(words, start, size=self.random.randrange(100, 4096), after_read=self.act)


def record(nuncio, home, seed, heights, widths, longest, program):
    """Records one conversation. Returns its description and what it should show."""
    chance = random.Random(seed)
    conversation = Conversation(chance, LINES, longest)
    terminal = chat(nuncio, home, conversation.steps, widths[1] if widths else 80, program)
    try:
        storm = Storm(terminal, chance, heights, widths)
        start = len(terminal.output)
        terminal.keys(f"{PROMPT}\r")
        start = storm.until(b"  started", start)
        for _ in range(chance.randrange(12)):
            storm.act()
            storm.press("a")
            terminal.until(FRAME_END, len(terminal.output))
        open(f"{home}/work/go", "w").close()
        start = until_ready(terminal, storm.until(b" tokens in, ", start))
        start = terminal.key_until("k", composer(b"k"), start)
        terminal.keys("\x03")
        terminal.until(FRAME_END, terminal.until(composer(b"> "), start))
        terminal.keys("\x04")
        code = terminal.end()
    finally:
        terminal.close()
    return terminal, conversation, storm, code
