"""An ACP agent for tests. The words of a prompt choose what it does; its arguments choose how it starts and ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

FLAGS = set(sys.argv[1:])
lock = threading.Lock()
waiting = {}
cancelled = threading.Event()
history = []
state = {"mode": "default", "model": "small", "fast": False, "servers": [], "directories": []}
# The mode survives the process with the flag "keeps-mode".
MODE = os.path.join(os.environ["HOME"], "fake-mode")
# What processes of the agent did, with the flag "lingers".
LOG = os.path.join(os.environ["HOME"], "fake-log")


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def raw(line):
    with lock:
        sys.stdout.flush()
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def update(**fields):
    send({"method": "session/update", "params": {"sessionId": "foreign-1", "update": fields}})


def say(text, kind="agent_message_chunk", **more):
    update(sessionUpdate=kind, content={"type": "text", "text": text}, **more)


OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "server", "name": "Always, for this server", "kind": "allow_always"},
    {"optionId": "tool", "name": "Always, for this tool", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def ask(call, number, options=OPTIONS):
    answered = threading.Event()
    waiting[number] = [answered, None]
    params = {"sessionId": "foreign-1", "toolCall": call, "options": options}
    send({"id": number, "method": "session/request_permission", "params": params})
    answered.wait()
    return waiting[number][1]


def run_command(command, identifier):
    call = {"toolCallId": identifier, "title": command, "kind": "execute", "rawInput": {"command": command}}
    answer = ask({**call, "status": "pending"}, f"q-{identifier}")
    outcome = answer.get("result", {}).get("outcome", {"outcome": "error"})
    say(f"[{outcome.get('optionId', outcome['outcome'])}]")
    if outcome.get("optionId") in ("yes", "server", "tool"):
        result = subprocess.run(command, shell=True, capture_output=True, text=True)
        update(sessionUpdate="tool_call_update", toolCallId=identifier, status="completed", rawOutput={"stdout": result.stdout})
    elif outcome["outcome"] != "cancelled":
        update(sessionUpdate="tool_call_update", toolCallId=identifier, status="failed")


def ask_by_title(word, command):
    """Asks about a command as agents do that send no input. Runs nothing."""
    identifier = f"{word}-{len(history)}"
    where = f"[current working directory {os.getcwd()}]"
    call = {"toolCallId": identifier, "status": "pending", "title": command, "locations": [], "content": []}
    details = [{"type": "content", "content": {"type": "text", "text": where + " (for the test)"}}]
    call |= {
        "gemini": {"kind": "execute", "content": details},
        "gemini-sub": {"kind": "execute", "content": [{"type": "content", "content": {"type": "text", "text": "[in sub]"}}]},
        "old-gemini": {"kind": "execute", "title": f"{command} {where} (for the test)"},
        "twice": {"kind": "execute", "title": f"{command} {where} (a {where} b)"},
        "titled": {"kind": "execute"},
        "nameless": {},
        "nothing": {"kind": "other"},
        "twins": {"kind": "execute", "rawInput": {"command": command}},
    }[word]
    twins = [{"optionId": "same", "name": "Yes", "kind": "allow_once"}, {"optionId": "same", "name": "No", "kind": "reject_once"}]
    outcome = ask(call, f"q-{identifier}", twins if word == "twins" else OPTIONS)["result"]["outcome"]
    update(sessionUpdate="tool_call_update", toolCallId=identifier, status="completed", content=[])
    say(f"[{outcome.get('optionId', outcome['outcome'])}]")


def ask_as_kimi(arguments, kind="execute"):
    """Asks as Kimi Code does: the arguments are only in the text of earlier updates. Runs nothing."""
    identifier = f"kimi-{len(history)}"
    text = lambda text: [{"type": "content", "content": {"type": "text", "text": text}}]
    call = {"toolCallId": identifier, "status": "pending", "title": "Bash", "kind": kind}
    update(sessionUpdate="tool_call", content=text(arguments[:9]), **call)
    update(sessionUpdate="tool_call_update", toolCallId=identifier, status="in_progress", content=text(arguments))
    request = {"toolCallId": identifier, "title": "Bash", "content": text("Requesting approval to run it")}
    outcome = ask(request, f"q-{identifier}")["result"]["outcome"]
    update(sessionUpdate="tool_call_update", toolCallId=identifier, status="completed", content=text(json.dumps({"command": "x"})))
    say(f"[{outcome.get('optionId', outcome['outcome'])}]")


def ask_about(fields):
    """Asks about a call with these fields. Runs nothing."""
    identifier = f"about-{len(history)}"
    outcome = ask({"toolCallId": identifier, "status": "pending", "title": "Bash", **fields}, f"q-{identifier}")["result"]["outcome"]
    update(sessionUpdate="tool_call_update", toolCallId=identifier, status="failed")
    say(f"[{outcome.get('optionId', outcome['outcome'])}]")


def call_tool(name, arguments):
    """Calls a tool of the MCP server `nuncio` over HTTP. Returns its text, after [error] if it failed."""
    server = next(server for server in state["servers"] if server["name"] == "nuncio")
    headers = {header["name"]: header["value"] for header in server["headers"]}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    with urllib.request.urlopen(urllib.request.Request(server["url"], body, headers)) as response:
        result = json.load(response)["result"]
    text = result["content"][0]["text"]
    return "[error] " + text if result.get("isError") else text


def work(prompt):
    words = prompt.split()
    word = words[0]
    if word == "say":
        say("thinking", "agent_thought_chunk", messageId="t1")
        say("Hello, ", messageId="m1")
        say("world", messageId="m1")
    elif word == "env":
        say(os.environ.get(words[1], "(unset)"))
    elif word == "servers":
        say(json.dumps(state["servers"]))
    elif word == "directories":
        say(json.dumps(state["directories"]))
    elif word == "tool":
        say(call_tool(words[1], json.loads(" ".join(words[2:]))))
    elif word == "stranger":
        commands = [{"name": "stolen", "description": "Belongs to another session"}]
        fields = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        send({"method": "session/update", "params": {"sessionId": "foreign-2", "update": fields}})
        say("done")
    elif word == "meta":
        say(json.dumps(state["meta"]))
    elif word == "cwd":
        say(os.getcwd())
    elif word in ("mode", "model", "fast"):
        say(str(state[word]))
    elif word == "run":
        run_command(" ".join(words[1:]), f"call-{len(history)}")
    elif word in ("gemini", "gemini-sub", "old-gemini", "twice", "titled", "nameless", "nothing", "twins"):
        ask_by_title(word, " ".join(words[1:]))
    elif word in ("kimi", "kimi-fetch"):
        ask_as_kimi(prompt[len(word) + 1:], "fetch" if word == "kimi-fetch" else "execute")
    elif word == "about":
        ask_about(json.loads(prompt[len(word):]))
    elif word == "asks-login":
        print("Please log in: visit http://127.0.0.1/login", file=sys.stderr, flush=True)
        cancelled.wait()
        return "cancelled"
    elif word == "leave":
        # The turn ends before the answer to a question that the client has, and to another one.
        for number in (1, 2):
            call = {"toolCallId": f"left-{number}", "title": "touch made", "kind": "execute", "rawInput": {"command": "touch made"}}
            threading.Thread(target=ask, args=(call, f"left-{number}"), daemon=True).start()
            while number == 1 and not os.path.exists("asked"):
                time.sleep(0.01)
        say("left")
    elif word == "left":
        for number in (1, 2):
            waiting[f"left-{number}"][0].wait()
            say(f"[{waiting[f'left-{number}'][1]['result']['outcome']['outcome']}]")
    elif word == "again":
        for number in range(3):
            run_command("touch made", f"again-{len(history)}-{number}")
    elif word == "late":
        update(sessionUpdate="tool_call", toolCallId="late", title="Terminal", kind="execute", rawInput={}, status="pending")
        update(sessionUpdate="tool_call_update", toolCallId="late", title="cat a.txt", kind="read", status="in_progress",
               rawInput={"path": "a.txt"}, locations=[{"path": os.getcwd() + "/a.txt", "line": 3}])
        update(sessionUpdate="tool_call_update", toolCallId="late", status="completed",
               content=[{"type": "content", "content": {"type": "text", "text": "one"}}])
    elif word == "raw":
        blocks = [{"type": "text", "text": "first line"}, {"type": "text", "text": "second line"}]
        results = [{"content": blocks, "isError": False}, {"name": "a.txt", "size": 3}]
        for number, output in enumerate(results):
            update(sessionUpdate="tool_call", toolCallId=f"raw-{number}", title=f"tool {number}", kind="other", status="in_progress")
            update(sessionUpdate="tool_call_update", toolCallId=f"raw-{number}", status="completed", rawOutput=output)
    elif word == "calls":
        for number, fields in enumerate(json.loads(prompt[len(word):])):
            update(sessionUpdate="tool_call", toolCallId=f"call-{number}", title="tool", kind="other", status="in_progress")
            update(sessionUpdate="tool_call_update", toolCallId=f"call-{number}", status="completed", **fields)
    elif word == "outputs":
        for number, outputs in enumerate(json.loads(prompt[len(word):])):
            update(sessionUpdate="tool_call", toolCallId=f"prints-{number}", title="prints", kind="execute", status="in_progress")
            for output in filter(None, outputs):
                content = [{"type": "content", "content": {"type": "text", "text": output}}]
                update(sessionUpdate="tool_call_update", toolCallId=f"prints-{number}", content=content)
                # The log merges only adjacent updates.
                say(".")
            update(sessionUpdate="tool_call_update", toolCallId=f"prints-{number}", status="completed")
    elif word == "unannounced":
        update(sessionUpdate="tool_call_update", toolCallId="never-announced", status="completed", title="made a file",
               content=[{"type": "diff", "path": os.getcwd() + "/new", "oldText": None, "newText": "x"}])
        say("done")
    elif word == "open":
        update(sessionUpdate="tool_call", toolCallId="open", title="endless", kind="execute", status="in_progress")
        say("bye")
    elif word == "plan":
        update(sessionUpdate="plan", entries=[{"content": "first", "priority": "high", "status": "in_progress"}])
        update(sessionUpdate="usage_update", used=1200, size=200000, cost={"amount": 0.25, "currency": "USD"})
        say("planned")
    elif word == "cost":
        update(sessionUpdate="usage_update", used=1200, size=200000, cost={"amount": float(words[1]), "currency": "USD"})
        say("reported")
    elif word == "deltas":
        update(sessionUpdate="tool_call", toolCallId="deltas", title="prints", kind="execute", status="in_progress")
        for line in ("one\n", "two\n"):
            update(sessionUpdate="tool_call_update", toolCallId="deltas", _meta={"terminal_output_delta": {"data": line}})
        update(sessionUpdate="tool_call_update", toolCallId="deltas", status="completed")
    elif word == "garbage":
        with lock:
            sys.stdout.write("no JSON at all\n[]\n42\n\n")
        send({"method": "_vendor/status", "params": 7})
        update(sessionUpdate="never_heard_of", content=[1, 2])
        update(sessionUpdate="tool_call", title="no id")
        update(sessionUpdate="agent_message_chunk", content="text")
        send({"id": 9999, "result": {}})
        send({"id": "x", "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}})
        say("still here")
    elif word == "bytes":
        line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "foreign-1", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "aXb"}}}})
        raw(line.encode().replace(b"X", b"\xff\\ud83d"))
    elif word == "deep-request":
        answered = threading.Event()
        waiting["deep"] = [answered, None]
        raw(b'{"jsonrpc": "2.0", "id": "deep", "method": "session/request_permission", "params": ' + b"[" * 300 + b"]" * 300 + b"}")
        answered.wait()
        say("refused" if "error" in waiting["deep"][1] else "answered")
    elif word == "silent":
        print("the model said 400", file=sys.stderr, flush=True)
    elif word == "error":
        raise RuntimeError("quota exceeded")
    elif word == "login":
        print("You are not logged in. Run: other login", file=sys.stderr, flush=True)
        raise PermissionError("Authentication required")
    elif word == "crash":
        say("a part")
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "hang":
        say("hanging")
        threading.Event().wait()
    elif word == "fork":
        # The child inherits open files, as the children of programs in Rust do.
        subprocess.Popen(["setsid", "sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False)
        update(sessionUpdate="tool_call", toolCallId="forks", title="forks", kind="execute", status="in_progress")
        say("forked")
        cancelled.wait()
        if "errs" in FLAGS:
            raise RuntimeError("the turn was aborted")
        return "cancelled"
    elif word == "wait":
        update(sessionUpdate="tool_call", toolCallId="waits", title="waits", kind="execute", status="in_progress")
        cancelled.wait()
        return "cancelled"
    elif word == "flood":
        for _ in range(int(words[1])):
            say("x" * (1 << 20))
    elif word == "flood-questions":
        content = {"content": [{"type": "content", "content": {"type": "text", "text": "x" * (256 << 10)}}] * 20}
        for number in range(int(words[1])):
            ask({"toolCallId": "f", "title": f"{number}", "kind": "other", **content}, f"f-{number}")
            content = {}
        say("done")
    elif word == "flood-output":
        update(sessionUpdate="tool_call", toolCallId="live", title="prints", kind="execute", status="in_progress")
        for number in range(int(words[1])):
            content = [{"type": "content", "content": {"type": "text", "text": f"{number} " + "x" * (200 << 10)}}]
            update(sessionUpdate="tool_call_update", toolCallId="live", content=content)
            # The log merges only adjacent updates.
            say(".")
        update(sessionUpdate="tool_call_update", toolCallId="live", status="completed")
        say("done")
    elif word == "many":
        for number in range(int(words[1])):
            say(f"{number} ")
    elif word == "refuse":
        return "cancelled"
    else:
        say(" / ".join(history))
    return "end_turn"


def prompt(message):
    text = message["params"]["prompt"][-1]["text"]
    history.append(text)
    if text in ("deep-answer", "long-answer"):
        inner = b"[" * 300 + b"]" * 300 if text == "deep-answer" else b'"' + b"x" * (33 << 20) + b'"'
        raw(b'{"jsonrpc": "2.0", "id": ' + json.dumps(message["id"]).encode() + b', "result": {"_meta": {"x": ' + inner + b"}}}")
        return
    try:
        reason = work(text)
    except PermissionError as error:
        send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})
        return
    except RuntimeError as error:
        send({"id": message["id"], "error": {"code": -32603, "message": "Internal error", "data": {"details": str(error)}}})
        return
    send({"id": message["id"], "result": {"stopReason": reason}})


def log(line):
    if "lingers" not in FLAGS:
        return
    with open(LOG, "a") as file:
        file.write(line + "\n")


def session_state():
    modes = [{"id": "default", "name": "Default"}] + ([{"id": "plan", "name": "Plan"}] if "no-plan" not in FLAGS else [])
    return {"modes": {"currentModeId": state["mode"], "availableModes": modes}, "configOptions": options()}


def options():
    choices = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
    listed = [{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": state["model"], "options": choices}]
    if "switch" in FLAGS:
        listed.append({"id": "fast", "name": "Fast mode", "type": "boolean", "currentValue": state["fast"]})
    return listed


def request(message):
    method, number, params = message["method"], message["id"], message.get("params", {})
    if "mcpServers" in params:
        state.update(servers=params["mcpServers"], directories=params.get("additionalDirectories", []))
    if method == "initialize":
        if "unready" in FLAGS:
            open("unready", "w").close()
            return
        capabilities = {"loadSession": "no-load" not in FLAGS, "promptCapabilities": {"image": False},
                        "mcpCapabilities": {"http": "http" in FLAGS}}
        result = {"protocolVersion": 0 if "old" in FLAGS else 1, "agentCapabilities": capabilities,
                  "authMethods": [{"id": "key", "name": "API key"}]}
        result |= {"agentInfo": {"name": name, "version": "1"} for name in ("Kimi Code CLI", "GitHub Copilot") if name in FLAGS}
    elif method == "session/new":
        if "login" in FLAGS:
            send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            return
        history.append("servers " + json.dumps(params["mcpServers"]))
        state["meta"] = params["_meta"]
        result = {"sessionId": "foreign-1", **session_state()}
    elif method == "session/load":
        if "forgets" in FLAGS:
            send({"id": number, "error": {"code": -32002, "message": "Resource not found"}})
            return
        say("an old answer")
        history.append("loaded " + params["sessionId"])
        log("loaded")
        if "keeps-mode" in FLAGS:
            state["mode"] = open(MODE).read()
        state["meta"] = params["_meta"]
        result = session_state()
    elif method == "session/set_mode":
        if "stubborn" in FLAGS:
            update(sessionUpdate="current_mode_update", currentModeId=state["mode"])
        else:
            state["mode"] = params["modeId"]
            with open(MODE, "w") as file:
                file.write(state["mode"])
        result = {}
    elif method == "session/set_config_option":
        if "stubborn" not in FLAGS:
            state[params["configId"]] = params["value"]
        result = {"configOptions": options()}
    elif method == "session/prompt":
        cancelled.clear()
        threading.Thread(target=prompt, args=(message,), daemon=True).start()
        return
    else:
        send({"id": number, "error": {"code": -32601, "message": "unknown method"}})
        return
    send({"id": number, "result": result})
    if method == "session/new":
        commands = [{"name": "web", "description": "Search the web"}]
        if "lacks-compact" not in FLAGS:
            commands.append({"name": "compact", "description": "Summarize the conversation"})
        update(sessionUpdate="available_commands_update", availableCommands=commands)


if "asks-login" in FLAGS:
    print("Loading\nPlease log in: run other login", file=sys.stderr, flush=True)
    threading.Event().wait()
if "deaf" in FLAGS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "broken" in FLAGS:
    sys.exit("config: approval_policy is no longer supported")
for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        request(message)
    elif message.get("method") == "session/cancel":
        cancelled.set()
    elif message.get("id") in waiting:
        waiting[message["id"]][1] = message
        waiting[message["id"]][0].set()
if "deaf" in FLAGS:
    threading.Event().wait()
if "lingers" in FLAGS:
    # Ends when another process has loaded the session, or after a while.
    until = time.monotonic() + 1
    while time.monotonic() < until and not os.path.exists(LOG):
        time.sleep(0.01)
    log("ended")
os._exit(0)
