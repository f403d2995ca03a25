#!/usr/bin/env python3
"""Links a program again with the functions that run beside each other.

  order.py KEPT PROGRAM LIST OUT

KEPT is what the linker `keep-link` kept of PROGRAM, which has its symbols. LIST has the names of functions, one a line; if it is
missing, PROGRAM is traced with callgrind and the list is written. OUT is the program, without symbols.

The kernel maps the 64 KiB around each page of code that runs, so functions that lie far from each other cost memory and page
faults. The start comes first, then what a session runs in addition, a prompt, and tools. The helper that starts commands cannot
run under callgrind, so the functions of its modules follow by their names.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench/counts"))
from agent import Agent  # noqa: E402


def call(name, **input):
    return {"tool_calls": [{"name": name, "input": input}]}


STEPS = [
    call("list", path="."), call("read", file_path="f.txt"), call("grep", pattern="line"), call("glob", pattern="*.txt"),
    call("edit", file_path="f.txt", old_string="a line of text\na line", new_string="one line of text\na line"),
    call("write", file_path="new.txt", content="new\n"), call("bash", command="echo done"), call("repo_map"),
    call("plan", entries=[{"content": "Look", "status": "pending"}]), {"text": "done"}, {"text": "again"},
]
HELPER = re.compile(r"6nuncio7process")


def traced(program, work, **options):
    """Returns the names of the functions of the program that run, in the file of callgrind."""
    with tempfile.TemporaryDirectory(prefix="order-", dir="/tmp") as top:
        file = f"{top}/callgrind"
        wrap = ["valgrind", "-q", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={file}"]
        agent = Agent(program, top, wrap=wrap, **options).initialize()
        try:
            work(agent)
        finally:
            agent.end()
        with open(file) as output:
            return names(output, os.path.basename(program))


def names(output, program):
    """Returns the functions of the program in an output of callgrind."""
    files, functions, found, is_program = {}, {}, set(), False
    for line in output:
        if match := re.match(r"(c?)(ob|fn)=(\(\d+\))(?: (.*))?$", line.rstrip("\n")):
            table = files if match[2] == "ob" else functions
            table.setdefault(match[3], match[4] or "")
            if not match[1] and match[2] == "ob":
                is_program = os.path.basename(files[match[3]]) == program
            elif not match[1] and is_program:
                found.add(functions[match[3]].split("'")[0])
    return found


def use(agent):
    session = agent.session()
    for _ in range(3):
        agent.prompt(session)
    agent.load(session)


def prompt(agent):
    agent.prompt(agent.session())


def listed(program):
    """Returns the names for the list: each group is sorted, because threads run in another order each time."""
    groups = [
        traced(program, lambda _: None, steps=[]),
        traced(program, Agent.session, steps=[]),
        traced(program, prompt, deltas=50),
        traced(program, use, steps=STEPS) | traced(program, use, deltas=50),
    ]
    symbols = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    groups.append({line.split()[2] for line in symbols.splitlines() if line.split()[1] in "tT" and HELPER.search(line)})
    names = []
    for group in groups:
        names += sorted(group.difference(names))
    return names


def link(kept, order, out):
    with open(f"{kept}/arguments") as lines:
        arguments = lines.read().splitlines()
    arguments[arguments.index("-o") + 1] = out
    ordering = [f"-Wl,--symbol-ordering-file={order}", "-Wl,--no-warn-symbol-ordering", "-Wl,--strip-all"]
    subprocess.run(["cc", *arguments, *ordering], check=True)


def main():
    kept, program, order, out = sys.argv[1:]
    if not os.path.exists(order):
        names = listed(program)
        with open(order, "w") as file:
            file.writelines(f"{name}\n" for name in names)
    link(kept, order, out)


main()
