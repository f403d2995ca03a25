"""A small MCP server on standard input and output. Its arguments (NAME or NAME=VALUE) say what else it does."""

import base64
import json
import os
import sys
import time

VERSION = "io.modelcontextprotocol/protocolVersion"
modes = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
grown = []
client = {}


def send(body):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **body}) + "\n")
    sys.stdout.flush()


def log(line):
    if "log" in modes:
        with open(modes["log"], "a") as file:
            file.write(line + "\n")


def tool(name, description="", /, **properties):
    schema = {"type": "object", "properties": properties}
    annotations = {"readOnlyHint": True}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


def tools():
    text = {"type": "string"}
    found = [
        tool("echo", "Returns the text.", text=text),
        tool("add", "Adds two numbers.", a={"type": "number"}, b={"type": "number"}),
        tool("image", "Returns a picture."),
        tool("fail", "Fails."),
        tool("big", "Returns much text.", bytes={"type": "integer"}),
        tool("progress", "Reports progress."),
        tool("hang", "Does not answer."),
        tool("die", "Ends the server."),
        tool("grow", "Adds a tool."),
        tool("roots", "Returns the client's roots."),
        tool("environment", "Returns an environment variable.", name=text),
    ]
    if "asks" in modes:
        found.append(tool("ask", "Asks the user.", message=text, schema={"type": "object"}))
        found.append(tool("sample", "Asks the model.", messages={"type": "array"}, maxTokens={"type": "integer"}))
        found.append(tool("client", "Returns the client's capabilities."))
    names = [name for name in modes.get("names", "").split(",") if name]
    if "raw" in modes:
        found.append(tool("raw", "Writes a line.", line=text))
    if "malformed" in modes:
        found += [{"name": "broken", "inputSchema": []}, {"inputSchema": {"type": "object"}}, "nothing"]
        found.append({**tool("later", "Runs as a task."), "execution": {"taskSupport": "required"}})
        found.append({**tool("either", "May run as a task."), "execution": {"taskSupport": "optional"}})
    many = ["tool_%03d" % number for number in range(int(modes.get("many", "0")))]
    wide = {"type": "string", "enum": ["x" * 100] * int(modes.get("wide", "0"))}
    found += [tool(name, "Number of a long list of tools. " * 20, value=wide) for name in names + many]
    found = [known for known in found if not (isinstance(known, dict) and known.get("name") in grown)]
    return found + [tool(name, "New.") for name in grown]


def result(identity, *content, **more):
    send({"id": identity, "result": {"content": list(content), **more}})


def text(value):
    return {"type": "text", "text": value}


def request(method, params):
    """Sends a request to the client and returns its answer."""
    send({"id": method, "method": method, "params": params})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("id") == method and "method" not in message:
            return message.get("result") or message["error"]
        answer(message)


def blob(uri, declared, data):
    return [{"uri": uri, "mimeType": declared, "blob": base64.b64encode(data).decode()}]


def contents(uri):
    png = b"\x89PNG\r\n\x1a\n"
    special = {
        "image://png": blob(uri, "image/png", png),
        "image://wrong-type": blob(uri, "image/jpeg", png),
        "image://svg": blob(uri, "image/svg+xml", b"<svg/>"),
        "image://broken": [{"uri": uri, "mimeType": "image/png", "blob": "not base64"}],
        "image://text": blob(uri, "image/png", b"a text"),
        "test://many": [{"uri": uri, "text": "x"}] * 101,
        "test://large": [{"uri": uri, "text": "x" * (256 << 10)}] * 3,
    }
    if uri.startswith("test://half"):
        return [{"uri": uri, "text": "x" * (256 << 10)}]
    return special.get(uri, [{"uri": uri, "text": "text of " + uri}])


