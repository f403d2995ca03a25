"""Compares both files with the expected ones, byte by byte."""
import os

for name in ("setup.ini", "build.bat"):
    with open("installer/" + name, "rb") as file:
        found = file.read()
    with open(os.path.join(os.environ["TESTS"], name), "rb") as file:
        expected = file.read()
    pairs = zip(found.split(b"\n"), expected.split(b"\n"))
    assert found == expected, (name, [pair for pair in pairs if pair[0] != pair[1]][:3])
assert sorted(os.listdir("installer")) == ["build.bat", "setup.ini"]
print("all checks passed")
