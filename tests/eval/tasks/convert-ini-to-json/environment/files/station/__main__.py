"""Prints a value: python3 -m station db.replica.port"""
import sys

from station.config import load

found = load()
for name in sys.argv[1].split("."):
    found = found[name]
print(found)