def call(identity, name, arguments, token):
    if name == "echo":
        result(identity, text(arguments.get("text", "")))
    elif name == "add":
        result(identity, structuredContent={"sum": arguments["a"] + arguments["b"]})
    elif name == "image":
        data = base64.b64encode(arguments.get("data", "\x89PNG\r\n\x1a\n").encode("latin-1")).decode()
        data = arguments.get("base64", data)
        result(identity, text("a picture"), {"type": "image", "data": data, "mimeType": "image/png"})
    elif name == "fail":
        if "refuse" in arguments:
            return send({"id": identity, "error": {"code": 1, "message": "x" * arguments["refuse"]}})
        result(identity, text("it is broken"), isError=True)
    elif name == "big":
        value = "x" * arguments["bytes"]
        if "structured" in arguments:
            return result(identity, text("short"), structuredContent={"value": value})
        result(identity, *[text("first\n" + value + "\nlast\n")] * arguments.get("parts", 1))
    elif name == "progress":
        count = arguments.get("reports", 3)
        for number in range(1, count + 1):
            report = {"progressToken": token, "progress": number, "total": count, "message": "part %d" % number}
            send({"method": "notifications/progress", "params": report})
        # The client must have shown the last report before the result.
        time.sleep(0.3)
        result(identity, text("done"))
    elif name == "hang":
        pass
    elif name == "raw":
        # A line that only Python can write: the argument has escapes and the id of the call.
        line = arguments["line"].replace("ID", json.dumps(identity)).encode("latin-1").decode("unicode_escape")
        line = line.replace("DEEP", "[" * 200 + "]" * 200).replace("LONG", "x" * (33 << 20))
        sys.stdout.flush()
        sys.stdout.buffer.write(line.encode("latin-1") + b"\n")
        sys.stdout.buffer.flush()
    elif name == "die":
        log("dies")
        os._exit(3)
    elif name == "grow":
        grown.append(arguments.get("name", "grown"))
        send({"method": "notifications/tools/list_changed"})
        # The client must have listed the tools before the result.
        answer(json.loads(sys.stdin.readline()))
        result(identity, text("grown"))
    elif name == "ask":
        params = {"message": arguments["message"]}
        if "url" in arguments:
            params.update(mode="url", url=arguments["url"], elicitationId="login-1")
        else:
            params["requestedSchema"] = arguments["schema"]
        result(identity, text(json.dumps(request("elicitation/create", params))))
    elif name == "sample":
        messages = [{"role": role, "content": text(said)} for role, said in arguments["messages"]]
        params = {"messages": messages, "maxTokens": arguments.get("maxTokens", 100), "systemPrompt": "You sample."}
        result(identity, text(json.dumps(request("sampling/createMessage", params))))
    elif name == "client":
        result(identity, text(json.dumps(client)))
    elif name == "roots":
        roots = request("roots/list", {})["roots"]
        result(identity, text(json.dumps([root["uri"] for root in roots])))
    elif name == "environment":
        result(identity, text(os.environ.get(arguments["name"], "none")))
    else:
        result(identity, text("called " + name))


def rounds(identity, params):
    """Asks twice with the results of one call: for a form and the roots, then for the model."""
    answers, state = params.get("inputResponses") or {}, params.get("requestState")
    if state is None:
        form = {"message": params["arguments"]["message"], "requestedSchema": params["arguments"]["schema"]}
        requests = {"form": {"method": "elicitation/create", "params": form}, "roots": {"method": "roots/list"}}
        return send({"id": identity, "result": {"resultType": "input_required", "inputRequests": requests, "requestState": "1"}})
    if state == "1":
        kept = json.dumps([answers["form"], len(answers["roots"]["roots"])])
        said = {"messages": [{"role": "user", "content": text("How many?")}], "maxTokens": 50}
        requests = {"model": {"method": "sampling/createMessage", "params": said}}
        return send({"id": identity, "result": {"resultType": "input_required", "inputRequests": requests, "requestState": kept}})
    result(identity, text(json.dumps([json.loads(state), answers["model"]])), resultType="complete")


def initialize(identity, params):
    client.update(params["capabilities"])
    if "hang" in modes:
        return
    if "usage" in modes:
        print("usage: docs [--stdio]", flush=True)
        return
    if "modern" in modes:
        data = {"supported": ["2026-07-28"], "requested": params["protocolVersion"]}
        return send({"id": identity, "error": {"code": -32022, "message": "Unsupported protocol version", "data": data}})
    if "exit" in modes:
        sys.stderr.write("cannot start\n")
        sys.exit(4)
    while "wait" in modes and not os.path.exists(modes["wait"]):
        time.sleep(0.01)
    capabilities = {"tools": {"listChanged": True}}
    if "resources" in modes:
        capabilities["resources"] = {}
    if "prompts" in modes:
        capabilities["prompts"] = {}
    version = params["protocolVersion"]
    server = {"name": "test", "version": "1.2.3"}
    send({"id": identity, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}})


# Contents and messages that no client can read, or not without repair.
CONTENTS = [
    {"uri": "x://1", "text": 5},
    {"uri": "x://2"},
    {"text": "no uri"},
    {"uri": "x://3", "text": "readable"},
    {"uri": "x://4", "text": "annotated", "_meta": []},
    "no object",
]
MESSAGES = [
    {"role": "user", "content": {"type": "video", "url": "x"}},
    {"role": "system", "content": {"type": "text", "text": "readable"}},
    {"role": "user", "content": [{"type": "text", "text": "in a list"}, {"type": "image"}]},
    {"role": "user", "content": "a string"},
    {"role": "assistant"},
]


