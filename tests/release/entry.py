"""The entry for the registry of ACP: `entry.py VERSION OUT` writes OUT/registry/nuncio from the archives in OUT, and checks it."""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

VERSION, OUT = sys.argv[1], Path(sys.argv[2])
ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/nuncio/nuncio"
ARCHIVE = re.compile(r"nuncio-(x86_64|aarch64)-unknown-linux-gnu\.tar\.gz")


def binaries():
    for path in sorted(OUT.glob("nuncio-*.tar.gz")):
        arch = ARCHIVE.fullmatch(path.name)[1]
        yield f"linux-{arch}", {
            "archive": f"{REPOSITORY}/releases/download/v{VERSION}/{path.name}",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "cmd": "./bin/nuncio",
            "args": ["acp"],
        }


package = {"package": f"nuncio@{VERSION}", "args": ["acp"]}
entry = {
    "id": "nuncio",
    "name": "nuncio",
    "version": VERSION,
    "description": "Coding agent for editors, scripts and other programs",
    "repository": REPOSITORY,
    "authors": ["nuncio contributors"],
    "license": "Apache-2.0",
    "distribution": {"binary": dict(binaries()), "npx": package, "uvx": package},
}

# The rules of the registry: https://github.com/agentclientprotocol/registry
assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", VERSION), VERSION
assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
assert entry["distribution"]["binary"], "no archive"
assert "latest" not in json.dumps(entry["distribution"])
icon = (ROOT / "editors/registry/icon.svg").read_text()
assert re.search(r'<svg[^>]* width="16" height="16" viewBox="0 0 16 16"', icon), icon
assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) == {"none", "currentColor"}, icon

directory = OUT / "registry/nuncio"
directory.mkdir(parents=True, exist_ok=True)
(directory / "agent.json").write_text(json.dumps(entry, indent=2) + "\n")
shutil.copy(ROOT / "editors/registry/icon.svg", directory)
print("registry/nuncio/agent.json")
