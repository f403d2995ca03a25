#!/bin/bash
# A history in which one of several changes of `cents` breaks amounts between -1 and 0.
set -e
day=1
commit() {
    day=$((day + 1))
    git add -A
    GIT_AUTHOR_DATE="2024-03-$(printf %02d $day)T09:00:00Z" GIT_COMMITTER_DATE="2024-03-$(printf %02d $day)T09:00:00Z" \
        git -c user.name="$1" -c user.email="${1,,}@example.com" commit -q -m "$2"
}
printf '# total\n\nAdds amounts.\n' >README.md
commit Ann "Describe the program"
sed -i 's/^import sys/import re\nimport sys/; s/^def cents/AMOUNT = re.compile(r"-?[0-9]+(,[0-9]{1,2})?")\n\n\ndef cents/; s/^    whole, _/    if not AMOUNT.fullmatch(text):\n        sys.exit(f"{text} is no amount")\n&/' total.py
commit Bob "Refuse what is no amount"
sed -i 's/int(part or 0)/int(part.ljust(2, "0"))/' total.py
commit Ann "Read 1,5 as 1,50"
printf '\nExample: `total.py 1,10 2,20`\n' >>README.md
commit Kim "Add an example"
sed -i 's/^    value = .*/    value = abs(int(whole)) * 100\n    value += int(part.ljust(2, "0"))/' total.py
commit Bob "Split a long line"
python3 -B - <<'PY'
from pathlib import Path

path = Path("total.py")
text = path.read_text()
start, end = text.index("    value = abs"), text.index("\n\n\ndef main")
path.write_text(text[:start] + '''    sign = -1 if int(whole) < 0 else 1
    return int(whole) * 100 + sign * int(part.ljust(2, "0"))''' + text[end:])
PY
commit Kim "Simplify the sign of amounts"
sed -i 's/^    print(f/    print(prefix + f/; s/def main(amounts)/def main(amounts, prefix="")/' total.py
commit Ann "Print a prefix"
python3 -B - <<'PY'
from pathlib import Path

path = Path("total.py")
text = path.read_text()
path.write_text(text.replace('    sign = -1 if int(whole) < 0 else 1\n', '    number = int(whole)\n    sign = -1 if number < 0 else 1\n').replace("return int(whole) * 100", "return number * 100"))
PY
commit Bob "Convert the number once"
printf '\nNegative amounts begin with a minus sign.\n' >>README.md
commit Kim "Explain negative amounts"
