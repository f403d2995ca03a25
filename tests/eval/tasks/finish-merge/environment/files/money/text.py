"""Amounts of money as text. Amounts are numbers of cents."""


def fmt(cents):
    return f"{cents / 100} EUR"
