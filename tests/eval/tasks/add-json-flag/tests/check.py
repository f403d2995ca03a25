"""Runs logstat on files in a temporary directory, with and without --json."""
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.abspath("logstat.py")
directory = tempfile.TemporaryDirectory()
CONTENT = {
    "a.log": b"INFO started\nERROR no space left\nERROR again\n",
    "b ü.log": "INFO grün\nnothing\n".encode(),
    "empty.log": b"",
    "odd.log": b"WARN \xff\xfe\n\nDEBUG end",
}
for name, content in CONTENT.items():
    with open(os.path.join(directory.name, name), "wb") as file:
        file.write(content)
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}


def logstat(*arguments, code=0, given=b"", errors=b""):
    ended = subprocess.run([sys.executable, SCRIPT, *arguments], cwd=directory.name, env=env, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert ended.returncode == code and ended.stderr == errors, (arguments, ended)
    return ended.stdout.decode("utf-8")


def stats(lines, size, **levels):
    return {"lines": lines, "bytes": size, "levels": levels}


a, b, empty = stats(3, 45, ERROR=2, INFO=1), stats(2, 19, INFO=1), stats(0, 0)
names = list(CONTENT)
assert json.loads(logstat("--json", "a.log")) == {**a, "files": {"a.log": a}}
assert json.loads(logstat("a.log", names[1], "empty.log", "--json")) == {
    **stats(5, 64, ERROR=2, INFO=2), "files": {"a.log": a, names[1]: b, "empty.log": empty},
}
errors = stats(2, 32, ERROR=2)
assert json.loads(logstat("--json", "--level", "ERROR", "a.log", names[1])) == {**errors, "files": {"a.log": errors, names[1]: empty}}
for arguments in (["--json"], ["--json", "-"]):
    assert json.loads(logstat(*arguments, given=CONTENT["a.log"])) == {**a, "files": {"-": a}}
missing = b"logstat: missing.log: No such file or directory\n"
assert json.loads(logstat("--json", "missing.log", "a.log", code=1, errors=missing)) == {**a, "files": {"a.log": a}}
assert json.loads(logstat("--json", "missing.log", code=1, errors=missing)) == {**empty, "files": {}}
odd = stats(3, 18, WARN=1, DEBUG=1)
assert json.loads(logstat("--json", "odd.log")) == {**odd, "files": {"odd.log": odd}}
assert logstat("a.log") == "a.log: 3 lines, 45 bytes, ERROR 2, INFO 1\n"
assert logstat("a.log", "missing.log", "empty.log", code=1, errors=missing) == (
    "a.log: 3 lines, 45 bytes, ERROR 2, INFO 1\nempty.log: 0 lines, 0 bytes\ntotal: 3 lines, 45 bytes, ERROR 2, INFO 1\n"
)
usage = logstat("--help")
assert "--json" in usage.split("options:")[-1].split("optional arguments:")[-1], "the help explains --json"
with open("README.md", encoding="utf-8") as file:
    assert "--json" in file.read()
assert subprocess.run([sys.executable, "-m", "unittest", "-q"], env=env).returncode == 0
print("all checks passed")
