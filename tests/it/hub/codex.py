"""A Codex app server for tests. The words of a prompt choose what it does; its arguments choose how it starts and ends."""

import json
import os
import subprocess
import sys
import threading
import time

FLAGS = set(sys.argv[1:])
THREAD = "thread-1"
lock = threading.Lock()
waiting = {}
interrupted, steered = threading.Event(), threading.Event()
history = []
state = {"turn": 0, "total": 0}


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def notify(method, **params):
    send({"method": method, "params": {"threadId": THREAD, **params}})


def item(kind, identifier, stage="started", **fields):
    notify(f"item/{stage}", item={"type": kind, "id": identifier, **fields})


def say(text):
    identifier = f"msg-{len(history)}-{state['turn']}-{text[:8]}"
    item("agentMessage", identifier, text="")
    for start in range(0, len(text), 4):
        notify("item/agentMessage/delta", itemId=identifier, delta=text[start:start + 4])
    item("agentMessage", identifier, "completed", text=text)


def ask(method, number, **params):
    answered = threading.Event()
    waiting[number] = [answered, None]
    send({"id": number, "method": method, "params": {"threadId": THREAD, "turnId": turn_id(), **params}})
    answered.wait()
    return waiting[number][1].get("result", {})


def turn_id():
    return f"turn-{state['turn']}"


