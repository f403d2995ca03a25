"""Claude Code for tests. The words of a prompt choose what it does; the first argument chooses how it starts and ends."""

import json
import os
import subprocess
import sys
import threading
import time

ARGUMENTS = sys.argv[1:]
if ARGUMENTS[-2:] == ["auth", "status"]:
    logged_in = "logged-out" not in ARGUMENTS
    print(json.dumps({"loggedIn": logged_in, "authMethod": "claude.ai" if logged_in else "none", "email": "ada@example.com"}, indent=2))
    sys.exit(0 if logged_in else 1)
SETTINGS = None
FLAGS = set(ARGUMENTS[:ARGUMENTS.index("-p")])
lock = threading.Lock()
waiting = {}
interrupted = threading.Event()
history = []
state = {"mode": "default", "turn": 0, "cost": 0.0, "model": "m-1"}


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def option(name):
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else None


def stream(**event):
    send({"type": "stream_event", "event": event, "parent_tool_use_id": None})


def assistant(blocks, message="msg", **more):
    send({"type": "assistant", "message": {"id": message, "role": "assistant", "content": blocks}, "parent_tool_use_id": None, **more})


def say(text, kind="text"):
    message = f"msg-{state['turn']}-{len(text)}-{kind}"
    stream(type="message_start", message={"id": message, "usage": {"input_tokens": 40, "cache_read_input_tokens": 60}})
    stream(type="content_block_start", index=0, content_block={"type": kind, kind: ""})
    for start in range(0, len(text), 4):
        stream(type="content_block_delta", index=0, delta={"type": f"{kind}_delta", kind: text[start:start + 4]})
    assistant([{"type": kind, kind: text}], message)
    stream(type="content_block_stop", index=0)


def hooked(identifier, name, given):
    """Asks the hooks of the client. None: they do not deny the call, or their answer is an error."""
    if not state.get("hooks"):
        return None
    given = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": given}
    answer = ask(f"h-{identifier}", subtype="hook_callback", callback_id=state["hooks"], input=given, tool_use_id=identifier)
    decision = answer.get("hookSpecificOutput", {})
    if decision.get("permissionDecision") != "deny":
        return None
    return {"behavior": "deny", "message": decision["permissionDecisionReason"]}


def ask(number, **request):
    answered = threading.Event()
    waiting[number] = [answered, {}]
    send({"type": "control_request", "request_id": number, "request": {"subtype": "can_use_tool", **request}})
    answered.wait()
    return waiting[number][1]


