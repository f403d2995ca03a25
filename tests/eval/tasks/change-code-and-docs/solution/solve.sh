#!/bin/bash
set -e
cat >retry.py <<'PY'
"""Calls functions again if they fail. docs/options.md explains the options."""
import random
import time


def pauses(attempts=3, delay=500, factor=1, jitter=0):
    """Returns the pauses between calls, in seconds."""
    return [(delay + random.randint(0, jitter)) * factor**number / 1000 for number in range(attempts - 1)]


def retry(function, attempts=3, delay=500, factor=1, jitter=0, catch=Exception, sleep=time.sleep):
    """Returns what the function returns, or raises its last exception."""
    for pause in pauses(attempts, delay, factor, jitter):
        try:
            return function()
        except catch:
            sleep(pause)
    return function()
PY
sed -i 's/wait=0.02/delay=20/' fetch.py
sed -i 's/wait=2, factor=3), \[2, 6\]/delay=2000, factor=3), [2, 6]/; s/wait=2, sleep/delay=2000, sleep/' tests/test_retry.py
sed -i 's/wait=0.001/delay=1/' README.md
sed -i 's/^| `wait` .*/| `delay` | `500` | milliseconds between two calls |\n| `jitter` | `0` | at most so many random milliseconds are added to each pause |/; s/wait=0.25/delay=250/; s/wait=0)/delay=0)/' docs/options.md
PY_TEST='
    def test_jitter(self):
        for pause in pauses(attempts=50, delay=10, jitter=3):
            self.assertTrue(0.01 <= pause <= 0.013)

'
python3 - "$PY_TEST" <<'PY'
import sys
from pathlib import Path

path = Path("tests/test_retry.py")
path.write_text(path.read_text().replace("\n    def test_retry", sys.argv[1] + "    def test_retry"))
PY
