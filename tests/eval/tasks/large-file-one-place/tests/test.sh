#!/bin/bash
# Runs check.py in the working directory and writes the reward, 1 or 0.
export TESTS=${TESTS:-/tests} LOGS=${LOGS:-/logs/verifier} ANSWER=${ANSWER:-/logs/agent/answer.txt}
mkdir -p "$LOGS"
reward=0
# Code under test could exit early with status 0 or never end, so only check.py's last line counts.
if [ "$(timeout 60 python3 -B "$TESTS/check.py" | tail -n 1)" = "all checks passed" ]; then
    reward=1
fi
echo "$reward" >"$LOGS/reward.txt"
[ "$reward" = 1 ]
