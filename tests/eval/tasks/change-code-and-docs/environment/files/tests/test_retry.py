import unittest

from retry import pauses, retry


class RetryTest(unittest.TestCase):
    def test_pauses(self):
        self.assertEqual(pauses(attempts=3, wait=2, factor=3), [2, 6])

    def test_retry(self):
        slept = []
        results = iter([1, 0])
        self.assertEqual(retry(lambda: 5 // (1 - next(results)), wait=2, sleep=slept.append), 5)
        self.assertEqual(slept, [2])


if __name__ == "__main__":
    unittest.main()
