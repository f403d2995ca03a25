#!/bin/bash
set -e
python3 -B - <<'PY'
import json
from configparser import ConfigParser
from pathlib import Path

from station.config import value

for name in ("app", "local"):
    parser = ConfigParser(interpolation=None)
    parser.read(f"config/{name}.ini", encoding="utf-8")
    result = {}
    for section in parser.sections():
        place = result
        for part in section.split("."):
            place = place.setdefault(part, {})
        place.update((key, value(key, text)) for key, text in parser.items(section))
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    Path(f"config/{name}.json").write_text(text, encoding="utf-8")
    Path(f"config/{name}.ini").unlink()
PY
cat >station/config.py <<'PY'
"""The configuration: config/app.json, overridden by config/local.json."""
import json
from pathlib import Path

DIRECTORY = Path(__file__).parent.parent / "config"


def merged(base, over):
    """Returns `base` with the values of `over`; objects are merged, other values replaced."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def load(directory=DIRECTORY):
    """Returns the values as nested dictionaries; a list of the local file replaces the other."""
    result = {}
    for name in ("app.json", "local.json"):
        path = directory / name
        if path.exists():
            result = merged(result, json.loads(path.read_text(encoding="utf-8")))
    return result
PY
sed -i 's/\.ini/.json/g' README.md
