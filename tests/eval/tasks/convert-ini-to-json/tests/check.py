"""Checks the JSON files, `load`, the program, and that no ini file is left."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.getcwd())
APP = {
    "station": {
        "name": 'Weather: "North"', "interval": 30, "offset": -0.5, "active": True, "tags": ["roof", "north", "wind"], "code": "007",
        "prefix": "https://example.com/a;b/",
    },
    "db": {
        "host": "db.example.com", "port": 5432, "password": None,
        "replica": {"host": "replica.example.com", "port": 5433, "readonly": True},
    },
    "alerts": {"mail": False, "levels": [10, 20, 40], "note": "wind, if strong"},
}
LOCAL = {"station": {"name": "Wetter – Süd", "interval": 5}, "db": {"replica": {"port": 6000}}, "alerts": {"levels": [15]}}
MERGED = json.loads(json.dumps(APP))
MERGED["station"].update(name="Wetter – Süd", interval=5)
MERGED["db"]["replica"]["port"] = 6000
MERGED["alerts"]["levels"] = [15]
same = lambda one, other: json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
read = lambda name: json.loads(Path(name).read_text(encoding="utf-8"))
assert same(read("config/app.json"), APP), "app.json"
assert same(read("config/local.json"), LOCAL), "local.json"
assert sorted(path.name for path in Path("config").iterdir()) == ["app.json", "local.json"]

from station.config import load

assert same(load(), MERGED)
with tempfile.TemporaryDirectory() as name:
    directory = Path(name)
    (directory / "app.json").write_text('{"a": {"b": {"c": 1, "d": [1, 2]}, "e": 2}}', encoding="utf-8")
    assert load(directory) == {"a": {"b": {"c": 1, "d": [1, 2]}, "e": 2}}, "local.json may be missing"
    (directory / "local.json").write_text('{"a": {"b": {"d": [3], "n": null}}, "x": {"y": "ü"}}', encoding="utf-8")
    assert load(directory) == {"a": {"b": {"c": 1, "d": [3], "n": None}, "e": 2}, "x": {"y": "ü"}}
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
for key, shown in (("db.replica.port", "6000"), ("alerts.levels", "[15]"), ("station.name", "Wetter – Süd"), ("db.password", "None"), ("station.active", "True")):
    ended = subprocess.run([sys.executable, "-m", "station", key], env=env, stdout=subprocess.PIPE, encoding="utf-8")
    assert ended.stdout == shown + "\n", (key, ended.stdout)
source = Path("station/config.py").read_text(encoding="utf-8")
assert "configparser" not in source.lower() and ".ini" not in source
assert ".ini" not in Path("README.md").read_text(encoding="utf-8")
print("all checks passed")
