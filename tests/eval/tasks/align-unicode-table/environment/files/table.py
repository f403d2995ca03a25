"""Prints tables: table.py FILE. The cells of a line are separated by tabs."""
import sys

ELLIPSIS = "…"


def shorten(text, limit):
    """Returns the text, or as much of its beginning as fits with an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + ELLIPSIS


def pad(text, size):
    return text + " " * (size - len(text))


def table(rows, limit=20):
    """Returns the lines of a table. Columns are as wide as their longest cell."""
    rows = [[shorten(cell, limit) for cell in row] for row in rows]
    sizes = [max(len(cell) for cell in column) for column in zip(*rows)]
    return [" | ".join(pad(cell, size) for cell, size in zip(row, sizes)).rstrip() for row in rows]


def main(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main(sys.argv[1])
