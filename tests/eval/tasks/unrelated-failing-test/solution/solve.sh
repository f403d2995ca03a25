#!/bin/bash
set -e
python3 - <<'PY'
from pathlib import Path

path = Path("blog/slugs.py")
text = path.read_text()
old = '    return "".join(character if character.isalnum() else "-" for character in title.lower())\n'
new = '    characters = (character if character.isalnum() else " " for character in title.lower())\n    return "-".join("".join(characters).split())\n'
assert old in text
path.write_text(text.replace(old, new))
path = Path("tests/test_slugs.py")
text = path.read_text()
path.write_text(text.replace('''    def test_unique''', '''    def test_punctuation(self):
        self.assertEqual(slug("Hello,   World!"), "hello-world")

    def test_unique'''))
PY
