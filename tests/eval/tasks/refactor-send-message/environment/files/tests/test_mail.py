import unittest

from notify import transport
from notify.mail import send


class MailTest(unittest.TestCase):
    def setUp(self):
        transport.outbox.clear()

    def test_plain(self):
        send("a@example.com", "Hi", "Text")
        self.assertEqual(transport.outbox, [({"To": "a@example.com", "Subject": "Hi"}, "Text")])

    def test_copies(self):
        send("a@example.com", "Hi", "Text", copy="b@example.com,c@example.com")
        self.assertEqual(transport.outbox[0][0]["Cc"], "b@example.com, c@example.com")


if __name__ == "__main__":
    unittest.main()
