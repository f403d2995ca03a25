"""Checks that no night of a stay is lost or counted twice."""
import os
import sys
from datetime import date, timedelta

sys.path.insert(0, os.getcwd())
from booking.invoices import invoices, total
from booking.stays import Stay, by_month

stay = Stay(date(2023, 3, 30), date(2023, 4, 2))
assert by_month(stay) == [Stay(date(2023, 3, 30), date(2023, 4, 1)), Stay(date(2023, 4, 1), date(2023, 4, 2))]
assert invoices(Stay(date(2023, 12, 30), date(2024, 1, 3)), 10) == [(2023, 12, 20), (2024, 1, 20)]
assert invoices(Stay(date(2024, 2, 29), date(2024, 3, 1)), 10) == [(2024, 2, 10)]
assert invoices(Stay(date(2023, 4, 30), date(2023, 5, 1)), 10) == [(2023, 4, 10)]
assert invoices(Stay(date(2023, 5, 1), date(2023, 6, 1)), 1) == [(2023, 5, 31)]
for first in range(0, 800, 7):
    for nights in (1, 2, 29, 30, 31, 32, 61, 400):
        arrival = date(2023, 1, 1) + timedelta(days=first)
        stay = Stay(arrival, arrival + timedelta(days=nights))
        expected = {}
        for night in range(nights):
            day = arrival + timedelta(days=night)
            expected[day.year, day.month] = expected.get((day.year, day.month), 0) + 3
        assert invoices(stay, 3) == [(*month, amount) for month, amount in sorted(expected.items())], stay
        assert total(stay, 3) == nights * 3, stay
print("all checks passed")
