import unittest

from money.bill import bill


class MoneyTest(unittest.TestCase):
    def test_bill(self):
        self.assertEqual(bill([("Tea", 250)])[0], "Tea: 2.5 EUR")


if __name__ == "__main__":
    unittest.main()
