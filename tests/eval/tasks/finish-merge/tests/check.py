"""Checks the merge commit and the behaviour of both sides."""
import os
import subprocess
import sys

git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
subjects = git("log", "-1", "--format=%s", "HEAD^1"), git("log", "-1", "--format=%s", "HEAD^2")
assert subjects == ("Round amounts and rename fmt to format_amount", "Add currencies"), subjects
assert git("log", "-1", "--format=%s", "feature/currency") == "Add currencies"
assert git("rev-parse", "HEAD^2") == git("rev-parse", "feature/currency") and git("branch", "--show-current") == "main"
assert git("rev-list", "--count", "--all") == "4" and git("status", "--porcelain") == "" and git("stash", "list") == ""
assert not os.path.exists(".git/MERGE_HEAD")
assert not [path for path in git("ls-files").splitlines() if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in open(path))]

sys.path.insert(0, os.getcwd())
from money import text
from money.bill import bill
from money.quote import quote

assert not hasattr(text, "fmt")
assert text.format_amount(123456) == "1,234.56 EUR" and text.format_amount(250, "USD") == "2.50 US$"
assert text.format_amount(1250, "JPY") in ("1,250 JPY", "1250 JPY")
assert bill([("Tea", 250), ("Gift", 0)]) == ["Tea: 2.50 EUR", "Total: 2.50 EUR"]
assert bill([("Tea", 250), ("Gift", 0)], "USD") == ["Tea: 2.50 US$", "Total: 2.50 US$"]
assert bill([("Tea", 250)], currency="JPY") == ["Tea: 250 JPY", "Total: 250 JPY"]
assert quote("Tea", 5, ["EUR", "JPY"]) == ["Tea: 0.05 EUR", "Tea: 5 JPY"]
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
assert subprocess.run([sys.executable, "-m", "unittest", "-q"], env=env).returncode == 0
assert git("show", "HEAD:tests/test_quote.py") == git("show", "feature/currency:tests/test_quote.py")
assert "2.50 EUR" in git("show", "HEAD:tests/test_money.py")
changes = git("show", "HEAD:CHANGELOG.md")
assert "several currencies" in changes and "two digits" in changes and "First version" in changes
print("all checks passed")
