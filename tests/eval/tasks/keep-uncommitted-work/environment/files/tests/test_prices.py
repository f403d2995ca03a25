import unittest

from shop.prices import discount


class PricesTest(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(discount(1000, 300), 700)


if __name__ == "__main__":
    unittest.main()
