import unittest
from unittest import mock

from crm import api, hooks, people
from crm.greeting import greeting


class CrmTest(unittest.TestCase):
    def test_lookup(self):
        self.assertEqual(api.lookup("/usr/7")["name"], "Ada")

    def test_log(self):
        with mock.patch("crm.people.fetch_usr", return_value={"name": "Bob"}):
            self.assertEqual(people.fetch_usr_log(1), ["Bob logged in"])

    def test_greeting(self):
        self.assertEqual(greeting(9), "Hello Grace")

    def test_hook(self):
        self.assertIs(hooks.hook("login"), people.fetch_usr)


if __name__ == "__main__":
    unittest.main()
