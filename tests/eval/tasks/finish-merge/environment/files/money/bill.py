from money.text import fmt


def bill(items):
    """Returns the lines of a bill, the last of which is the total."""
    lines = [f"{name}: {fmt(cents)}" for name, cents in items]
    lines.append("Total: " + fmt(sum(cents for _, cents in items)))
    return lines
