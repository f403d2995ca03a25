#!/bin/bash
set -e
python3 - <<'PY'
import csv
import re
from datetime import datetime

FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")


def date(text):
    for form in FORMATS:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            pass
    raise ValueError(text)


def fee(text):
    text = text.replace("€", "").strip()
    match = re.fullmatch(r"(.*)[.,](\d{1,2})", text)
    whole, part = match.groups() if match else (text, "")
    return f"{re.sub('[.,]', '', whole) or 0}.{part.ljust(2, '0')}"


with open("data/members.csv", encoding="utf-8-sig", newline="") as file:
    rows = [{key: value.strip() for key, value in row.items()} for row in csv.DictReader(file, delimiter=";")]
kept, dropped = {}, set()
for row in rows:
    if not any(row.values()):
        continue
    number = int(row["ID"])
    if "@" not in row["Email"]:
        dropped.add(number)
        continue
    joined = date(row["Joined"])
    if number not in kept or kept[number][3] < joined:
        kept[number] = [number, " ".join(row["Name"].split()), row["Email"].lower(), joined, fee(row["Fee"])]
with open("data/members-clean.csv", "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "name", "email", "joined", "fee"])
    writer.writerows(kept[number] for number in sorted(kept))
with open("data/dropped.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{number}\n" for number in sorted(dropped))
PY
