"""Runs programs as those of a trusted project: checks.py NUNCIO HOME."""

import json
import os
import pathlib
import subprocess
import sys

nuncio, home = sys.argv[1:3]
failed = []
SETTINGS = ".nuncio/config.toml"
LIBRARY = {
    "Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n',
    "src/lib.rs": "#[test]\nfn passes() {}\n",
}
MCP_SERVER = "from mcp.server import MCPServer\nserver = MCPServer('own')\n\n@server.tool()\ndef add(a: int, b: int) -> int:\n    return a + b\n\nserver.run()\n"
LISTENS = "import socket\nsocket.create_server(('127.0.0.1', 0))\n"

# Name, files, program, and what the user's settings must allow. A program is a check command, or
# the command of an MCP or language server; the latter has a file and a message about it.
check, mcp, lsp = "check", "mcp", "lsp"
NETWORK = "network = true"
CASES = [
    ("ruff", {"a.py": "A = 1\n"}, (check, ".venv/bin/ruff check a.py && .venv/bin/ruff format --check a.py"), None),
    ("prettier of the project", {"a.json": "{}\n"}, (check, "npx prettier --check a.json"), None),
    ("npm test", {"test.mjs": "import test from 'node:test'\ntest('passes', () => {})\n"}, (check, "npm test"), None),
    ("vitest", {"a.test.js": "import { test } from 'vitest'\ntest('passes', () => {})\n"}, (check, "npx vitest run"), None),
    ("cargo fmt, check and test", LIBRARY, (check, "cargo fmt --check && cargo check && cargo test"), None),
    ("MCP server in a virtual environment", {"server.py": MCP_SERVER}, (mcp, [".venv/bin/python", "server.py"]), None),
    ("pylsp", {"bad.py": "import os\n"}, (lsp, [".venv/bin/pylsp"], "bad.py", "'os' imported but unused"), None),
    (
        "typescript-language-server",
        {"bad.ts": 'const n: number = "text";\n'},
        (lsp, ["node_modules/.bin/typescript-language-server", "--stdio"], "bad.ts", "is not assignable"),
        None,
    ),
    (
        "pre-commit",
        {".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - {id: ruff, name: ruff, language: system, entry: .venv/bin/ruff check, files: '^a[.]py$'}\n"},
        (check, ".venv/bin/pre-commit run --all-files"),
        None,
    ),
    ("cargo with a new dependency", LIBRARY | {"Cargo.toml": LIBRARY["Cargo.toml"] + 'itoa = "1"\n'}, (check, "cargo check"), f'{NETWORK}\nwritable = ["{home}/cargo"]'),
    ("uv run", {"pyproject.toml": '[project]\nname = "sample"\nversion = "0.1.0"\ndependencies = ["idna"]\n'}, (check, ".venv/bin/uv run python -c 'import idna'"), NETWORK),
    ("MCP server by npx", {}, (mcp, ["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "."]), NETWORK),
    ("a program that listens", {"listens.py": LISTENS}, (check, "python3 listens.py"), NETWORK),
]


def run(project, *arguments):
    return subprocess.run([nuncio, *arguments], cwd=project, capture_output=True, text=True, timeout=120)


def model(project, calls):
    """Runs a turn whose model calls these tools."""
    steps = [{"tool_calls": [{"name": name, "input": input}]} for name, input in calls]
    write(home, "model.json", json.dumps({"steps": [*steps, {"text": "done"}]}))
    return run(project, "run", "--mode", "auto", "--model", f"scripted:{home}/model.json", "go")


def write(project, name, content):
    path = os.path.join(project, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)


def start(project, kind, command, *document):
    """Returns the output of a program, and whether it worked."""
    if kind == mcp:
        ran = run(project, "mcp", "check", "own")
        return ran.stdout + ran.stderr, ran.returncode == 0
    if kind == check:
        # nuncio checks the project after the turn, because the model writes a new file.
        pathlib.Path(project, "note.txt").unlink(missing_ok=True)
        ran = model(project, [("write", {"file_path": "note.txt", "content": "note\n"})])
        return ran.stdout + ran.stderr, ran.returncode == 0
    # A server that is still loading the project reports later.
    file, message = document
    ran = model(project, [("diagnostics", {"file_path": file})] * 6)
    return ran.stdout + ran.stderr, message in ran.stdout + ran.stderr


def settings(kind, command, *document):
    words = json.dumps(command)
    if kind == check:
        return f"[verify]\ncommands = [{words}]\nmax_rounds = 1\n"
    return f"[mcp.own]\ncommand = {words}\n" if kind == mcp else f"[lsp.own]\ncommand = {words}\nfiles = [{json.dumps(document[0])}]\n"


def grant(project, kind, lines):
    return f'[trust."{project}".{dict(check="checks", mcp="mcp.own", lsp="lsp.own")[kind]}]\n{lines}\n' if lines else ""


def report(name, ok, output):
    print("ok  " if ok else "FAIL", name)
    if not ok:
        failed.append(name)
        print(output)


def prepare(project, files, program):
    for name, content in (files | {SETTINGS: settings(*program)}).items():
        write(project, name, content)
    subprocess.run(["git", "add", "--all"], cwd=project, check=True)
    trusted = run(project, "trust", "--yes")
    assert trusted.returncode == 0, trusted


def try_program(name, files, program, needs):
    kind = program[0]
    # `npx` must not find an MCP server in the project.
    project = os.path.join(home, "packages" if kind == mcp and "npx" in program[1] else "project")
    write(home, "nuncio/config.toml", "")
    prepare(project, files, program)
    output, works = start(project, *program)
    if needs:
        setting = f'[trust."{project}"'
        report(f"{name}, without the setting", not works and setting in output, output)
        write(home, "nuncio/config.toml", grant(project, kind, needs))
        output, works = start(project, *program)
    report(name, works, output)


for project in ["project", "packages"]:
    subprocess.run(["git", "init", "--quiet"], cwd=os.path.join(home, project), check=True)
    write(os.path.join(home, project), ".gitignore", "node_modules\n.venv\ntarget\n.nuncio\n")
for case in CASES:
    try_program(*case)

# The programs above were confined: one like them cannot write elsewhere.
project = os.path.join(home, "project")
prepare(project, {}, (check, f"touch {home}/outside"))
output, works = start(project, check, "")
report("a check cannot write elsewhere", not works and "Permission denied" in output and not os.path.exists(f"{home}/outside"), output)

print(f"{len(failed)} failed")
sys.exit(bool(failed))
