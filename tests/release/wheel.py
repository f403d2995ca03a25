"""The wheel for PyPI: `wheel.py TREE ARCH GLIBC VERSION EPOCH OUT` writes it and prints its file. It has the layout that maturin's `bin`
bindings produce, but contains the program that all other packages contain: maturin would compile it again."""

import base64
import hashlib
import sys
import time
import zipfile
from pathlib import Path

TREE, ARCH, GLIBC, VERSION, EPOCH, OUT = sys.argv[1:]
TREE = Path(TREE)
TAG = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{ARCH}"
INFO, DATA = f"nuncio-{VERSION}.dist-info", f"nuncio-{VERSION}.data"
METADATA = f"""Metadata-Version: 2.4
Name: nuncio
Version: {VERSION}
Summary: Coding agent for editors, scripts and other programs
License-Expression: Apache-2.0
License-File: LICENSE
Project-URL: Source, https://github.com/nuncio/nuncio
Keywords: acp,agent-client-protocol,coding-agent,cli
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: nuncio tests/release\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def files():
    """Returns the entries: name, content, mode."""
    yield f"{DATA}/scripts/nuncio", (TREE / "bin/nuncio").read_bytes(), 0o755
    for path in sorted((TREE / "share").rglob("*")):
        if path.is_file():
            yield f"{DATA}/data/share/{path.relative_to(TREE / 'share')}", path.read_bytes(), 0o644
    documents = TREE / "share/doc/nuncio"
    yield f"{INFO}/licenses/LICENSE", (documents / "LICENSE").read_bytes(), 0o644
    yield f"{INFO}/METADATA", METADATA.encode() + (documents / "README.md").read_bytes(), 0o644
    yield f"{INFO}/WHEEL", WHEEL.encode(), 0o644


path = Path(OUT) / f"nuncio-{VERSION}-{TAG}.whl"
record = []
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    def add(name, content, mode):
        entry = zipfile.ZipInfo(name, time.gmtime(max(int(EPOCH), 315532800))[:6])
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)

    for name, content, mode in files():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}")
        add(name, content, mode)
    add(f"{INFO}/RECORD", ("\n".join(record + [f"{INFO}/RECORD,,"]) + "\n").encode(), 0o644)
print(path.name)
