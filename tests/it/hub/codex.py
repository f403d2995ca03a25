"""A Codex app server for tests. The words of a prompt choose what it does; its arguments choose how it starts and ends."""

import glob
import json
import os
import re
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
state = {"turn": 0, "total": 0, "accepted": set()}
# Values of the parameters that Codex knows.
KNOWN = {
    "approvalPolicy": ("untrusted", "on-request", "granular", "never"),
    "approvalsReviewer": ("user", "auto_review", "guardian_subagent"),
    "sandbox": ("read-only", "workspace-write", "danger-full-access"),
}
SANDBOXES = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}


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


def is_allowed_by_a_file(command):
    """Rules in files of Codex allow commands without a question, and outside of the sandbox."""
    home = os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")
    for path in glob.glob(os.path.join(home, "rules", "*.rules")):
        for pattern in re.findall(r'prefix_rule\(pattern=(\[.*?\]), decision="allow"\)', open(path).read()):
            if command.split()[:len(json.loads(pattern))] == json.loads(pattern):
                return True
    return False


def is_asked(escalated):
    """Codex 0.169 asks before each command in `untrusted`, and in `on-request` if the model wants no sandbox."""
    return {"untrusted": True, "on-request": escalated, "never": False}[state["policy"]]


def executed(command, confined):
    """The output and the exit code of a command, which writes nothing in a read-only sandbox."""
    program, *arguments = command.split()
    if confined and state["sandbox"] == "readOnly" and program in ("rm", "touch"):
        verb = "remove" if program == "rm" else "touch"
        return f"{program}: cannot {verb} '{arguments[-1]}': Read-only file system\n", 1
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    return result.stdout, result.returncode


def run_command(command, number, announced=True, escalated=False, thread=THREAD):
    """Some versions of Codex ask before they announce the item (`announced` is false)."""
    identifier = f"call-{state['turn']}-{number}"
    fields = {"command": f"/bin/bash -lc '{command}'", "cwd": os.getcwd(), "aggregatedOutput": None, "exitCode": None}
    if escalated and state["policy"] == "never":
        say("approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never")
        return
    if announced:
        item("commandExecution", identifier, status="inProgress", **fields)
    # Another reviewer answers in place of the client; here it accepts.
    allowed = is_allowed_by_a_file(command) or command in state["accepted"] or state["reviewer"] != "user"
    decision = "unasked"
    if is_asked(escalated) and not allowed:
        amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": command.split()}}
        reason = {"reason": "needs more"} if escalated else {}
        answer = ask("item/commandExecution/requestApproval", number, kind="command", threadId=thread, itemId=identifier,
                     startedAtMs=1, environmentId="local", command=fields["command"], cwd=os.getcwd(),
                     commandActions=[{"type": "unknown", "command": command}], proposedExecpolicyAmendment=command.split(),
                     availableDecisions=["accept", amendment, "cancel"], **reason)
        decision = answer.get("decision")
        allowed = decision in ("accept", "acceptForSession")
        if decision == "acceptForSession":
            state["accepted"].add(command)
    say(f"[{decision}]")
    if allowed or decision == "unasked":
        if not announced:
            item("commandExecution", identifier, status="inProgress", **fields)
        # An accepted command that the sandbox stops runs again without it.
        output, code = executed(command, confined=not allowed)
        notify("item/commandExecution/outputDelta", itemId=identifier, delta=output)
        fields.update(aggregatedOutput=output, exitCode=code)
        item("commandExecution", identifier, "completed", status="completed" if code == 0 else "failed", **fields)
    elif announced:
        item("commandExecution", identifier, "completed", status="declined", **fields)


