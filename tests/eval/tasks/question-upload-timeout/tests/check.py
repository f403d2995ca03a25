"""Checks the answer, and that nothing was changed."""
import json
import os
import re
import subprocess


def read_answer():
    """Returns the last answer: from $ANSWER, or from the events that Harbor's ACP agent records."""
    path = os.environ["ANSWER"]
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return file.read()
    text = ""
    with open(os.path.join(os.path.dirname(path), "acp-events.jsonl"), encoding="utf-8") as file:
        events = [event for event in map(json.loads, file) if event["event_type"] == "session_update"]
    for update in (event["payload"]["update"] for event in events):
        if update["sessionUpdate"] == "agent_message_chunk":
            text += update["content"].get("text", "")
        elif update["sessionUpdate"] == "tool_call":
            text = ""
    return text


git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
assert git("status", "--porcelain") == "", "nothing may change"
assert git("rev-list", "--count", "--all").strip() == "1", "no commit was asked for"
answer = read_answer()
assert len(answer) < 4000
assert re.search(r"(?<![\d.:])90(\.0)?(?!\.?\d)", answer), "an upload waits max(45 * (3 - 1), 60) = 90 seconds"
# An answer that lists candidates instead of the number is none.
assert not re.search(r"(?i)\b(30|45|60|135)\s*(s|sec|seconds)?\s*(or|/)\s*\**90", answer)
print("all checks passed")
