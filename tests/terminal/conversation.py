"""A scripted conversation, and what a terminal must show of it."""

import json
import os
import re

PROMPT = "go"
USAGE = re.compile(r"· [\d.]+k? tokens in, [\d.]+k? out · .+")
CALL = re.compile(r"● echo started; .* · exit 0 · .+")
RESUME = re.compile(r"To continue this session: nuncio chat --resume sess_[0-9a-f]{32}")
ANSWER = re.compile(r"line[ -]\d{4}")
# Sequences that clear what the user had before, or that take lines out of the scrollback.
FORBIDDEN = {"ED 2": rb"\x1b\[2J", "ED 3": rb"\x1b\[3J", "DECSTBM": rb"\x1b\[[\d;]*r", "RIS": rb"\x1bc"}


class Conversation:
    """Two answers of random lines, and between them a command that waits for the file `go`."""

    def __init__(self, random, count, longest, wide=True):
        self.random, self.longest, self.wide = random, longest, wide
        self.number = 0
        first, second = self.answer(count), self.answer(count)
        command = "echo started; until test -e go; do sleep 0.01; done; echo finished"
        call = {"name": "bash", "input": {"command": command}}
        self.steps = [
            {"text": self.markdown(first), "chunk_chars": 7, "delay_ms": 1, "tool_calls": [call]},
            {"text": self.markdown(second), "chunk_chars": 23, "delay_ms": 1},
        ]
        # The lines of the terminal above the composer: texts or patterns.
        self.expected = ["", f"> {PROMPT}", ""]
        self.expected += self.rows(first)
        self.expected += ["", CALL, "  started", "  finished", ""]
        self.expected += self.rows(second) + ["", USAGE]

    def answer(self, count):
        """Returns kinds and lines. nuncio does not break them: code, short lines and long words."""
        first, self.number = self.number + 1, self.number + count
        lines = [self.line(number) for number in range(first, self.number)]
        # After a code block at its end, nuncio prints an empty line.
        return [*lines, ("short", f"line {self.number:04}")]

    def line(self, number):
        start = f"line {number:04}"
        kind = self.random.choice(["code", "code", "code", "short", "word"])
        length = self.random.choice([0, self.random.randrange(30), self.random.randrange(self.longest)])
        # Without `wide`, these lines are narrower than any terminal.
        wide = self.random.random() < 0.2
        length = length if self.wide or not wide else length % 30
        letters = "漢字仮名交" if wide else "abcdefghij"
        count = length // 2 if wide else length
        filler = "".join(self.random.choice(letters) for _ in range(count))
        match kind:
            case "short":
                return kind, f"{start} {filler}"[: 24 if wide else 39].rstrip()
            case "word":
                return kind, f"line-{number:04}-{filler}"
            case _:
                return kind, f"{start} {filler}".rstrip()

    @staticmethod
    def rows(lines):
        """Returns the rows of an answer: rules surround code."""
        rows, in_code = [], False
        for kind, line in lines:
            if (kind == "code") != in_code:
                rows, in_code = [*rows, "───"], not in_code
            rows.append(line)
        return rows

    @staticmethod
    def markdown(lines):
        text, in_code = "", False
        for kind, line in lines:
            if (kind == "code") != in_code:
                text, in_code = text + "```\n", not in_code
            # Two blanks are a line break.
            text += line + ("\n" if in_code else "  \n")
        return text.rstrip()


def matches(wanted, line):
    return bool(wanted.fullmatch(line)) if isinstance(wanted, re.Pattern) else wanted == line


def without_first_rows(lines):
    """Omits the rows with which a chat begins: its version, directory, model and mode."""
    ends = [number for number, line in enumerate(lines[:8]) if line.endswith("? keys")]
    return lines[ends[0] + 1 :] if ends else lines


def faults(expected, shown):
    """Compares what a terminal shows with what it should show. Returns the lines that are missing,
    the lines of answers that stand more than once or in another order, and the lines that nobody
    printed: remains of redrawn rows."""
    shown = without_first_rows(shown)
    wanted = [line for line in expected if isinstance(line, str) and ANSWER.match(line)]
    found = [line for line in shown if line in set(wanted)]
    missing = [line for line in wanted if line not in found]
    once = list(dict.fromkeys(found))
    repeated = [line for line in once if found.count(line) > 1]
    if once != [line for line in wanted if line in found]:
        repeated.append("another order")
    remains, others = [], [line for line in expected if line not in wanted]
    for line in shown:
        if line in wanted:
            continue
        if others and matches(others[0], line):
            others.pop(0)
        else:
            remains.append(line)
    return missing + [f"no {line!r}" for line in others], repeated, remains


def forbidden(output):
    return [name for name, pattern in FORBIDDEN.items() if re.search(pattern, output)]


def environment(home):
    return {**os.environ, "NUNCIO_HOME": f"{home}/nuncio", "TERM": "xterm-256color"}


def prepare(home, steps, nuncio, *arguments):
    """Writes the script of a model, and returns the command of a chat with it in `work`."""
    os.makedirs(f"{home}/work")
    with open(f"{home}/m.json", "w") as file:
        json.dump({"steps": steps}, file)
    return [nuncio, "chat", "--model", f"scripted:{home}/m.json", "--mode", *arguments]
