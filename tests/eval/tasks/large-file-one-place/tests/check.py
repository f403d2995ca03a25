"""Compares each handler with the one of the start, and checks the size of the change."""
import os
import subprocess
import sys
import types

sys.path.insert(0, os.getcwd())
import handlers

git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
first = git("rev-list", "--max-parents=0", "HEAD").split()[0]
old_text = git("show", first + ":handlers.py")
old = types.ModuleType("old")
exec(old_text, old.__dict__)
assert list(handlers.ROUTES) == list(old.ROUTES), "the routes and their order"
BODIES = ({}, {"ids": []}, {"ids": [3, 1, 3]}, {"page": "4"}, {"page": 0})
for key, handler in old.ROUTES.items():
    if key != ("POST", "/reports/archive"):
        assert [handlers.ROUTES[key](body) for body in BODIES] == [handler(body) for body in BODIES], key
new = handlers.ROUTES["POST", "/reports/archive"]
assert new({"ids": [3, 1, 3]}) == (202, {"kind": "reports", "archived": [1, 3]})
assert new({"ids": []}) == (400, {"error": "ids"}) and new({}) == (400, {"error": "ids"})
added, removed = git("diff", "--numstat", first, "--", "handlers.py").split()[:2]
assert int(added) <= 8 and int(removed) <= 4, (added, removed)
print("all checks passed")
