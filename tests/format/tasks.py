"""Tasks for a small model that writes its calls as text: `python3 tasks.py NUNCIO [TASK]…`.

A task fails if calls of the model did not run, if anything but the named file changed, or if the
exit code does not fit the log. This does not depend on the answers, which differ between
processors. A model of this size is often wrong, so whether a result is right is only printed."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from processes import HOME, SETTINGS, WORK, Llama, check, events, free_port, of_type, start_nuncio, wait

HERE = Path(__file__).resolve().parent
NAME = "qwen2.5-coder-1.5b-instruct"
WINDOW = 16384
TOOLS = ["read", "edit", "write", "bash", "grep", "glob", "list"]
ANSWER_TOKENS = 500
REQUESTS = 10
# Seconds on a busy machine: the start of the server, a task, and all.
START, TASK, ALL = 180, 300, 840

GREET = '''def greet(name):
    return "Helo, " + name + "!"


def part(name):
    return "Goodbye, " + name + "!"
'''
TEST = '''import unittest

from greet import greet, part


class Greetings(unittest.TestCase):
    def test_greet(self):
        self.assertEqual(greet("Ada"), "Hello, Ada!")

    def test_part(self):
        self.assertEqual(part("Ada"), "Goodbye, Ada!")
'''
FILES = {
    "README.md": "# Greetings\n\nSays hello and goodbye.\n",
    "greet.py": GREET,
    "limits.ini": "[queue]\nretries = 7\ntimeout = 45\n",
    "test_greet.py": TEST,
}

# Prompt, the file that it names, and whether the files and the last answer are right.
TASKS = {
    "change": (
        'In greet.py, the word "Helo" is misspelled. Change it to "Hello".',
        "greet.py",
        lambda files, answer: files == FILES | {"greet.py": GREET.replace("Helo", "Hello")},
    ),
    "question": (
        "Read limits.ini and tell me the value of timeout.",
        "limits.ini",
        lambda files, answer: files == FILES and re.search(r"\b45\b", answer),
    ),
}


class Server(Llama):
    def ready(self):
        wait(self.healthy, START, "start of the server")


def start_server():
    template = (HERE / "template.jinja").read_text()
    special = {"chat_template": template, "n_ctx": WINDOW, "n_cache_reuse": 256, "n_predict": ANSWER_TOKENS}
    return Server(free_port(), model=str(HERE / "model/weights.gguf"), name=NAME, **special)


def write_settings(port):
    """Writes settings with a prompt of the test: with nuncio's own, the model solves nothing."""
    text = json.dumps
    SETTINGS.write_text(f"""model = "local/{NAME}"
[prompts]
"*" = {text(str(HERE / "prompt.md"))}
[providers.local]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
max_output_tokens = {ANSWER_TOKENS}
[models."local/*"]
tools = {text(TOOLS)}
body = {{ temperature = 0 }}
""")


def git(*arguments):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=WORK, check=True, capture_output=True, text=True, timeout=30).stdout


