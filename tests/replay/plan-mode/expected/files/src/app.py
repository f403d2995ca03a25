def total(items):
    return sum(items)


def mean(items):
    return total(items) / max(len(items), 1)
