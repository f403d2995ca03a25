#!/bin/bash
set -e
python3 - <<'PY'
from pathlib import Path

path = Path("durations.py")
text = path.read_text()
text = text[: text.index("import re\n")] + '''import math
import re
from fractions import Fraction

UNITS = {"d": 1440, "h": 60, "m": 1}
NUMBER = r"[0-9]+(?:\\.[0-9]+)?"
DURATION = re.compile("".join(f"(?:({NUMBER}){unit})?" for unit in UNITS))


def parse(text):
    """Returns the minutes of a duration, rounded up, or raises ValueError."""
    match = DURATION.fullmatch(text)
    numbers = [number for number in match.groups() if number] if match else []
    if not numbers or any("." in number for number in numbers[:-1]):
        raise ValueError(f"{text!r} is no duration, such as 1d2h30m")
    # Fractions are exact: with floating point numbers, 1.1 hours would be more than 66 minutes.
    pairs = zip(match.groups(), UNITS.values())
    return math.ceil(sum(Fraction(number) * unit for number, unit in pairs if number))


def show(minutes):
    """Returns the shortest text of a duration."""
    text = ""
    rest = minutes
    for unit, size in UNITS.items():
        number, rest = divmod(rest, size)
        text += f"{number}{unit}" if number else ""
    return text or "0m"
'''
path.write_text(text)
PY
