import unittest
from datetime import datetime

from blog.feed import entry, newest


class FeedTest(unittest.TestCase):
    def test_newest_first(self):
        old = entry("Old", datetime(2023, 9, 25, 8, 0))
        new = entry("New", datetime(2023, 10, 6, 8, 0))
        self.assertEqual([item["title"] for item in newest([old, new])], ["New", "Old"])


if __name__ == "__main__":
    unittest.main()
