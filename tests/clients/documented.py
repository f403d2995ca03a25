"""Runs the programs of docs/CLIENTS.md, which this file takes from the page: `python3 documented.py NUNCIO`. Code blocks with a file name
are written to a directory, next to the clients that the page's generators make. TypeScript is also checked by tsc. Each program works on a
file with a byte order mark, CRLF and no last newline, which it must change by exactly the edited bytes, and prints what the page says; the
HTTP clients also with a server whose event streams are cut. Exits with 1 and the reason when something does not hold."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NUNCIO = str(Path(sys.argv[1]).resolve())
NODE = os.environ.get("NODE22", "node")
BEFORE = "\ufeffHello, world\r\nna\u00efve  \t\r\n\r\nno newline here".encode()
AFTER = BEFORE.replace(b"Hello, world", b"Good morning, world")

# Program, how it is started, whether it is also run with cut event streams.
PROGRAMS = [
    ("acp.ts", [NODE], False),
    ("acp_client.py", [sys.executable], False),
    ("rest.ts", [NODE], True),
    ("rest.py", [sys.executable], True),
    ("rest.sh", ["bash"], True),
]


def fail(why):
    sys.exit(f"documented.py: {why}")


def blocks(page):
    """Returns the code blocks of the page that have a file name, by that name."""
    found = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    programs = {name for name, _, _ in PROGRAMS} | {"follow.ts", "follow.py", "output"}
    if set(found) != programs:
        fail(f"the page has the files {sorted(found)}, not {sorted(programs)}")
    return found


def must(command, **options):
    """Runs a command, which must succeed."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    if ran.returncode != 0:
        fail(f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}")


def generate(site):
    """Makes the clients as the page says, and checks the types of all TypeScript files."""
    schema, tools = ROOT / "schema/openapi.json", HERE / "node_modules/.bin"
    must([tools / "openapi-typescript", schema, "--output", site / "nuncio.d.ts"])
    config = site / "python.yml"
    config.write_text("post_hooks: []\n")
    generator = "from openapi_python_client.cli import app; app()"
    must([sys.executable, "-c", generator, "generate", "--path", schema, "--meta", "none", "--output-path", site / "nuncio_client", "--config", config])
    (site / "node_modules").symlink_to(HERE / "node_modules")
    (site / "package.json").write_text('{ "type": "module" }')
    options = "--noEmit --strict --noUncheckedIndexedAccess --skipLibCheck --target es2022 --module nodenext --types node"
    options += " --allowImportingTsExtensions --erasableSyntaxOnly"
    must([tools / "tsc", *options.split(), *sorted(site.glob("*.ts"))], cwd=site)


def run(site, name, interpreter, expected, lossy):
    """Runs one program, and compares its output and the file."""
    with tempfile.TemporaryDirectory(prefix="nuncio-documented-") as temp:
        temp = Path(temp).resolve()
        (temp / "bin").mkdir()
        (temp / "work").mkdir()
        cuts, program = temp / "cuts", temp / "bin/nuncio"
        through = f'"{sys.executable}" "{HERE}/lossy_server.py" ' if lossy else ""
        program.write_text(f'#!/bin/sh\nexec {through}"{NUNCIO}" "$@"\n')
        program.chmod(0o755)
        file = temp / "work/greeting.txt"
        file.write_bytes(BEFORE)
        environment = os.environ | {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "NUNCIO_HOME": str(temp / "nuncio"),
            "NUNCIO_MODEL": f"scripted:{HERE / 'documented.json'}",
            "LOSSY_SERVER_CUTS": str(cuts),
        }
        with open(temp / "log", "w+") as log:
            try:
                command = [*interpreter, site / name]
                ran = subprocess.run(command, cwd=temp / "work", env=environment, stdout=subprocess.PIPE, stderr=log, timeout=30)
            except subprocess.TimeoutExpired as expired:
                log.seek(0)
                fail(f"{name}: no end after 30 s: {expired.stdout}\n{log.read()[-3000:]}")
            log.seek(0)
            said = ran.stdout.decode()
            if (ran.returncode, said) != (0, expected):
                fail(f"{name}{' with cut streams' if lossy else ''}: {ran.returncode}: {said!r}, not {expected!r}\n{log.read()[-3000:]}")
        if file.read_bytes() != AFTER:
            fail(f"{name}: greeting.txt is {file.read_bytes()!r}")
        if lossy and int(cuts.read_text()) < 3:
            fail(f"{name}: only {cuts.read_text()} streams were cut")


with tempfile.TemporaryDirectory(prefix="nuncio-documented-") as site:
    site = Path(site).resolve()
    files = blocks((ROOT / "docs/CLIENTS.md").read_text())
    expected = files.pop("output")
    for name, text in files.items():
        (site / name).write_text(text)
    generate(site)
    can_shell = shutil.which("jq") and shutil.which("curl")
    if not can_shell:
        print("skipped: rest.sh needs curl and jq")
    runs = [
        (name, interpreter, lossy)
        for name, interpreter, over_http in PROGRAMS
        for lossy in ([False, True] if over_http else [False])
        if can_shell or name != "rest.sh"
    ]
    # The programs mostly wait for the model.
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(run, site, name, interpreter, expected, lossy) for name, interpreter, lossy in runs]:
            done.result()
