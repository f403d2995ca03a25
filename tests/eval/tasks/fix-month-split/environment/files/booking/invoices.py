"""Invoices: one for each month of a stay."""
from booking.stays import by_month


def invoices(stay, price):
    """Returns (year, month, amount) for each month of the stay."""
    return [(part.arrival.year, part.arrival.month, part.nights * price) for part in by_month(stay)]


def total(stay, price):
    return sum(amount for _, _, amount in invoices(stay, price))