def new_repository():
    """Creates the repository, always at the same path: the system prompt contains it, and the
    server has the system prompt in its cache."""
    shutil.rmtree(WORK)
    WORK.mkdir()
    for name, content in FILES.items():
        (WORK / name).write_text(content)
    git("init", "--quiet", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Start")


def read_repository():
    """Returns the files outside of `.git` by their paths, and branches, stashes and settings."""
    paths = (path.relative_to(WORK) for path in WORK.rglob("*") if not path.is_dir())
    files = {str(path): (WORK / path).read_text(errors="replace") for path in paths if path.parts[0] != ".git"}
    return files, [git("for-each-ref"), (WORK / ".git/HEAD").read_text(), (WORK / ".git/config").read_text()]


def run(prompt):
    """Runs a prompt. Returns the exit code, the log and what was printed."""
    flags = ["--mode", "auto", "--max-requests", str(REQUESTS), "--output-format", "json"]
    process = start_nuncio("run", *flags, prompt)
    try:
        out, err = process.communicate(timeout=TASK)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise AssertionError(f"nuncio run did not end within {TASK} s") from None
    check(out.startswith("{"), f"nuncio run printed no result: exit code {process.returncode}, {out}{err}")
    return process.returncode, events(json.loads(out)["sessionId"]), out + err


def exit_codes(log):
    """Returns the exit codes that docs/RUN.md names for the end of a turn, and the end."""
    (end,) = (body for body in log if body["type"] in ["turn.completed", "turn.failed", "turn.cancelled"])
    if end["type"] == "turn.failed" and "answer is empty" in end["message"]:
        return [1], end["message"]
    check(end["type"] == "turn.completed", f"the turn ended with {end}")
    if end["stopReason"] != "end_turn":
        return [1], end["stopReason"]
    # The model can have gone on after a denied call.
    denied = any(call["status"] == "failed" and "denied" in json.dumps(call["output"]) for call in of_type(log, "tool.completed"))
    return [0, 4] if denied else [0], "end_turn"


def is_only_calls(text):
    """Returns whether a text is nothing but calls, as docs/PROVIDERS.md describes them. An invented
    result may follow them."""
    rest = re.sub(r"```[\w.:/-]*\n(.*?)(?:```|\Z)", r"\1", text, flags=re.DOTALL).strip()
    count = 0
    while rest and not (count and rest.startswith("<tool_response>")):
        try:
            call, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return False
        is_call = isinstance(call, dict) and set(call) == {"name", "arguments"} and isinstance(call["arguments"], dict)
        if not is_call or not re.fullmatch(r"[\w.:/-]{1,128}", str(call["name"]), re.ASCII):
            return False
        rest, count = rest[end:].strip(), count + 1
    return count > 0


def messages(log):
    """Returns the texts of the model that nuncio did not read as calls."""
    spoken = (body for body in of_type(log, "message.completed") if body["role"] == "assistant")
    return ["".join(part.get("text", "") for part in body["parts"]) for body in spoken]


def do_task(llama, prompt, named, is_right):
    """Returns the statuses of the calls, and what is to be printed."""
    new_repository()
    files, git_state = read_repository()
    tokens, start = llama.counts(), time.monotonic()
    code, log, printed = run(prompt)
    seconds = time.monotonic() - start
    evaluated, generated = (after - before for before, after in zip(tokens, llama.counts()))
    after, git_state_after = read_repository()

    changed = sorted(name for name in files | after if files.get(name) != after.get(name))
    check(set(changed) <= {named}, f"changed {changed}, and the prompt names only {named}: {printed}")
    check(git_state_after == git_state, f"git's branches, stashes or settings changed: {git_state}, {git_state_after}")
    codes, end = exit_codes(log)
    check(code in codes, f"exit code {code} instead of {codes}, and the turn ended with {end}: {printed}")
    texts = messages(log)
    # Calls in an answer that was cut are not to run.
    unread = [text for text in texts if end != "max_tokens" and is_only_calls(text)]
    check(not unread, f"calls of the model did not run: {unread}")
    ended = of_type(log, "tool.completed")
    open_calls = {call["toolCallId"] for call in of_type(log, "tool.started")} - {call["toolCallId"] for call in ended}
    check(not open_calls, f"calls without an end: {open_calls}, {printed}")

    statuses = [call["status"] for call in ended]
    calls = ", ".join(f"{call['name']} {call['status']}" for call in ended) or f"NO CALL, but {texts}"
    right = "right" if is_right(after, texts[-1] if texts else "") else "wrong"
    return statuses, f"{calls}; exit code {code}, result {right}; {evaluated} + {generated} tokens in {seconds:.1f} s"


def main():
    wanted = sys.argv[2:] or list(TASKS)
    # A bound for the whole, should a bound of a wait be missing.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {ALL} s"))
    signal.alarm(ALL)
    start = time.monotonic()
    llama = start_server()
    print(f"server: ready after {time.monotonic() - start:.1f} s", flush=True)
    write_settings(llama.port)
    passed, failed, statuses = 0, 0, []
    for name in wanted:
        try:
            new, shown = do_task(llama, *TASKS[name])
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
            continue
        passed, statuses = passed + 1, statuses + new
        print(f"{name}: {shown}", flush=True)
    # On some processor, the model may answer one task without a call, or with a wrong argument. If
    # no call of any task succeeds, nuncio did not read them.
    if not failed and "completed" not in statuses:
        failed += 1
        print("FAILED  no call succeeded in any task", flush=True)
    if failed:
        print(Path(llama.log.name).read_text(errors="replace")[-2000:])
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
