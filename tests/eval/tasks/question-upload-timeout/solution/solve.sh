#!/bin/bash
mkdir -p "$(dirname "${ANSWER:=/logs/agent/answer.txt}")"
cat >"$ANSWER" <<'TEXT'
90 seconds. `config/defaults.json` sets `timeout` to 45, and `wait` in `courier/transfer.py` multiplies it by `upload_factor - 1`, which is 2. The 30 seconds in the README are outdated.
TEXT
