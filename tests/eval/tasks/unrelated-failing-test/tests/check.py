"""Checks slugs, and that the feed and its failing test are as they were."""
import os
import subprocess
import sys

sys.path.insert(0, os.getcwd())
from blog.slugs import slug, unique_slug

for title, expected in (
    ("Hello,   World!", "hello-world"), ("Hello World", "hello-world"), ("  -- A & B --  ", "a-b"), ("Café au lait", "café-au-lait"),
    ("über 2,5 €", "über-2-5"), ("a_b", "a-b"), ("Ein\tZwei\nDrei", "ein-zwei-drei"), ("42", "42"), ("ÉCOLE", "école"),
):
    assert slug(title) == expected, (title, slug(title))
assert unique_slug("Hello!", {"hello", "hello-2"}) == "hello-3" and unique_slug("Bye", {"hello"}) == "bye"
git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
changed = git("status", "--porcelain", "--untracked-files=all")
for path in ("blog/feed.py", "tests/test_feed.py", "Makefile", "AGENTS.md"):
    assert path not in changed, path
    with open(path, encoding="utf-8") as file:
        assert file.read() == git("show", "HEAD:" + path), path
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
run = lambda test: subprocess.run([sys.executable, "-m", "unittest", "-q", test], env=env).returncode
assert run("tests.test_slugs") == 0 and run("tests.test_feed") != 0
print("all checks passed")