def call(name, given, number=1, announced=True, asks=True, obeys=True):
    """Claude Code asks before it announces the call when `announced` is false, and needs no permission when `asks` is
    false. When `obeys` is false, it runs a denied call."""
    identifier = f"toolu-{state['turn']}-{number}"
    if announced:
        stream(type="content_block_start", index=0, content_block={"type": "tool_use", "id": identifier, "name": name, "input": {}})
        assistant([{"type": "tool_use", "id": identifier, "name": name, "input": given}])
    suggestions = [
        {"type": "addRules", "rules": [{"toolName": name}], "behavior": "allow", "destination": "localSettings"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ]
    if "no-suggestions" in FLAGS:
        suggestions = suggestions[1:]
    answer = hooked(identifier, name, given)
    if answer is None and asks:
        answer = ask(f"q-{identifier}", tool_name=name, input=given, tool_use_id=identifier, permission_suggestions=suggestions)
    elif answer is None:
        answer = {"behavior": "allow", "updatedInput": given}
    allowed = answer.get("behavior") == "allow" or not obeys
    output = answer.get("message", "")
    if allowed:
        assert answer.get("updatedInput", given) == given
        output = subprocess.run(given.get("command", "true"), shell=True, capture_output=True, text=True).stdout
    result = {"type": "tool_result", "tool_use_id": identifier, "content": output, "is_error": not allowed}
    send({"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": None})
    say("[" + " ".join([answer.get("behavior", "none")] + [rule["destination"] for rule in answer.get("updatedPermissions", [])]) + "]")


def work(prompt):
    words = prompt.split()
    word = words[0]
    if word == "say":
        say("thinking", "thinking")
        say("Hello, world")
    elif word == "flood":
        for number in range(int(words[1])):
            assistant([{"type": "text", "text": "x" * (1 << 20)}], f"flood-{number}")
    elif word == "whole":
        assistant([{"type": "text", "text": "never streamed"}], "unstreamed")
    elif word == "env":
        say(os.environ.get(words[1], "(unset)"))
    elif word in ("mode", "model"):
        say(state[word])
    elif word == "replaced":
        state["reports"] = words[1]
        say("replaced")
    elif word == "arguments":
        say(json.dumps(ARGUMENTS))
    elif word == "settings":
        say(json.dumps(SETTINGS))
    elif word == "leave":
        # The turn ends before the answer to a question that the client has, and to another one.
        for number in (1, 2):
            request = {"tool_name": "Bash", "input": {"command": "touch made"}, "tool_use_id": f"left-{number}"}
            threading.Thread(target=ask, args=(f"left-{number}",), kwargs=request, daemon=True).start()
            while number == 1 and not os.path.exists("asked"):
                time.sleep(0.01)
        say("left")
    elif word == "left":
        for number in (1, 2):
            waiting[f"left-{number}"][0].wait()
            say(f"[{waiting[f'left-{number}'][1].get('behavior', 'deny')}]")
    elif word == "change":
        # Changes a file by a command about which it does not ask.
        open(words[1], "w").close()
        say("changed")
    elif word == "heard":
        say(json.dumps(state["heard"]))
    elif word == "later":
        # Changes a file after the turn has ended, as soon as the file `go` exists.
        def change():
            while not os.path.exists("go"):
                time.sleep(0.01)
            with open(words[1], "w") as file:
                file.write("changed later")
            open("went", "w").close()
        call("Bash", {"command": "echo changed > " + words[1]}, asks=False)
        threading.Thread(target=change, daemon=True).start()
    elif word == "[the":
        # The note about failed checks.
        open("fixed", "w").close()
        say("fixed")
    elif word == "run":
        call("Bash", {"command": " ".join(words[1:])})
    elif word == "defiant":
        call("Bash", {"command": " ".join(words[1:])}, obeys=False)
    elif word == "unasked":
        call("Bash", {"command": " ".join(words[1:])}, asks=False)
    elif word == "unannounced":
        call("Bash", {"command": " ".join(words[1:])}, announced=False)
    elif word == "again":
        for number in range(3):
            call("Bash", {"command": "touch made"}, number)
    elif word == "edit":
        call("Edit", {"file_path": os.getcwd() + "/a.txt", "old_string": "old", "new_string": "new"})
    elif word == "question":
        call("AskUserQuestion", {"questions": []})
    elif word == "withdrawn":
        threading.Thread(target=call, args=("Bash", {"command": "touch made"}), daemon=True).start()
        identifier = f"q-toolu-{state['turn']}-1"
        # The client has the question when this file exists.
        while not os.path.exists("asked"):
            time.sleep(0.01)
        send({"type": "control_cancel_request", "request_id": identifier})
        say("a hook decided")
    elif word == "subagent":
        assistant([{"type": "tool_use", "id": "task-1", "name": "Task", "input": {"description": "look"}}])
        send({"type": "assistant", "parent_tool_use_id": "task-1", "message": {"id": "inner", "content": [
            {"type": "text", "text": "inner text"}, {"type": "tool_use", "id": "inner-1", "name": "Read", "input": {"file_path": "/a"}}]}})
        for identifier in ("inner-1", "task-1"):
            send({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": identifier, "content": [
                {"type": "text", "text": f"result of {identifier}"}]}]}})
        assistant([{"type": "tool_use", "id": "todo", "name": "TodoWrite", "input": {"todos": [{"content": "first", "status": "in_progress"}]}}])
        say("done")
    elif word == "garbage":
        with lock:
            sys.stdout.write("no JSON at all\n[]\n42\n\n{}\n")
        send({"type": "never_heard_of"})
        send({"type": "assistant", "message": "text"})
        send({"type": "stream_event", "event": 5})
        send({"type": "control_request", "request_id": "x", "request": {"subtype": "mcp_message"}})
        send({"type": "result", "subtype": "success", "is_error": False, "origin": {"kind": "task-notification"}})
        say("still here")
    elif word == "retry":
        send({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 529, "error": "overloaded"})
        say("recovered")
    elif word == "error":
        text = "API Error: 400 bad request"
        assistant([{"type": "text", "text": text}], "synthetic", error="invalid_request")
        return {"is_error": True, "terminal_reason": "api_error", "result": text}
    elif word == "login":
        return {"is_error": True, "terminal_reason": "api_error", "api_error_status": 401, "result": "Please run /login"}
    elif word == "silent":
        pass
    elif word == "crash":
        say("a part")
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif word in ("wait", "fork"):
        assistant([{"type": "tool_use", "id": f"wait-{state['turn']}", "name": "Bash", "input": {"command": "sleep 600"}}])
        subprocess.Popen(["setsid", "sleep", "600"] if word == "fork" else ["sleep", "600"], close_fds=False)
        interrupted.wait()
        return {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools", "errors": ["x"]}
    elif word == "aborted":
        return {"is_error": True, "terminal_reason": "aborted_streaming"}
    else:
        say(" / ".join(history))
    return {}


def turn(message):
    interrupted.clear()
    state["turn"] += 1
    state["heard"] = [part["text"] for part in message["message"]["content"]]
    text = state["heard"][-1]
    history.append(text)
    send({"type": "system", "subtype": "init", "permissionMode": state["mode"], "claude_code_version": "9.8.7",
          "model": state.get("reports", state["model"])})
    result = work(text)
    state["cost"] += 0.25
    usage = {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 5}
    send({"type": "result", "subtype": "success", "is_error": False, "terminal_reason": "completed", "stop_reason": "end_turn",
          "total_cost_usd": state["cost"], "usage": usage, "modelUsage": {"m": {"contextWindow": 200000}}, **result})


def control(message):
    request = message["request"]
    result = {}
    if request["subtype"] == "initialize":
        if "unready" in FLAGS:
            return
        for hook in request.get("hooks", {}).get("PreToolUse", []):
            state["hooks"] = hook["hookCallbackIds"][0]
        models = [{"value": "default", "resolvedModel": "m-1", "displayName": "Default"}, {"value": "deep", "displayName": "Deep"}]
        result = {"commands": [{"name": "web", "description": "Search the web", "argumentHint": "WORDS"}], "models": models}
    elif request["subtype"] == "get_settings":
        result = {"applied": {"model": "m-1"}}
    elif request["subtype"] == "set_model":
        state["model"] = request["model"]
    elif request["subtype"] == "set_permission_mode":
        state["mode"] = request["mode"]
    elif request["subtype"] == "interrupt":
        if "deaf" in FLAGS:
            return
        interrupted.set()
    send({"type": "control_response", "response": {"subtype": "success", "request_id": message["request_id"], "response": result}})


if "broken" in FLAGS:
    sys.exit("unknown option")
if option("--settings"):
    with open(option("--settings")) as file:
        SETTINGS = [os.fstat(file.fileno()).st_mode & 0o777, json.load(file)]
if option("--resume"):
    if "forgets" in FLAGS:
        sys.exit("No conversation found with session ID: " + option("--resume"))
    history.append("resumed " + option("--resume"))
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        control(message)
    elif message["type"] == "control_response":
        response = message["response"]
        if response["request_id"] in waiting:
            waiting[response["request_id"]][1] = response.get("response", {})
            waiting[response["request_id"]][0].set()
    elif message["type"] == "user":
        threading.Thread(target=turn, args=(message,), daemon=True).start()
os._exit(0)
