"""The terminal client of an agent for tests: records its start, and calls the hooks of its settings as Claude Code does.

Each line of the file STEPS is a step: the name of a hook, `wait PATH`, `interrupt` (a line of the transcript) or `exit CODE`.
"""

import json
import os
import re
import sys
import time
import urllib.request

ARGUMENTS = sys.argv[1:]


def option(name):
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else None


session = option("--session-id") or option("--resume")
transcript = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", "-work", f"{session}.jsonl")
given = option("--settings") or "{}"
settings = json.loads(given if given.startswith("{") else open(given).read())


def expand(value):
    return re.sub(r"\$\{(\w+)\}", lambda name: os.environ[name[1]], value)


def call(event):
    for entry in settings.get("hooks", {}).get(event, []):
        for hook in entry["hooks"]:
            if hook["type"] != "http":
                continue
            body = {"session_id": session, "transcript_path": transcript, "cwd": os.getcwd(), "hook_event_name": event}
            headers = {name: expand(value) for name, value in hook["headers"].items()}
            request = urllib.request.Request(hook["url"], json.dumps(body).encode(), {"content-type": "application/json", **headers})
            with urllib.request.urlopen(request, timeout=hook["timeout"]) as response:
                assert (response.status, response.read()) == (200, b""), response.status


def write(text):
    os.makedirs(os.path.dirname(transcript), exist_ok=True)
    with open(transcript, "a") as file:
        file.write(json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}) + "\n")


with open("ran.jsonl", "a") as file:
    known = ["NUNCIO_WORKSPACE", "NUNCIO_HOOK_TOKEN", "NUNCIO_DEPTH", "KEY", "OPENAI_API_KEY"]
    environment = {name: os.environ[name] for name in known if name in os.environ}
    started = {"arguments": ARGUMENTS, "environment": environment, "terminal": sys.stdin.isatty() and sys.stdout.isatty()}
    file.write(json.dumps(started) + "\n")
print("ready", flush=True)

for step in open("steps").read().split("\n") if os.path.exists("steps") else []:
    word, _, rest = step.partition(" ")
    if word == "wait":
        while not os.path.exists(rest):
            time.sleep(0.01)
    elif word == "interrupt":
        write("[Request interrupted by user]")
    elif word == "exit":
        sys.exit(int(rest))
    elif word:
        if word == "UserPromptSubmit":
            write("hello")
        call(word)
