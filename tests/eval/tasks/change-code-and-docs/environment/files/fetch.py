"""Reads a file that another program may be about to write."""
from retry import retry


def read(path):
    def attempt():
        with open(path, encoding="utf-8") as file:
            return file.read()

    return retry(attempt, attempts=5, wait=0.02, factor=2, catch=OSError)
