"""Prices in cents."""


def discount(price, voucher):
    """Returns the price after a voucher."""
    return price - voucher


def with_tax(price, percent):
    return price + price * percent // 100
