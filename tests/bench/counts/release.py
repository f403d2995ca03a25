"""Counts that need an optimized build: instructions, memory, relocations, page faults, and windows of executed code."""

import os
import re
import shutil
import subprocess
import tempfile

from agent import Agent

TOLERANCE = {"instructions": 0.03, "anonymous-kib": 0.05, "resident-kib": 0.10, "relocations": 0.01, "minor-faults": 0.05, "windows": 0.05}
# One and the same memcpy on every processor: valgrind counts each byte of `rep movsb` as an instruction.
TUNABLES = {"GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}


def call(name, **input):
    return {"tool_calls": [{"name": name, "input": input}]}


def texts(count):
    return [{"text": "ok"}] * count


def prompts(agent, count):
    session = agent.session()
    agent.warm_up(session, count)


def one_prompt(agent, _):
    agent.prompt(agent.session())


def reads(count):
    return [call("read", file_path="f.txt", offset=n % 19 + 1) for n in range(count)] + texts(1)


def commands(count):
    return [call("bash", command=f"touch x{n}") for n in range(count)] + texts(1)


# A scenario: options of the agent for a number of units, the work, two numbers of units, and the units between them.
INSTRUCTIONS = {
    "start": (lambda _: {"steps": []}, lambda agent, _: None, None, 1, 1),
    "session/new": (lambda _: {"steps": []}, lambda agent, count: [agent.session() for _ in range(count)], 5, 25, 20),
    "prompt/scripted": (lambda count: {"steps": texts(count)}, prompts, 10, 50, 40),
    "prompt/http": (lambda _: {}, prompts, 10, 50, 40),
    "prompt/turn-400": (lambda _: {}, prompts, 400, 420, 20),
    "read": (lambda count: {"steps": reads(count)}, one_prompt, 10, 50, 40),
    "bash": (lambda count: {"steps": commands(count)}, one_prompt, 5, 15, 10),
    "delta": (lambda count: {"deltas": count}, one_prompt, 200, 2200, 2000),
}


def executed(program, options, work, count, extra=()):
    """Runs a scenario under callgrind. Returns the text of its output."""
    with tempfile.TemporaryDirectory(prefix="counts-", dir="/tmp") as top:
        file = f"{top}/callgrind"
        wrap = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={file}", *extra]
        agent = Agent(program, top, wrap=wrap, environment=TUNABLES, **options(count)).initialize()
        try:
            work(agent, count)
        finally:
            agent.end()
        with open(file) as output:
            return output.read()


def instructions(output):
    return int(re.search(r"^(?:summary|totals): (\d+)", output, re.MULTILINE)[1])


def windows(output):
    """Returns the number of windows of 64 KiB of the program's code in which an instruction ran."""
    found, names, is_program, address = set(), {}, False, 0
    for line in output.splitlines():
        if file := re.match(r"(c?)ob=(\(\d+\))(?: (.*))?", line):
            names.setdefault(file[2], file[3] or "")
            # `cob` is the file of a called function.
            is_program = is_program if file[1] else names[file[2]].endswith("/nuncio")
        moved = re.match(r"(?:0x([0-9a-f]+)|\+(\d+)|-(\d+)|(\*)) ", line)
        if moved:
            address = int(moved[1], 16) if moved[1] else address + int(moved[2] or 0) - int(moved[3] or 0)
            if is_program:
                found.add(address >> 16)
    return len(found)


def settle_cache(program, copy):
    """Copies the program, and reads it page by page, so that the page cache has no large folios of it."""
    shutil.copy(program, copy)
    with open(copy, "rb", buffering=0) as file:
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for offset in range(0, os.fstat(file.fileno()).st_size, 4096):
            os.pread(file.fileno(), 1, offset)


def anonymous(agent):
    with open(f"/proc/{agent.pid}/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous"))


def resident(agent):
    """Returns the resident memory of the program and its helper, in KiB."""
    pids, total = [agent.pid], 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as status:
            total += next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                pids.extend(int(child) for child in children.read().split())
    return total


def minor_faults(agent):
    with open(f"/proc/{agent.pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[7])


def memory(program):
    """Returns anonymous memory at moments of a session, what each turn adds, and page faults of a start."""
    figures = {}
    with tempfile.TemporaryDirectory(prefix="counts-", dir="/tmp") as top:
        copy = f"{top}/nuncio"
        settle_cache(program, copy)
        agent = Agent(copy, top).initialize()
        try:
            figures["start", "minor-faults"] = minor_faults(agent)
            figures["start", "anonymous-kib"] = anonymous(agent)
            figures["start", "resident-kib"] = resident(agent)
            session = agent.session()
            figures["session/new", "anonymous-kib"] = anonymous(agent)
            after = {}
            for turns, name in ((1, "first-prompt"), (200, "200-turns"), (600, None)):
                agent.warm_up(session, turns - max(after, default=0))
                agent.settle()
                after[turns] = anonymous(agent)
                if name:
                    figures[name, "anonymous-kib"] = after[turns]
                    figures[name, "resident-kib"] = resident(agent)
            figures["turn", "anonymous-kib"] = (after[600] - after[200]) / 400
        finally:
            agent.end()
    with tempfile.TemporaryDirectory(prefix="counts-", dir="/tmp") as top:
        agent = Agent(program, top, deltas=20_000).initialize()
        try:
            agent.warm_up(agent.session(), 1)
            agent.settle()
            figures["20000-deltas", "anonymous-kib"] = anonymous(agent)
        finally:
            agent.end()
    return figures


def measure(program):
    figures, uncounted = memory(program), {}
    if shutil.which("readelf"):
        sections = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True, check=True).stdout
        figures["program", "relocations"] = sections.count("_RELATIVE")
    else:
        uncounted["relocations"] = "no readelf"
    if not shutil.which("valgrind"):
        return figures, uncounted | {"instructions, windows": "no valgrind"}
    for name, (options, work, first, second, units) in INSTRUCTIONS.items():
        extra = ["--dump-instr=yes"] if name == "start" else []
        output = executed(program, options, work, second, extra)
        less = instructions(executed(program, options, work, first)) if first else 0
        figures[name, "instructions"] = (instructions(output) - less) / units
        if name == "start":
            figures[name, "windows"] = windows(output)
    return figures, uncounted
