"""Answers requests for paths such as /usr/7."""
from crm import people


def lookup(path):
    kind, key = path.strip("/").split("/")
    return getattr(people, "fetch_" + kind)(int(key))
