"""Renders the examples of CommonMark: `nuncio run` on a terminal shows each word of their results in
order."""

import html
import json
import os
import random
import re
import subprocess
import time

from conversation import environment, prepare
from recorder import Recorder

# Columns of the terminal: narrow enough for tables and lists to wrap.
COLUMNS = 40


def examples():
    """Returns the examples of the specification, which are installed and not committed."""
    code = "import('commonmark-spec').then(spec => console.log(JSON.stringify(spec.default.tests)))"
    done = subprocess.run(["node", "-e", code], cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    tests = json.loads(done.stdout)
    for test in tests:
        test["markdown"] = test["markdown"].replace("→", "\t")
        test["html"] = test["html"].replace("→", "\t")
    return tests


def words(text):
    return re.findall(r"[^\W_]+", text)


def expected_words(example, border):
    """Returns the words that the result shows. `border`: tags of emphasis and links end a word."""
    text = re.sub(r"</?(em|strong|a|del|img)( [^>]*)?/?>", border, example["html"])
    text = re.sub(r"<[^>]*>", " ", text)
    return words(html.unescape(text))


def is_in_order(wanted, found):
    rest = iter(found)
    return all(word in rest for word in wanted)


def run(nuncio, home, steps):
    """Runs a prompt for each step. Returns what the terminal shows, and the exit code."""
    command = prepare(home, steps, nuncio, "auto")
    model = command[command.index("--model") + 1]
    prompts = [part for number in range(len(steps)) for part in ("-p", f"p{number}")]
    variables = {**environment(home), "NO_COLOR": "1"}
    terminal = Recorder([nuncio, "run", "--model", model, *prompts], f"{home}/work", variables, 24, COLUMNS)
    while terminal.read(60) is not False:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1])
    return bytes(terminal.output).decode("utf-8", "replace").replace("\r\n", "\n"), code


def commonmark(nuncio, home):
    """Returns the examples whose words are not shown in order."""
    tests = examples()
    shown, code = run(nuncio, home, [{"text": example["markdown"]} for example in tests])
    answers = re.split(r"(?m)^· [^\n]*tokens in, [^\n]*\n", shown)
    complaints = [f"exit code {code}: {shown[-200:]!r}"] if code else []
    if len(answers) != len(tests) + 1:
        return [*complaints, f"{len(answers) - 1} answers to {len(tests)} prompts"]
    for example, answer in zip(tests, answers):
        if not any(is_in_order(expected_words(example, border), words(answer)) for border in ("", " ")):
            complaints.append(f"example {example['number']}: {example['markdown']!r} is shown as {answer!r}")
    return complaints


# Parts of large texts, which take time that is linear in their size. They are chosen at random,
# because nuncio stops a model that repeats itself.
LARGE = {
    "quotes and lists": ["> ", "- ", "1. "],
    "lists": ["- a\n", "  - b\n", "    - c\n", "1. d\n", "   e\n"],
    "brackets": ["[", "![", "[a", "](", "]", "<"],
    "backticks": ["`a", "``b", "```c ", "~~"],
    "emphasis": ["*a ", "**b ", "_c", "***d"],
    "rows": ["| a | b |\n", "|c\n", "| d | e | f\n"],
    "columns": ["|a", "|b", "|"],
    "links": ["[a](b) ", "[c]: d\n", "[c] ", "<a@b.c> "],
    "lazy lines": ["> - a\n", "b\n", ">> c\n"],
    "entities": ["&#27;[2J", "&amp;", "&#x9b;"],
}
LARGE_BYTES = 1 << 20


def large(nuncio, home):
    """Returns the large texts that take more than three times as long as their half."""
    complaints = []
    chance = random.Random(1)
    for number, (name, parts) in enumerate(LARGE.items()):
        times = []
        for size in (LARGE_BYTES // 2, LARGE_BYTES):
            text = ("|a|b|\n|-|-|\n" if name == "rows" else "") + "".join(chance.choice(parts) for _ in range(size * len(parts) // len("".join(parts))))
            directory = f"{home}/{number}-{size}"
            os.mkdir(directory)
            started = time.monotonic()
            shown, code = run(nuncio, directory, [{"text": text + "\n\nthe end"}])
            times.append(time.monotonic() - started)
            if code or "the end" not in shown or "\x1b" in shown:
                complaints.append(f"{name}: exit code {code}: {shown[-100:]!r}")
        if times[1] > 3 * times[0] + 0.5:
            complaints.append(f"{name}: {times[0]:.1f} s and {times[1]:.1f} s")
    return complaints
