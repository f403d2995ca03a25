"""Settings: the built-in ones, config/defaults.json, the user's file and the environment."""
import json
import os
from pathlib import Path

BUILT_IN = {"timeout": 30, "retries": 5, "endpoint": "http://localhost:8000", "upload_factor": 3}
DEFAULTS = Path(__file__).parent.parent / "config/defaults.json"


def load(user="courier.json"):
    values = dict(BUILT_IN)
    for path in (DEFAULTS, Path(user)):
        if path.exists():
            values.update(json.loads(path.read_text()))
    for name in values:
        variable = "COURIER_" + name.upper()
        if variable in os.environ:
            values[name] = type(BUILT_IN[name])(os.environ[variable])
    return values
