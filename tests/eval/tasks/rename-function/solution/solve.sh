#!/bin/bash
set -e
sed -i -E 's/fetch_usr\b/find_user/g' README.md config/hooks.json crm/*.py scripts/export.sh tests/test_crm.py
python3 - <<'PY'
from pathlib import Path

path = Path("crm/api.py")
text = path.read_text()
text = text.replace('''from crm import people

''', '''from crm import people

FINDERS = {"usr": people.find_user, "org": people.fetch_org}

''').replace('getattr(people, "fetch_" + kind)(int(key))', "FINDERS[kind](int(key))")
path.write_text(text)
PY
