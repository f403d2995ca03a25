import contextlib
import io
import os
import tempfile
import unittest

from todo.__main__ import main


class TodoTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.environ["TODO_FILE"] = os.path.join(directory.name, "items.json")

    def run_todo(self, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(main(list(arguments)), 0)
        return output.getvalue()

    def test_add_and_done(self):
        self.assertEqual(self.run_todo("add", "Water the plants"), "1\n")
        self.assertEqual(self.run_todo("add", "Call Ann"), "2\n")
        self.run_todo("done", "1")
        self.assertEqual(self.run_todo("list"), "1 [x] Water the plants\n2 [ ] Call Ann\n")


if __name__ == "__main__":
    unittest.main()
