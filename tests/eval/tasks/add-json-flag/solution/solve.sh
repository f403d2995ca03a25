#!/bin/bash
set -e
python3 - <<'PY'
from pathlib import Path


def change(name, *pairs):
    path = Path(name)
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)


change(
    "logstat.py",
    ("import argparse\n", "import argparse\nimport json\n"),
    ("\n\ndef count", '''
    def to_json(self):
        return {"lines": self.lines, "bytes": self.bytes, "levels": dict(sorted(self.levels.items()))}


def count'''),
    ("    given = parser", '    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")\n    given = parser'),
    ("    total = Stats()\n", "    total = Stats()\n    files = {}\n"),
    ('        print(f"{name}: {stats.text()}")\n    if len(names) > 1:', '''        files[name] = stats.to_json()
        if not given.json:
            print(f"{name}: {stats.text()}")
    if given.json:
        print(json.dumps({**total.to_json(), "files": files}))
    elif len(names) > 1:'''),
)
change(
    "README.md",
    ("[--level LEVEL]", "[--level LEVEL] [--json]"),
    ("only lines of this level count.", "only lines of this level count. With\n`--json`, one JSON object with the same numbers is printed."),
)
change(
    "tests/test_logstat.py",
    ("import io\n", "import io\nimport json\n"),
    ("\n\nif __name__", '''
    def test_json(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.log")
            with open(path, "w", encoding="utf-8") as file:
                file.write("INFO started\\n")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(main(["--json", path]), 0)
        stats = {"lines": 1, "bytes": 13, "levels": {"INFO": 1}}
        self.assertEqual(json.loads(output.getvalue()), {**stats, "files": {path: stats}})


if __name__'''),
)
PY