def use_tokens(count):
    state["total"] += count
    usage = {"inputTokens": count, "cachedInputTokens": count // 2, "outputTokens": 1, "totalTokens": count + 1}
    total = {"inputTokens": state["total"], "cachedInputTokens": state["total"] // 2, "outputTokens": state["total"] // count}
    state["usage"] = {"last": usage, "total": total, "modelContextWindow": 258400}
    notify("thread/tokenUsage/updated", tokenUsage=state["usage"])


def run_command(command, number, announced=True):
    """Codex asks before it announces the item when `announced` is false."""
    identifier = f"call-{state['turn']}-{number}"
    fields = {"command": f"/bin/bash -lc '{command}'", "cwd": os.getcwd(), "aggregatedOutput": None, "exitCode": None}
    if announced:
        item("commandExecution", identifier, status="inProgress", **fields)
    answer = ask("item/commandExecution/requestApproval", number, itemId=identifier, command=fields["command"],
                 cwd=os.getcwd(), reason="needs more", kind="command", availableDecisions=["accept", "cancel"])
    say(f"[{answer.get('decision')}]")
    if answer.get("decision") in ("accept", "acceptForSession"):
        if not announced:
            item("commandExecution", identifier, status="inProgress", **fields)
        result = subprocess.run(command, shell=True, capture_output=True, text=True)
        notify("item/commandExecution/outputDelta", itemId=identifier, delta=result.stdout)
        fields.update(aggregatedOutput=result.stdout, exitCode=result.returncode)
        item("commandExecution", identifier, "completed", status="completed" if result.returncode == 0 else "failed", **fields)
    elif announced:
        item("commandExecution", identifier, "completed", status="declined", **fields)


def work(prompt, params):
    words = prompt.split()
    word = words[0]
    if word == "say":
        item("reasoning", "thought-1", summary=[], content=[])
        notify("item/reasoning/summaryTextDelta", itemId="thought-1", delta="thinking", summaryIndex=0)
        item("reasoning", "thought-1", "completed", summary=["thinking"], content=[])
        say("Hello, world")
        # Codex repeats reports without new usage.
        use_tokens(100)
        notify("thread/tokenUsage/updated", tokenUsage=state["usage"])
    elif word == "flood":
        for number in range(int(words[1])):
            item("agentMessage", f"flood-{number}", "completed", text="x" * (1 << 20))
    elif word == "whole":
        item("agentMessage", "whole", "completed", text="never streamed")
    elif word == "env":
        say(os.environ.get(words[1], "(unset)"))
    elif word == "spend":
        # Works until the limit of the turn interrupts it.
        for _ in range(int(words[1])):
            use_tokens(100)
        interrupted.wait()
        return {"status": "interrupted"}
    elif word == "instructions":
        say(f"{state['opened'].get('baseInstructions')} {state['opened'].get('developerInstructions')}")
    elif word == "chosen":
        say(f"{params.get('model')} {params.get('effort')}")
    elif word == "steer":
        say("waiting")
        steered.wait()
        say(f"[{history[-1]}]")
    elif word == "settings":
        say(json.dumps({key: params.get(key) for key in ("approvalPolicy", "sandboxPolicy")}))
    elif word == "run":
        run_command(" ".join(words[1:]), "q-1")
    elif word == "unannounced":
        run_command(" ".join(words[1:]), "q-1", announced=False)
    elif word == "leave":
        # The turn ends before the answer to a question that the client has, and to another one.
        for number in (1, 2):
            fields = {"itemId": f"left-{number}", "command": "touch made", "cwd": os.getcwd()}
            threading.Thread(target=ask, args=("item/commandExecution/requestApproval", f"left-{number}"), kwargs=fields, daemon=True).start()
            while number == 1 and not os.path.exists("asked"):
                time.sleep(0.01)
        say("left")
    elif word == "left":
        for number in (1, 2):
            waiting[f"left-{number}"][0].wait()
            say(f"[{waiting[f'left-{number}'][1]['result']['decision']}]")
    elif word == "again":
        for number in range(3):
            run_command("touch made", f"q-{number}")
    elif word == "edit":
        changes = [
            {"path": "new.txt", "kind": {"type": "add"}, "diff": "one\n"},
            {"path": os.getcwd() + "/a.txt", "kind": {"type": "update", "move_path": None},
             "diff": "@@ -1,2 +1,2 @@\n same\n-old\n+new\n"},
        ]
        item("fileChange", "edit-1", changes=changes, status="inProgress")
        answer = ask("item/fileChange/requestApproval", 7, itemId="edit-1", reason=None)
        item("fileChange", "edit-1", "completed", changes=changes, status="completed" if answer["decision"] == "accept" else "declined")
        say(f"[{answer['decision']}]")
    elif word == "move":
        changes = [{"path": "a.txt", "kind": {"type": "update", "move_path": words[1]}, "diff": "@@ -1 +1 @@\n-old\n+new\n"}]
        item("fileChange", f"move-{words[1]}", changes=changes, status="inProgress")
        answer = ask("item/fileChange/requestApproval", 7, itemId=f"move-{words[1]}", reason=None)
        item("fileChange", f"move-{words[1]}", "completed", changes=changes, status="declined")
        say(f"[{answer['decision']}]")
    elif word == "tools":
        item("mcpToolCall", "mcp-1", server="docs", tool="find", status="inProgress", arguments={"q": "x"})
        answer = ask("mcpServer/elicitation/request", 8, serverName="docs", mode="form", message="Allow docs to find?",
                     requestedSchema={}, _meta={"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_name": "find"})
        other = ask("mcpServer/elicitation/request", 9, serverName="docs", mode="form", message="Your name?", requestedSchema={})
        permissions = ask("item/permissions/requestApproval", 10, itemId="x", permissions={"network": {"enabled": True}})
        item("mcpToolCall", "mcp-1", "completed", server="docs", tool="find", status="completed", arguments={"q": "x"},
             result={"content": [{"type": "text", "text": "found"}]})
        item("webSearch", "web-1", "completed", query="weather")
        item("unknownItem", "x-1", "completed", field=1)
        notify("turn/plan/updated", plan=[{"step": "first", "status": "inProgress"}, {"step": "second", "status": "pending"}])
        say(f"{answer['action']} {answer['_meta']['persist']} {other['action']} {permissions}")
    elif word == "garbage":
        send({"method": "vendor/status", "params": 7})
        notify("item/started", item=5)
        send({"id": 99, "method": "item/tool/call", "params": {}})
        send({"method": "turn/completed", "params": {"threadId": "thread-of-a-subagent", "turn": {"status": "failed"}}})
        say("still here")
    elif word == "retry":
        notify("error", error={"message": "stream disconnected"}, willRetry=True, turnId=turn_id())
        say("recovered")
    elif word == "error":
        notify("error", error={"message": "quota exceeded"}, willRetry=False, turnId=turn_id())
        message = json.dumps({"error": {"message": "quota exceeded"}})
        return {"status": "failed", "error": {"message": message, "additionalDetails": "until Monday"}}
    elif word == "login":
        return {"status": "failed", "error": {"message": "not logged in", "codexErrorInfo": "unauthorized"}}
    elif word == "silent":
        # Arrives after the end of the turn.
        threading.Timer(0.05, print, ["the model said 400"], {"file": sys.stderr, "flush": True}).start()
    elif word == "crash":
        say("a part")
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "hang":
        say("hanging")
        threading.Event().wait()
    elif word in ("wait", "fork"):
        item("commandExecution", f"wait-{state['turn']}", command="sleep 600", cwd=os.getcwd(), status="inProgress")
        # An interrupt leaves the command running.
        subprocess.Popen(["setsid", "sleep", "600"] if word == "fork" else ["sleep", "600"], close_fds=False)
        interrupted.wait()
        return {"status": "interrupted"}
    elif word == "aborted":
        say("a part")
        return {"status": "interrupted"}
    else:
        say(" / ".join(history))
    return {"status": "completed"}


def turn(params):
    interrupted.clear()
    text = params["input"][-1]["text"]
    history.append(text)
    notify("warning", message="Model metadata not found")
    notify("turn/started", turn={"id": turn_id(), "status": "inProgress"})
    result = work(text, params)
    notify("turn/completed", turn={"id": turn_id(), "items": [], "error": None, **result})


def compaction():
    notify("turn/started", turn={"id": turn_id(), "status": "inProgress"})
    for method in ("item/started", "item/completed"):
        notify(method, item={"type": "contextCompaction", "id": "compaction"}, turnId=turn_id())
    notify("turn/completed", turn={"id": turn_id(), "items": [], "error": None, "status": "completed"})


def request(message):
    method, number, params = message["method"], message["id"], message.get("params", {})
    error = None
    if method == "initialize":
        if "unready" in FLAGS:
            return
        result = {"userAgent": "nuncio/9.8.7 (Test 1.0; x86_64) nuncio"}
    elif method in ("thread/start", "thread/resume"):
        if method == "thread/resume" and "forgets" in FLAGS:
            error = {"code": -32600, "message": "no rollout found for thread id thread-1"}
        state["opened"] = params
        history.append(method + " " + json.dumps({key: params.get(key) for key in ("threadId", "config", "sandbox", "approvalPolicy")}))
        kind = "workspaceWrite" if params["sandbox"] == "workspace-write" else "dangerFullAccess"
        sandbox = {"type": kind, "writableRoots": [], "networkAccess": False}
        result = {"thread": {"id": THREAD}, "model": "mock", "approvalPolicy": params["approvalPolicy"], "sandbox": sandbox}
    elif method == "turn/start":
        state["turn"] += 1
        # The notifications of a turn may come before the response.
        threading.Thread(target=turn, args=(params,), daemon=True).start()
        result = {"turn": {"id": turn_id(), "status": "inProgress"}}
    elif method == "thread/compact/start":
        state["turn"] += 1
        threading.Thread(target=compaction, daemon=True).start()
        result = {}
    elif method == "turn/steer":
        if "unsteerable" in FLAGS or params["expectedTurnId"] != turn_id():
            error = {"code": -32600, "message": "no active turn to steer"}
        else:
            history.append(params["input"][0]["text"])
            result = {"turnId": turn_id()}
        steered.set()
    elif method == "model/list":
        efforts = [{"reasoningEffort": effort, "description": ""} for effort in ("low", "high")]
        models = [("mock", efforts, "low"), ("plain", [], "none"), ("deep", efforts[1:], "high")]
        result = {"data": [{"model": name, "displayName": name.title(), "supportedReasoningEfforts": levels, "defaultReasoningEffort": level}
                           for name, levels, level in models]}
    elif method == "account/read" and "logged-out" in FLAGS:
        result = {"account": None, "requiresOpenaiAuth": True}
    elif method == "account/read" and "logged-in" in FLAGS:
        result = {"account": {"type": "chatgpt", "email": "ada@example.com", "planType": "plus"}, "requiresOpenaiAuth": True}
    elif method == "turn/interrupt":
        if "deaf" in FLAGS or params["turnId"] != turn_id():
            return
        interrupted.set()
        result = {}
    else:
        error = {"code": -32601, "message": "unknown method"}
    send({"id": number, "error": error} if error else {"id": number, "result": result})


if sys.argv[-1] != "app-server":
    sys.exit(f"unknown command {sys.argv[-1]}")
if "broken" in FLAGS:
    sys.exit("config: approval_policy is no longer supported")
for line in sys.stdin:
    message = json.loads(line)
    assert message["jsonrpc"] == "2.0", message
    if "method" in message and "id" in message:
        request(message)
    elif message.get("id") in waiting:
        waiting[message["id"]][1] = message
        waiting[message["id"]][0].set()
os._exit(0)
