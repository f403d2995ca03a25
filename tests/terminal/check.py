"""Draws the chat in other terminals: check.py NUNCIO HOME [SEED...]."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import tmux_cases
from commonmark import commonmark, large
from conversation import PROMPT, RESUME, USAGE, faults, forbidden, matches, without_first_rows
from recorder import FRAME_END
from recordings import chat, composer, record, until_ready

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds of a replay of all recordings.
REPLAY = 60
nuncio, home, *seeds = sys.argv[1:]
seeds = [int(seed) for seed in seeds] or list(range(1, 6))
failed, passed = [], 0

# Name, number of chats, whether the height changes, the widths, the length of the longest line of
# an answer, the name of the terminal, and how many rows that were drawn again may remain: none, one
# for each time that the terminal becomes narrower, or any number. The rows below the output are up to
# 78 columns wide, and a terminal that becomes narrower wraps them. The status row is wider, unless
# the name is one of xterm.js, which moves the cursor when it wraps a row below it.
STORMS = [
    ("one size", 2, False, None, 300, "vscode", "none"),
    ("heights", 3, True, None, 300, "vscode", "none"),
    ("widths from 80", 3, True, (80, 200), 75, "vscode", "none"),
    ("widths from 80, without a name", 3, True, (80, 200), 75, "", "one"),
    ("all widths", 5, True, (40, 200), 300, "vscode", "any"),
]


def directory():
    """Creates a directory with a short name: the status row shows it as a part of the model."""
    path = f"{home}/{len(os.listdir(home))}"
    os.mkdir(path)
    return path


def case(name, complaints, note=""):
    """Counts and prints a case, with at most ten of its complaints."""
    global passed
    print(f"{'FAILED' if complaints else 'ok    '}  {name}{note and f' ({note})'}", flush=True)
    for complaint in complaints[:10]:
        print(f"        {complaint[:160]}")
    if len(complaints) > 10:
        print(f"        and {len(complaints) - 10} more")
    failed.extend([name] * bool(complaints))
    passed += not complaints


def attempt(name, run, *arguments):
    """Runs a case that raises an error when it fails. Returns its result."""
    started = time.monotonic()
    try:
        result, complaints = run(nuncio, directory(), *arguments), []
    except (AssertionError, OSError) as error:
        result, complaints = None, str(error).split("\n")
    if complaints or result is None:
        case(name, complaints, f"{time.monotonic() - started:.1f} s")
    return result


def replay(recordings):
    """Returns what xterm.js shows of each recording."""
    lines = "".join(json.dumps(recording) + "\n" for recording in recordings)
    done = subprocess.run(["node", f"{HERE}/xterm.mjs"], input=lines, capture_output=True, text=True, timeout=REPLAY)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def trimmed(state):
    lines = state["above"] + state["screen"]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def keep(recording, name):
    """Keeps the recording of a failure, because the next run has another timing."""
    os.makedirs(f"{HERE}/failed", exist_ok=True)
    with open(f"{HERE}/failed/{name}.json", "w") as file:
        json.dump(recording, file)


def check_storm(name, count, heights, widths, longest, program, may_remain):
    """Chats in xterm.js while keys are pressed and the size changes."""
    started, resizes, narrowings, chats = time.monotonic(), 0, 0, []
    for seed in seeds[:count]:
        recorded = attempt(f"xterm.js, {name}, seed {seed}", record, seed, heights, widths, longest, program)
        if recorded:
            chats.append((seed, *recorded))
            resizes += recorded[2].resizes
            narrowings += recorded[2].narrowings
    if not chats:
        return
    lost, left, cleared = [], [], []
    for (seed, terminal, conversation, _, code), states in zip(chats, replay([recorded[1].recording() for recorded in chats])):
        missing, repeated, remains = faults(conversation.expected + [RESUME], trimmed(states[-1]))
        lost += [f"seed {seed}: missing {line}" for line in missing] + [f"exit code {code}"] * bool(code)
        # Remains of a message that was being written can equal a line of it.
        left += [f"seed {seed}: more than once: {line}" for line in repeated]
        left += [f"seed {seed}: {line}" for line in remains]
        cleared += [f"seed {seed}: {sequence}" for sequence in forbidden(bytes(terminal.output))]
        if missing or cleared or (repeated or remains) and may_remain == "none":
            keep(terminal.recording(), f"{name.replace(' ', '-')}-{seed}")
    note = f"{len(chats)} chats, {resizes} sizes, {time.monotonic() - started:.1f} s"
    case(f"xterm.js, {name}: each line in order", lost, note)
    check_remains(f"xterm.js, {name}", left, {"none": 0, "one": narrowings, "any": None}[may_remain])
    case(f"xterm.js, {name}: nothing is cleared", cleared)


def check_remains(name, left, most):
    """Rows that were drawn again stand once. Of those that the terminal may wrap, at most `most` remain,
    or any number."""
    if most == 0:
        case(f"{name}: each line once, and no remains of redrawn rows", left)
    elif most is not None:
        case(f"{name}: at most one row remains for each narrowing", left if len(left) > most else [], f"{len(left)} of {most}")
    else:
        print(f"        {name}: {len(left)} remains of redrawn rows")


def idle(nuncio, home):
    """The rows below the output stay whole when the size changes and nothing else happens."""
    terminal = chat(nuncio, home, [{"text": "the answer"}], 200)
    sizes = [(24, 150), (10, 150), (30, 150), (6, 150), (24, 100), (24, 80), (8, 80), (24, 120)]
    try:
        terminal.keys(f"{PROMPT}\r")
        start = until_ready(terminal, terminal.until(b" tokens in, "))
        terminal.keys("first\nsecond")
        terminal.until(FRAME_END, terminal.until(composer(b"  second"), start))
        for size in sizes:
            start = len(terminal.output)
            terminal.resize_now(*size)
            # A whole frame, or only the place of the cursor.
            while not re.search(rb"(\x1b\[\?2026l|\r\x1b\[\d+C)$", terminal.output[start:]):
                assert terminal.read(10), f"no frame after the size {size}"
            terminal.snapshot()
        terminal.keys("\x03")
        terminal.until(FRAME_END, terminal.until(composer(b"> "), start))
        terminal.keys("\x04")
        terminal.end()
    finally:
        terminal.close()
    complaints = []
    expected = ["", f"> {PROMPT}", "", "the answer", "", USAGE, "> first", "  second", re.compile("  [?] keys · /help .*")]
    for size, state in zip(sizes, replay([terminal.recording()])[0]):
        shown = without_first_rows(trimmed(state))
        if len(shown) != len(expected) or not all(map(matches, expected, shown)):
            complaints.append(f"{size[0]} rows of {size[1]} columns: {shown[4:]}")
    if complaints:
        keep(terminal.recording(), "idle")
    return complaints


# `run` ends this process so, which must end tmux and the chats.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
for storm in STORMS:
    check_storm(*storm)
case("xterm.js: an idle chat is whole in each size", attempt("xterm.js, idle", idle) or [])

for run in (tmux_cases.first, tmux_cases.stop, tmux_cases.suspend, tmux_cases.terminate, tmux_cases.request):
    attempt(f"tmux: {run.__doc__.splitlines()[0].rstrip('.')}", run)
for name, widths, longest, most in [("widths from 80", (80, 200), 75, 0), ("all widths", (40, 200), 300, None)]:
    shown = attempt(f"tmux, {name}", tmux_cases.storm, seeds[0], widths, longest)
    if shown:
        conversation, lines, resizes = shown
        missing, repeated, remains = faults(conversation.expected + [RESUME, "exit code 0"], lines)
        case(f"tmux, {name}: each line in order", missing, f"{resizes} sizes")
        check_remains(f"tmux, {name}", repeated + remains, most)

case("each word of the examples of CommonMark, in order", attempt("CommonMark", commonmark) or [])
case("large Markdown takes linear time", attempt("large Markdown", large) or [])

print(f"{passed} passed, {len(failed)} failed")
sys.exit(bool(failed))
