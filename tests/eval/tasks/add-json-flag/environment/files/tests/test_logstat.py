import contextlib
import io
import os
import tempfile
import unittest

from logstat import main


class LogstatTest(unittest.TestCase):
    def test_text(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.log")
            with open(path, "w", encoding="utf-8") as file:
                file.write("INFO started\nERROR no space left\n")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(main([path]), 0)
        self.assertEqual(output.getvalue(), f"{path}: 2 lines, 33 bytes, ERROR 1, INFO 1\n")


if __name__ == "__main__":
    unittest.main()
