"""A small language server: a line with ERR is an error, one with WARN a warning. Its arguments say what else it does."""

import json
import os
import sys
import time

modes = sys.argv[1:]
texts = {}
last = {}
root = None
replies = []


def send(body):
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    sys.stdout.buffer.write(b"Content-Type: utf-8\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data))
    sys.stdout.buffer.flush()


def read():
    length = None
    while line := sys.stdin.buffer.readline().strip():
        name, value = line.split(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length is not None else sys.exit(1)


def found(uri):
    items = []
    for number, line in enumerate(texts[uri].split("\n")):
        for severity, word in ((1, "ERR"), (2, "WARN"), (4, "HINT")):
            if word in line:
                start = len(line[: line.index(word)].encode("utf-16-le")) // 2
                place = {"line": number, "character": start}
                items.append({"range": {"start": place, "end": place}, "severity": severity, "message": "bad\n" + line.strip()})
    if "root" in modes:
        place = {"line": 0, "character": 0}
        items.append({"range": {"start": place, "end": place}, "message": root, "source": "root", "code": os.getpid()})
    if "probe" in modes:
        place = {"line": 0, "character": 0}
        items.append({"range": {"start": place, "end": place}, "message": probe()})
    if "replies" in modes:
        place = {"line": 0, "character": 0}
        items.append({"range": {"start": place, "end": place}, "message": json.dumps(replies)[:450], "severity": 3})
    return items


def probe():
    """What is open to it: writing beside its directory, writing in it, the owner's token."""
    open_to_it = []
    for name, mode in (("../probe-outside", "w"), ("probe-inside", "w"), ("../home/token", "r")):
        try:
            open(name, mode).close()
            open_to_it.append(name)
        except OSError:
            pass
    return "open: " + (" ".join(open_to_it) or "nothing")


def publish(uri, version):
    body = {"uri": uri, "diagnostics": found(uri)}
    if "stale" in modes:
        # What it found before still stands where it stood: a build that would know better goes on for ever.
        send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "begin", "title": "build"}}})
        body["diagnostics"] += last.get(uri, [])
        last[uri] = found(uri)
    if "unversioned" not in modes:
        body["version"] = version
    if "late" in modes:
        # What it said of the content before comes after the change.
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": version - 1, "diagnostics": []}})
    send({"method": "textDocument/publishDiagnostics", "params": body})


while True:
    message = read()
    method, params = message.get("method"), message.get("params")
    if method is None:
        replies.append(message.get("result", message.get("error", {}).get("code")))
    elif method == "initialize":
        root = params["rootUri"]
        # Many servers end when they cannot send signals to this process, which a sandbox forbids.
        if params["processId"] is not None:
            os.kill(params["processId"], 0)
        send({"id": message["id"], "result": {"capabilities": {"textDocumentSync": 1}}})
    elif method == "initialized":
        asked = ("workspace/configuration", "client/registerCapability", "workspace/diagnostic/refresh", "x/unknown")
        for number, name in enumerate(asked if "replies" in modes else ()):
            send({"id": f"q{number}", "method": name, "params": {"items": [{}, {}]}})
        if "flood" in modes:
            while True:
                send({"method": "window/logMessage", "params": {"type": 3, "message": "x" * 10000}})
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        texts[document["uri"]] = document["text"] if method.endswith("Open") else params["contentChanges"][0]["text"]
        if "CRASH" in texts[document["uri"]]:
            sys.exit(3)
        if "works" in modes and "BUILD" in texts[document["uri"]]:
            send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "begin", "title": "build"}}})
        publish(document["uri"], document["version"])
    elif method == "textDocument/didSave" and "works" in modes:
        uri = params["textDocument"]["uri"]
        time.sleep(0.3)
        texts[uri] = texts[uri].replace("BUILD", "ERR")
        publish(uri, None)
        send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "end"}}})
    elif method == "shutdown":
        if "lingers" in modes:
            time.sleep(60)
        send({"id": message["id"], "result": None})
    elif method == "exit":
        sys.exit(0)
