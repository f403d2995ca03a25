"""Durations such as `1d2h30m`, in minutes.

A duration is a sequence of numbers with the units d, h and m, in this order, each at most once. A
number may have a fraction if it is the last one.
"""
import re

UNITS = {"d": 1440, "h": 60, "m": 1}


def parse(text):
    """Returns the minutes of a duration, or raises ValueError."""
    total = 0
    for number, unit in re.findall(r"(\d+)([dhm])", text):
        total += int(number) * UNITS[unit]
    return total


def show(minutes):
    """Returns the shortest text of a duration."""
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest}m"
