"""Checks the answer, and that the repository is as before."""
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


git = lambda *arguments: subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
assert git("status", "--porcelain") == "" and git("stash", "list") == "" and git("branch", "--show-current") == "main"
assert git("rev-list", "--count", "--all") == "10" and git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
assert git("log", "-1", "--format=%s") == "Explain negative amounts" and len(git("worktree", "list").splitlines()) == 1
assert not os.path.exists(".git/BISECT_START")
answer = read_answer()
commits = [line.split(" ", 1) for line in git("log", "--format=%H %s").splitlines()]
named = {subject for commit, subject in commits if subject in answer or commit[:7] in answer.lower()}
assert "Simplify the sign of amounts" in named, "the commit is not named"
# The commit before it and one more may be mentioned; a list of the history is no answer.
assert len(named) <= 3, named
assert re.search(r"-0|−0|minus zero|negative zero|int\(|\bint\b|zero", answer), "why: int(\"-0\") is 0, so the sign is lost"
print("all checks passed")
