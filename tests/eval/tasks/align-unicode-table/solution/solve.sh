#!/bin/bash
set -e
python3 - <<'PY'
from pathlib import Path

path = Path("table.py")
text = path.read_text(encoding="utf-8")
start, end = text.index("def shorten"), text.index("def main")
text = text[:start] + '''def cells(text):
    """Returns the number of cells that a terminal needs for the text."""
    return sum(width(character) for character in text)


def width(character):
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text, limit):
    """Returns the text, or as much of its beginning as fits with an ellipsis."""
    if cells(text) <= limit:
        return text
    used = 0
    for index, character in enumerate(text):
        used += width(character)
        if used > limit - 1:
            return text[:index] + ELLIPSIS
    return text


def pad(text, size):
    return text + " " * (size - cells(text))


def table(rows, limit=20):
    """Returns the lines of a table. Columns are as wide as their longest cell."""
    rows = [[shorten(cell, limit) for cell in row] for row in rows]
    sizes = [max(cells(cell) for cell in column) for column in zip(*rows)]
    return [" | ".join(pad(cell, size) for cell, size in zip(row, sizes)).rstrip() for row in rows]


''' + text[end:]
path.write_text(text.replace("import sys\n", "import sys\nimport unicodedata\n"), encoding="utf-8")
path = Path("tests/test_table.py")
text = path.read_text(encoding="utf-8")
path.write_text(text.replace('''    def test_shorten''', '''    def test_wide_characters(self):
        self.assertEqual(table([["山田", "x"], ["abc", "y"]]), ["山田 | x", "abc  | y"])
        self.assertEqual(shorten("山田太郎", 6), "山田…")

    def test_shorten'''), encoding="utf-8")
PY
