"""Functions that config/hooks.json names."""
import importlib
import json
from pathlib import Path

CONFIG = Path(__file__).parent.parent / "config/hooks.json"


def hook(event):
    module, _, name = json.loads(CONFIG.read_text())[event].partition(":")
    return getattr(importlib.import_module(module), name)
