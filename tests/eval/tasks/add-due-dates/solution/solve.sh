#!/bin/bash
set -e
cat >todo/item.py <<'PY'
"""An item of the list."""
from datetime import date


class Item:
    def __init__(self, number, text, done=False, due=None):
        self.number = number
        self.text = text
        self.done = done
        self.due = due

    def is_overdue(self, today):
        return not self.done and self.due is not None and self.due < today

    def to_json(self):
        value = {"number": self.number, "text": self.text, "done": self.done}
        if self.due is not None:
            value["due"] = self.due.isoformat()
        return value

    @staticmethod
    def from_json(value):
        unknown = set(value) - {"number", "text", "done", "due"}
        if unknown:
            raise ValueError("unknown fields: " + ", ".join(sorted(unknown)))
        due = date.fromisoformat(value["due"]) if "due" in value else None
        return Item(value["number"], value["text"], value["done"], due)
PY
cat >todo/show.py <<'PY'
"""Items as lines of text."""
from datetime import date


def line(item):
    mark = "x" if item.done else " "
    due = f" (due {item.due})" if item.due else ""
    return f"{item.number} [{mark}] {item.text}{due}"


def lines(items):
    """Returns the lines of the items: those with a date first, the earliest at the top."""
    return [line(item) for item in sorted(items, key=lambda item: item.due or date.max)]
PY
python3 - <<'PY'
from pathlib import Path


def change(name, *pairs):
    path = Path(name)
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)


change(
    "todo/__main__.py",
    ("import sys\n", "import sys\nfrom datetime import date\n"),
    ('    commands.add_parser("add").add_argument("text")\n    commands.add_parser("list")\n',
     '    add = commands.add_parser("add")\n    add.add_argument("text")\n'
     '    add.add_argument("--due", type=date.fromisoformat, metavar="YYYY-MM-DD")\n'
     '    commands.add_parser("list").add_argument("--overdue", action="store_true")\n'),
    ("Item(number, given.text)", "Item(number, given.text, due=given.due)"),
    ("        for line in", "        if given.overdue:\n            items = [item for item in items if item.is_overdue(date.today())]\n        for line in"),
)
change(
    "README.md",
    ("    python3 -m todo add TEXT     adds an item and prints its number\n    python3 -m todo list         shows all items\n",
     "    python3 -m todo add TEXT     adds an item and prints its number; --due YYYY-MM-DD sets its date\n"
     "    python3 -m todo list         shows all items, those with a date first; --overdue only late ones\n"),
)
change(
    "tests/test_todo.py",
    ("\n\nif __name__", '''
    def test_items_with_a_date_come_first(self):
        self.run_todo("add", "Call Ann")
        self.run_todo("add", "Pay rent", "--due", "2001-05-01")
        self.assertEqual(self.run_todo("list"), "2 [ ] Pay rent (due 2001-05-01)\\n1 [ ] Call Ann\\n")
        self.assertEqual(self.run_todo("list", "--overdue"), "2 [ ] Pay rent (due 2001-05-01)\\n")


if __name__'''),
)
PY
