import unittest

from durations import parse, show


class ParseTest(unittest.TestCase):
    def test_units(self):
        self.assertEqual(parse("90m"), 90)
        self.assertEqual(parse("1h30m"), 90)
        self.assertEqual(parse("2d"), 2880)
        self.assertEqual(parse("1d1h1m"), 1501)

    def test_fractions(self):
        self.assertEqual(parse("1.5h"), 90)
        self.assertEqual(parse("1d0.5h"), 1470)

    def test_a_fraction_of_a_minute_is_rounded_up(self):
        self.assertEqual(parse("0.1m"), 1)
        self.assertEqual(parse("0.01h"), 1)
        self.assertEqual(parse("0.1h"), 6)
        self.assertEqual(parse("1.1h"), 66)

    def test_errors(self):
        for text in ("", "5", "h", "1m1h", "1h1h", "1.5h1m", "1h 30m", "-1h", "1x", "1.h", ".5h", "٣h"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse(text)


class ShowTest(unittest.TestCase):
    def test_shortest(self):
        self.assertEqual(show(90), "1h30m")
        self.assertEqual(show(60), "1h")
        self.assertEqual(show(2160), "1d12h")
        self.assertEqual(show(1441), "1d1m")
        self.assertEqual(show(0), "0m")

    def test_inverse(self):
        for minutes in range(0, 5000, 7):
            self.assertEqual(parse(show(minutes)), minutes)


if __name__ == "__main__":
    unittest.main()
