"""Checks that the new name works wherever the old one did, and that the old one is gone."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.getcwd())
import crm
from crm import api, greeting, hooks, people

assert people.find_user(7) == {"key": 7, "name": "Ada"} and crm.find_user is people.find_user
assert not hasattr(people, "fetch_usr") and not hasattr(crm, "fetch_usr")
assert people.find_user.__name__ == "find_user"
assert people.fetch_usr_log(9) == ["Grace logged in"] and crm.fetch_usr_log is people.fetch_usr_log
assert set(crm.__all__) == {"fetch_org", "find_user", "fetch_usr_log"}
assert api.lookup("/usr/7")["name"] == "Ada" and api.lookup("/org/2")["name"] == "Navy"
for path in ("/user/7", "/usr_log/x"):
    try:
        api.lookup(path)
    except Exception:
        continue
    raise AssertionError(path)
assert hooks.hook("login") is people.find_user
assert hooks.hook("logout") is people.fetch_usr_log and hooks.hook("invite") is people.fetch_org
assert greeting.greeting(9) == "Hello Grace"
run = lambda *command: subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
export = run("scripts/export.sh", "7")
assert export.returncode == 0 and json.loads(export.stdout) == {"key": 7, "name": "Ada"}
assert run(sys.executable, "-m", "unittest", "-q").returncode == 0
files = run("git", "ls-files", "-co", "--exclude-standard").stdout.splitlines()
for file in files:
    if os.path.exists(file):
        with open(file, encoding="utf-8") as opened:
            assert not re.search(r"fetch_usr(?!_log)", opened.read()), file
with open("README.md", encoding="utf-8") as opened:
    assert "crm.people.find_user(key)" in opened.read()
with open("tests/test_crm.py", encoding="utf-8") as opened:
    assert opened.read().count("def test_") >= 4
print("all checks passed")
