"""Checks due dates by running the program on files in a temporary directory."""
import json
import os
import subprocess
import sys
import tempfile

directory = tempfile.TemporaryDirectory()
path = os.path.join(directory.name, "items.json")
env = {**os.environ, "TODO_FILE": path, "PYTHONDONTWRITEBYTECODE": "1"}


def todo(*arguments, code=0):
    ended = subprocess.run([sys.executable, "-m", "todo", *arguments], env=env, stdout=subprocess.PIPE, text=True)
    assert ended.returncode == code, (arguments, ended.returncode)
    return ended.stdout


def content():
    with open(path, "rb") as file:
        return file.read()


old = b'[\n {\n  "number": 3,\n  "text": "Old",\n  "done": false\n },\n {\n  "number": 4,\n  "text": "Older",\n  "done": true\n }\n]\n'
with open(path, "wb") as file:
    file.write(old)
assert todo("list") == "3 [ ] Old\n4 [x] Older\n"
todo("done", "4")
assert content() == old, "items without a date are saved as before"
assert todo("add", "Pay rent", "--due", "2999-05-01") == "5\n"
assert todo("add", "Call", "--due", "2001-02-28") == "6\n"
assert todo("add", "Write") == "7\n"
assert todo("add", "Fly", "--due", "2001-01-31") == "8\n"
assert todo("add", "--due", "2001-03-01", "Cook") == "9\n"
todo("done", "8")
expected = [
    "8 [x] Fly (due 2001-01-31)", "6 [ ] Call (due 2001-02-28)", "9 [ ] Cook (due 2001-03-01)",
    "5 [ ] Pay rent (due 2999-05-01)", "3 [ ] Old", "4 [x] Older", "7 [ ] Write",
]
assert todo("list").splitlines() == expected, todo("list")
assert todo("list", "--overdue").splitlines() == expected[1:3], todo("list", "--overdue")
stored = {value["text"]: value for value in json.loads(content())}
assert set(stored["Write"]) == {"number", "text", "done"}
assert [value["number"] for value in json.loads(content())] == [3, 4, 5, 6, 7, 8, 9], "the file keeps its order"
before = content()
for wrong in ("2023-02-29", "tomorrow", "2023-13-01", ""):
    todo("add", "Never", "--due", wrong, code=2)
assert content() == before
with open("README.md", encoding="utf-8") as file:
    readme = file.read()
assert "--due" in readme and "--overdue" in readme
print("all checks passed")
