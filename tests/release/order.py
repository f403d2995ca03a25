#!/usr/bin/env python3
"""Links a program again with the functions that run beside each other.

  order.py trace PROGRAM LIST
  order.py script LIST SCRIPT
  order.py link KEPT LIST OUT

PROGRAM, which has its symbols, is traced with callgrind. LIST has the names of its functions, one a line. SCRIPT, for the linker of
zig, which takes no list, puts the functions of a build for this or another processor into this order. KEPT is what the linker
`keep-link` kept of PROGRAM, and OUT is PROGRAM with its functions in order, without symbols.

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


def trace(program, order):
    names = listed(program)
    with open(order, "w") as file:
        file.writelines(f"{name}\n" for name in names)


def script(order, file):
    """Writes a linker script that puts the functions of a list first. After their names, it has them without the hashes of Rust, which
    differ between processors."""
    with open(order) as lines:
        names = [name for line in lines if re.fullmatch(r"[A-Za-z_][\w.$]*", name := line.rstrip("\n"))]
    patterns = [re.sub(r"(?<=Cs)[0-9A-Za-z]+(?=_)", "*", re.sub(r"17h[0-9a-f]{16}E.*", "17h*", name)) for name in names]
    with open(file, "w") as out:
        out.write("SECTIONS { .text.ordered : {\n")
        out.writelines(f"*(.text.{name} .text.unlikely.{name})\n" for name in dict.fromkeys(names + patterns))
        out.write("} } INSERT BEFORE .text;\n")


def link(kept, order, out):
    with open(f"{kept}/arguments") as lines:
        arguments = lines.read().splitlines()
    arguments[arguments.index("-o") + 1] = out
    ordering = [f"-Wl,--symbol-ordering-file={order}", "-Wl,--no-warn-symbol-ordering", "-Wl,--strip-all"]
    subprocess.run(["cc", *arguments, *ordering], check=True)


{"trace": trace, "script": script, "link": link}[sys.argv[1]](*sys.argv[2:])
