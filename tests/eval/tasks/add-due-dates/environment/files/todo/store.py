"""The file with the items."""
import json
import os

from todo.item import Item


def path():
    return os.environ.get("TODO_FILE", "todo.json")


def load():
    if not os.path.exists(path()):
        return []
    with open(path(), encoding="utf-8") as file:
        return [Item.from_json(value) for value in json.load(file)]


def save(items):
    with open(path(), "w", encoding="utf-8") as file:
        json.dump([item.to_json() for item in items], file, indent=1)
        file.write("\n")
