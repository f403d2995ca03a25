"""Compares the clean file with the expected rows."""
import csv
import io
import subprocess

EXPECTED = [
    ["id", "name", "email", "joined", "fee"],
    ["3", "Müller; Jörg", "joerg@example.com", "2023-06-01", "85.00"],
    ["4", "Li Wei", "li@example.com", "2023-03-04", "1000.00"],
    ["5", "Anna Maria Roe", "a.roe@example.com", "2024-01-31", "1234567.89"],
    ["7", "Bob Stone", "bob.stone@example.com", "2023-05-12", "90.00"],
    ["9", 'O"Neill, Pat', "pat@example.com", "2024-02-29", "0.00"],
    ["12", "Ann Lee", "ann@example.com", "2023-05-01", "1200.50"],
    ["21", "Kim", "kim@example.com", "2021-02-28", "9.99"],
    ["100", "Zoë Ray", "zoe@example.com", "2023-02-10", "0.50"],
]
with open("data/members-clean.csv", "rb") as file:
    content = file.read()
assert b"\r" not in content and not content.startswith(b"\xef\xbb\xbf") and content.endswith(b"\n")
rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
# The blank in "Zoë Ray" is a no-break space in the original; both kinds are fine.
rows = [[cell.replace("\u00a0", " ") for cell in row] for row in rows]
assert rows == EXPECTED, rows
with open("data/dropped.txt", encoding="utf-8") as file:
    assert file.read().split() == ["4", "21"]
git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
assert git("diff", "--name-only", "HEAD") == "", "the original is kept"
print("all checks passed")
