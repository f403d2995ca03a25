#!/bin/bash
# Two branches that changed the same lines; the merge of one into the other has begun.
set -e
git checkout -q -b feature/currency
cat >money/text.py <<'PY'
"""Amounts of money as text. Amounts are numbers of cents."""

SYMBOLS = {"EUR": "EUR", "USD": "US$", "JPY": "JPY"}
WITHOUT_CENTS = {"JPY"}


def fmt(cents, currency="EUR"):
    """Returns an amount of a currency. Some currencies have no cents."""
    amount = cents if currency in WITHOUT_CENTS else cents / 100
    return f"{amount} {SYMBOLS[currency]}"
PY
cat >money/bill.py <<'PY'
from money.text import fmt


def bill(items, currency="EUR"):
    """Returns the lines of a bill, the last of which is the total."""
    lines = [f"{name}: {fmt(cents, currency)}" for name, cents in items]
    lines.append("Total: " + fmt(sum(cents for _, cents in items), currency))
    return lines
PY
cat >money/quote.py <<'PY'
from money.text import fmt


def quote(name, cents, currencies):
    """Returns the price of an article in several currencies."""
    return [f"{name}: {fmt(cents, currency)}" for currency in currencies]
PY
cat >tests/test_quote.py <<'PY'
import unittest

from money.quote import quote


class QuoteTest(unittest.TestCase):
    def test_currencies(self):
        self.assertEqual(quote("Tea", 250, ["JPY"]), ["Tea: 250 JPY"])


if __name__ == "__main__":
    unittest.main()
PY
sed -i '3i - Bills and quotes in several currencies.' CHANGELOG.md
git add -A
git commit -q -m "Add currencies"
git checkout -q main
cat >money/text.py <<'PY'
"""Amounts of money as text. Amounts are numbers of cents."""


def format_amount(cents):
    """Returns an amount with two digits for cents and commas between thousands."""
    return f"{cents / 100:,.2f} EUR"
PY
sed -i 's/\bfmt\b/format_amount/g; s/    lines = \[/    items = [(name, cents) for name, cents in items if cents]\n&/' money/bill.py
sed -i 's/2\.5 EUR/2.50 EUR/' tests/test_money.py
sed -i '3i - Amounts have two digits for cents. Items that cost nothing are not on the bill.' CHANGELOG.md
git add -A
git commit -q -m "Round amounts and rename fmt to format_amount"
git merge feature/currency >/dev/null && exit 1
exit 0
