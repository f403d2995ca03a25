#!/bin/bash
# The user's work: a staged change, a change in the file of the request, a new test that fails until
# the work is done, and a file that git does not know.
set -e
sed -i 's/def total(prices, voucher=0):/def total(prices, voucher=0, shipping=0):/; s/return discount(sum(prices), voucher)/return discount(sum(prices), voucher) + shipping/' shop/cart.py
git add shop/cart.py
cat >shop/prices.py <<'PY'
"""Prices in cents."""
from fractions import Fraction


def discount(price, voucher):
    """Returns the price after a voucher, a number of cents or a fraction of the price."""
    if isinstance(voucher, Fraction):
        return price - int(price * voucher)
    return price - voucher


def with_tax(price, percent):
    return price + price * percent // 100


def bulk(price, count):
    # TODO: ask Kim which steps apply
    if count >= 100:
        return int(price * count * Fraction(9, 10))
PY
cat >>tests/test_prices.py <<'PY'


class BulkTest(unittest.TestCase):
    def test_small_order(self):
        from shop.prices import bulk
        self.assertEqual(bulk(10, 3), 30)
PY
printf 'Kim: steps at 10, 50, 100?\n' >notes.txt
