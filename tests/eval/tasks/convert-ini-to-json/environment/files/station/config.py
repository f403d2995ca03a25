"""The configuration: config/app.ini, overridden by config/local.ini."""
from configparser import ConfigParser
from pathlib import Path

DIRECTORY = Path(__file__).parent.parent / "config"

INTEGERS = {"interval", "port"}
FLOATS = {"offset"}
BOOLEANS = {"active", "readonly", "mail"}
LISTS = {"tags": str, "levels": int}


def value(key, text):
    if text == "":
        return None
    if key in INTEGERS:
        return int(text)
    if key in FLOATS:
        return float(text)
    if key in BOOLEANS:
        return text.lower() in ("yes", "true", "on", "1")
    if key in LISTS:
        return [LISTS[key](part.strip()) for part in text.split(",")]
    return text


def load(directory=DIRECTORY):
    """Returns the values as nested dictionaries; a list of the local file replaces the other."""
    parser = ConfigParser(interpolation=None)
    parser.read([directory / "app.ini", directory / "local.ini"], encoding="utf-8")
    result = {}
    for section in parser.sections():
        place = result
        for name in section.split("."):
            place = place.setdefault(name, {})
        for key, text in parser.items(section):
            place[key] = value(key, text)
    return result
