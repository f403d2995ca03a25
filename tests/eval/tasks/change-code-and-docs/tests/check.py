"""Checks the options, the examples of the documentation and its table."""
import doctest
import inspect
import os
import random
import re
import subprocess
import sys
from unittest import mock

sys.path.insert(0, os.getcwd())
import fetch
import retry as module
from retry import pauses, retry

near = lambda found, expected: len(found) == len(expected) and all(abs(one - other) < 1e-9 for one, other in zip(found, expected))
assert near(pauses(attempts=4, delay=250, factor=2), [0.25, 0.5, 1.0]) and near(pauses(), [0.5, 0.5])


def slept(**options):
    found = []
    try:
        retry(lambda: 1 / 0, sleep=found.append, **options)
    except ZeroDivisionError:
        return found
    raise AssertionError("the last exception is raised")


assert near(slept(), [0.5, 0.5]) and near(slept(delay=20, attempts=2), [0.02]) and near(slept(delay=0), [0, 0])
random.seed(1)
found = {round(pause * 1000, 6) for _ in range(400) for pause in slept(delay=10, jitter=3, attempts=4)}
assert min(found) >= 10 and max(found) <= 13, found
assert found == {10, 11, 12, 13}, found
for function in (lambda: pauses(wait=1), lambda: retry(int, wait=1)):
    try:
        function()
    except TypeError:
        continue
    raise AssertionError("wait is still accepted")
real, waited = module.retry, []


def spy(*arguments, **options):
    return real(*arguments, **{**options, "sleep": waited.append})


with mock.patch.object(fetch if callable(fetch.retry) else module, "retry", spy):
    try:
        fetch.read("/missing/file")
    except OSError:
        pass
assert near(waited, [0.02, 0.04, 0.08, 0.16]), waited

texts = {name: open(name, encoding="utf-8").read() for name in ("README.md", "docs/options.md")}
examples = 0
for name, text in texts.items():
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    examples += len(test.examples)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0, name
    assert not re.search(r"\bwait=", text) and "`wait`" not in text, name
assert examples >= 6, "examples were removed"
rows = {}
for line in texts["docs/options.md"].splitlines():
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if re.fullmatch(r"`\w+`", cells[0]):
        rows[cells[0].strip("`")] = cells
assert set(rows) == {"attempts", "delay", "jitter", "factor", "catch"}, rows
defaults = {name: parameter.default for name, parameter in inspect.signature(retry).parameters.items()}
for name, cells in rows.items():
    shown = eval(cells[1].strip("`"))
    assert shown == defaults[name], (name, cells[1])
assert "milliseconds" in rows["delay"][2] and "milliseconds" in rows["jitter"][2]
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
assert subprocess.run([sys.executable, "-m", "unittest", "-q"], env=env).returncode == 0
assert open("tests/test_retry.py", encoding="utf-8").read().count("def test_") >= 2
print("all checks passed")
