import argparse
import sys

from todo import show, store
from todo.item import Item


def parser():
    top = argparse.ArgumentParser(prog="todo")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("add").add_argument("text")
    commands.add_parser("list")
    commands.add_parser("done").add_argument("number", type=int)
    return top


def main(arguments=None):
    given = parser().parse_args(arguments)
    items = store.load()
    if given.command == "add":
        number = max((item.number for item in items), default=0) + 1
        items.append(Item(number, given.text))
        store.save(items)
        print(number)
    elif given.command == "list":
        for line in show.lines(items):
            print(line)
    else:
        found = [item for item in items if item.number == given.number]
        if not found:
            print(f"there is no item {given.number}", file=sys.stderr)
            return 1
        found[0].done = True
        store.save(items)
    return 0


if __name__ == "__main__":
    sys.exit(main())
