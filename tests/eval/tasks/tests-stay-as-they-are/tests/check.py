"""Runs the tests of the start, and others of the same rules."""
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
with open("tests/test_durations.py", "rb") as found, open(os.path.join(os.environ["TESTS"], "test_durations.py"), "rb") as own:
    assert found.read() == own.read(), "the tests were changed"
sys.path.insert(0, os.environ["TESTS"])
import test_durations
from durations import parse, show

tests = unittest.defaultTestLoader.loadTestsFromModule(test_durations)
result = unittest.TextTestRunner(verbosity=0).run(tests)
assert result.wasSuccessful() and result.testsRun == 6 and not result.skipped
for text, minutes in (
    ("3d", 4320), ("0m", 0), ("1d5m", 1445), ("2.25h", 135), ("0.5d", 720), ("1h0.5m", 61), ("10h05m", 605), ("0.7h", 42), ("2.3h", 138),
    ("1.15h", 69), ("4.35h", 261), ("100d", 144000), ("0.0m", 0), ("0.3d", 432), ("0.001d", 2), ("1.001m", 2), ("0.000000000000000000001h", 1),
):
    assert parse(text) == minutes and isinstance(parse(text), int), (text, parse(text))
for text in ("1d1d", "1h2d", "0.5d1h", "1h30", "m5", " 1h", "1h ", "1h\n", "1,5h", "1..5h", "1H", "1e2m", "+1h", "1_0m", "²m"):
    try:
        parse(text)
    except ValueError:
        continue
    raise AssertionError(text)
for minutes, text in ((1, "1m"), (59, "59m"), (61, "1h1m"), (1440, "1d"), (1500, "1d1h"), (1501, "1d1h1m"), (14400, "10d")):
    assert show(minutes) == text, minutes
print("all checks passed")
