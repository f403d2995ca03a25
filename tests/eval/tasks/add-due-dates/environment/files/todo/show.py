"""Items as lines of text."""


def line(item):
    mark = "x" if item.done else " "
    return f"{item.number} [{mark}] {item.text}"


def lines(items):
    return [line(item) for item in items]