def page(identity, cursor, key, found):
    """Sends a page of one item each, whose cursor is at fault by the mode `cursor`."""
    number = int(cursor.split(".")[-1]) if cursor else 0
    last = number >= len(found) - 1
    following = {
        "same": "c.%d" % min(number + 1, len(found) - 1),
        "first": "c.%d" % ((number + 1) % len(found)),
        "empty": "" if last else "c.%d" % (number + 1),
        "fresh": "%d.%d" % (time.monotonic_ns(), min(number + 1, len(found) - 1)),
        "number": 7 if last else "c.%d" % (number + 1),
    }[modes["cursor"]]
    send({"id": identity, "result": {key: [found[number]], "nextCursor": following}})


def answer(message):
    method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
    log(method or "answer")
    if method == "initialize":
        initialize(identity, params)
    elif method == "server/discover" and "modern" in modes:
        complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        server = {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "7"}}
        capabilities = {"tools": {}}
        send({"id": identity, "result": {**complete, "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "_meta": server}})
    elif "modern" in modes and params.get("_meta", {}).get(VERSION) != "2026-07-28":
        send({"id": identity, "error": {"code": -32602, "message": "no version in _meta of " + method}})
    elif method == "tools/call" and params["name"] == "ask" and "modern" in modes:
        rounds(identity, params)
    elif method == "resources/templates/list" and modes["resources"] == "templates":
        template = {"uriTemplate": "test://{name}/text", "name": "by name", "description": "A text by its name"}
        send({"id": identity, "result": {"resourceTemplates": [template]}})
    elif method == "tools/list" and "cursor" in modes:
        page(identity, params.get("cursor"), "tools", tools()[:3])
    elif method == "tools/list":
        send({"id": identity, "result": {"tools": tools()}})
        if "restless" in modes:
            send({"method": "notifications/tools/list_changed"})
    elif method == "tools/call":
        call(identity, params["name"], params.get("arguments") or {}, params.get("_meta", {}).get("progressToken"))
    elif method == "resources/list":
        if modes["resources"] == "broken":
            found = [{"uri": 1, "name": "bad"}, {"uri": "x://good", "name": "good", "annotations": []}, "nothing"]
            return send({"id": identity, "result": {"resources": found, "nextCursor": {}}})
        resource = {"uri": "test://one", "name": "one", "description": "The first" + " of many" * 50}
        count = int(modes["resources"]) if modes["resources"].isdigit() else 1
        send({"id": identity, "result": {"resources": [resource] * count}})
    elif method == "prompts/list":
        names = [{"name": "name", "required": True}, {"name": "style"}]
        prompts = [{"name": "greet", "description": "Greets.", "arguments": names}, {"name": "talk"}]
        if modes["prompts"] == "picture":
            prompts.append({"name": "picture"})
        if modes["prompts"] == "broken":
            prompts += [{"description": "no name"}, {"name": "odd", "arguments": "none"}, 7]
        send({"id": identity, "result": {"prompts": prompts}})
    elif method == "prompts/get":
        given = params.get("arguments") or {}
        said = [("user", "Greet %s (%s)." % (given.get("name"), given.get("style")))]
        if params["name"] == "talk":
            said = [("user", "Knock knock."), ("assistant", "Who is there?"), ("user", "You.")]
        messages = [{"role": role, "content": text(line)} for role, line in said]
        if params["name"] == "picture":
            image = {"type": "image", "mimeType": "image/svg+xml", "data": base64.b64encode(b"<svg/>").decode()}
            messages = [{"role": "user", "content": image}]
        if modes["prompts"] == "broken":
            messages = MESSAGES
        send({"id": identity, "result": {"messages": messages}})
    elif method == "resources/read" and params["uri"].endswith("missing"):
        send({"id": identity, "error": {"code": -32002, "message": "no such resource"}})
    elif method == "resources/read":
        if "gate" in modes:
            # One byte in the pipe admits one request.
            gate = os.open(modes["gate"], os.O_RDONLY)
            os.read(gate, 1)
            os.close(gate)
        broken = params["uri"] == "test://broken"
        send({"id": identity, "result": {"contents": CONTENTS if broken else contents(params["uri"])}})
    elif identity is not None and method:
        send({"id": identity, "error": {"code": -32601, "message": "no method " + method}})


log("started %d" % os.getpid())
if "garbage" in modes:
    for _ in range(1000):
        print("this is {not json")
        print('{"jsonrpc": "2.0", "id": null}')
        print('{"json": ["of", "another", "kind"]}')
    sys.stdout.flush()
for line in sys.stdin:
    answer(json.loads(line))