def change_files(identifier, changes):
    """Asks in `untrusted`, and in `on-request` if the sandbox is read-only. Creates the added files."""
    is_read_only = state["sandbox"] == "readOnly"
    if is_read_only and state["policy"] == "never":
        say("patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings")
        return
    item("fileChange", identifier, changes=changes, status="inProgress")
    decision = "unasked"
    if state["policy"] == "untrusted" or is_read_only:
        decision = ask("item/fileChange/requestApproval", 7, itemId=identifier, startedAtMs=1, reason=None, grantRoot=None)["decision"]
    accepted = decision in ("unasked", "accept", "acceptForSession")
    for change in changes if accepted else []:
        if change["kind"]["type"] == "add":
            open(change["path"], "w").write(change["diff"])
    item("fileChange", identifier, "completed", changes=changes, status="completed" if accepted else "declined")
    say(f"[{decision}]")


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
    elif word == "escalate":
        run_command(" ".join(words[1:]), "q-1", escalated=True)
    elif word == "stdin":
        # Input for a terminal that was begun outside of the sandbox. The request has no item.
        line = f"write_stdin --session-id 1 '{' '.join(words[1:])}\n'"
        answer = ask("item/commandExecution/requestApproval", "stdin", kind="writeStdin", itemId="stdin-1", startedAtMs=1,
                     approvalId="stdin-2", environmentId="local", reason="Send input to an existing terminal.", command=line,
                     cwd=os.getcwd(), commandActions=[{"type": "unknown", "command": line}], availableDecisions=["accept", "cancel"])
        say(f"[{answer['decision']}]")
    elif word == "subagent":
        # The thread of a subagent has the policies of the turn. Its items are those of another thread.
        run_command(" ".join(words[1:]), "q-1", announced=False, thread="thread-of-a-subagent")
    elif word == "unannounced":
        run_command(" ".join(words[1:]), "q-1", announced=False)
    elif word == "leave":
        # The turn ends before the answer to a question that the client has, and to another one.
        for number in (1, 2):
            fields = {"kind": "command", "itemId": f"left-{number}", "startedAtMs": 1, "command": "touch made", "cwd": os.getcwd()}
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
        change_files("edit-1", changes)
    elif word == "move":
        changes = [{"path": "a.txt", "kind": {"type": "update", "move_path": words[1]}, "diff": "@@ -1 +1 @@\n-old\n+new\n"}]
        change_files(f"move-{words[1]}", changes)
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


def unknown_value(params):
    """The error for parameters with a value that Codex does not know."""
    for field, known in KNOWN.items():
        value = params.get(field, known[0])
        if isinstance(value, dict) and "granular" in value:
            return {"code": -32600, "message": "askForApproval.granular requires experimentalApi capability"}
        if value not in known:
            names = ", ".join(f"`{name}`" for name in known)
            return {"code": -32600, "message": f"Invalid request: unknown variant `{value}`, expected one of {names}"}
    return None


def request(message):
    method, number, params = message["method"], message["id"], message.get("params", {})
    error = unknown_value(params)
    if error:
        pass
    elif method == "initialize":
        if "unready" in FLAGS:
            return
        home = os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")
        result = {"userAgent": "nuncio/9.8.7 (Test 1.0; x86_64) nuncio", "codexHome": home, "platformFamily": "unix", "platformOs": "linux"}
    elif method in ("thread/start", "thread/resume"):
        if method == "thread/resume" and "forgets" in FLAGS:
            error = {"code": -32600, "message": "no rollout found for thread id thread-1"}
        state["opened"] = params
        history.append(method + " " + json.dumps({key: params.get(key) for key in ("threadId", "config", "sandbox", "approvalPolicy", "approvalsReviewer")}))
        # Requirements of an administrator replace the policy.
        state["policy"] = "on-request" if "managed" in FLAGS else params["approvalPolicy"]
        state["reviewer"] = params["approvalsReviewer"]
        state["sandbox"] = SANDBOXES[params["sandbox"]]
        more = {"writableRoots": []} if state["sandbox"] == "workspaceWrite" else {}
        sandbox = {"type": state["sandbox"]} if state["sandbox"] == "dangerFullAccess" else {"type": state["sandbox"], "networkAccess": False, **more}
        result = {"thread": {"id": THREAD}, "model": "mock", "approvalPolicy": state["policy"],
                  "approvalsReviewer": state["reviewer"], "sandbox": sandbox}
    elif method == "turn/start":
        state["turn"] += 1
        # The policies count for this turn and those after it.
        state["policy"] = params.get("approvalPolicy", state["policy"])
        state["sandbox"] = params.get("sandboxPolicy", {"type": state["sandbox"]})["type"]
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
