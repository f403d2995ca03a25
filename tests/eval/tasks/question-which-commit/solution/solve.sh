#!/bin/bash
mkdir -p "$(dirname "${ANSWER:=/logs/agent/answer.txt}")"
commit=$(git log --format=%h --grep="Simplify the sign of amounts")
cat >"$ANSWER" <<TEXT
$commit "Simplify the sign of amounts" by Kim. It takes the sign from \`int(whole)\` instead of from the text: of \`-0,50\`, \`int("-0")\` is 0, so the amount counts as +0,50.
TEXT
