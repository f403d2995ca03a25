#!/bin/bash
set -e
python3 - <<'PY'
from pathlib import Path

path = Path("handlers.py")
text = path.read_text()
start = text.index("def post_reports_archive")
end = text.index("@route", start)
body = text[start:end].replace('"ids", [])\n', '"ids", [])\n    if not ids:\n        return 400, {"error": "ids"}\n').replace("return 200", "return 202")
path.write_text(text[:start] + body + text[end:])
PY
