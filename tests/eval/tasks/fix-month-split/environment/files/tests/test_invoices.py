import unittest
from datetime import date

from booking.invoices import invoices, total
from booking.stays import Stay


class InvoicesTest(unittest.TestCase):
    def test_within_a_month(self):
        self.assertEqual(invoices(Stay(date(2023, 3, 3), date(2023, 3, 10)), 80), [(2023, 3, 560)])

    def test_over_the_end_of_a_month(self):
        stay = Stay(date(2023, 3, 30), date(2023, 4, 2))
        self.assertEqual(total(stay, 80), 240)


if __name__ == "__main__":
    unittest.main()
