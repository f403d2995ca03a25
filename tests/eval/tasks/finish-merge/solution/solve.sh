#!/bin/bash
set -e
cat >money/text.py <<'PY'
"""Amounts of money as text. Amounts are numbers of cents."""

SYMBOLS = {"EUR": "EUR", "USD": "US$", "JPY": "JPY"}
WITHOUT_CENTS = {"JPY"}


def format_amount(cents, currency="EUR"):
    """Returns an amount of a currency, with two digits for cents if the currency has cents, and
    commas between thousands."""
    number = f"{cents:,}" if currency in WITHOUT_CENTS else f"{cents / 100:,.2f}"
    return f"{number} {SYMBOLS[currency]}"
PY
cat >money/bill.py <<'PY'
from money.text import format_amount


def bill(items, currency="EUR"):
    """Returns the lines of a bill, the last of which is the total."""
    items = [(name, cents) for name, cents in items if cents]
    lines = [f"{name}: {format_amount(cents, currency)}" for name, cents in items]
    lines.append("Total: " + format_amount(sum(cents for _, cents in items), currency))
    return lines
PY
sed -i 's/\bfmt\b/format_amount/g' money/quote.py
sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' CHANGELOG.md
git add -A
git commit -q --no-edit
