import unittest

from contacts import Contact, merge


class MergeTest(unittest.TestCase):
    def test_merge(self):
        ann, bob, more = Contact("Ann", ["a@x.org"], "1"), Contact("Bob"), Contact("ann ", ["b@x.org", "a@x.org"], "2")
        merged = merge([ann, bob, more])
        self.assertEqual([contact.name for contact in merged], ["Ann", "Bob"])
        self.assertEqual(merged[0].mails, ["a@x.org", "b@x.org"])
        self.assertEqual(merged[0].phone, "2")
        self.assertEqual(ann.mails, ["a@x.org"])


if __name__ == "__main__":
    unittest.main()
