import unittest

from table import shorten, table


class TableTest(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(table([["a", "bb"], ["ccc", "d"]]), ["a   | bb", "ccc | d"])

    def test_shorten(self):
        self.assertEqual(shorten("abcdef", 4), "abc…")
        self.assertEqual(shorten("abcd", 4), "abcd")


if __name__ == "__main__":
    unittest.main()
