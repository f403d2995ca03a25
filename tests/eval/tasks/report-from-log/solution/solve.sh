#!/bin/bash
set -e
python3 - <<'PY'
import json
import re
from collections import Counter

with open("logs/app.log", encoding="utf-8") as file:
    lines = file.read().splitlines()
errors = [line.split(" ", 3) for line in lines if not line.startswith(" ") and line.split(" ", 2)[1] == "ERROR"]
report = {
    "errors": dict(Counter(error[2] for error in errors)),
    "first": errors[0][0],
    "last": errors[-1][0],
    "slowest": max(int(number) for line in lines for number in re.findall(r"took (\d+) ms", line)),
}
with open("report.json", "w", encoding="utf-8") as file:
    json.dump(report, file, indent=2)
    file.write("\n")
PY
