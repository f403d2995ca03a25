import unittest

from blog.slugs import slug, unique_slug


class SlugTest(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_unique(self):
        self.assertEqual(unique_slug("Hello", {"hello", "hello-2"}), "hello-3")


if __name__ == "__main__":
    unittest.main()
