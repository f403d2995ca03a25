"""What a schema cannot tell schemathesis: sessions that are there, a directory that is, names of modes. For half of the cases that
should be fine; the other half, and those that should be refused, stay as they were made."""

import json
import os
import urllib.error
import urllib.request

import schemathesis
from schemathesis.generation.meta import TestPhase

URL = os.environ["BRIDGE"]
TOKEN = os.environ["BRIDGE_TOKEN"]
WORK = os.environ["BRIDGE_WORK"]
MODES = ["ask", "accept-edits", "plan", "auto"]
MADE = []
count = 0


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, method=method)
    request.add_header("Authorization", f"Bearer {TOKEN}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def a_session():
    """One of some that are there; another one in place of one that was deleted meanwhile."""
    if len(MADE) == 8:
        session = MADE.pop(0)
        try:
            ask("GET", f"/v1/sessions/{session}")
            MADE.append(session)
        except urllib.error.HTTPError:
            pass
    while len(MADE) < 8:
        MADE.append(ask("POST", "/v1/sessions", {"mode": MODES[len(MADE) % 4]})["sessionId"])
    return MADE[-1]


def a_turn(session):
    turns = ask("GET", f"/v1/sessions/{session}/turns")["turns"]
    return turns[count % len(turns)]["turnId"] if turns else None


def a_file(session, kind):
    """The name of a file of that session, if it has one."""
    files = ask("GET", f"/v1/sessions/{session}/{kind}")[kind]
    return files[0]["name"] if files else None


def a_question():
    """A question that is open: a new session asks one."""
    session = ask("POST", "/v1/sessions", {"mode": "ask"})["sessionId"]
    prompt = {"parts": [{"type": "text", "text": "ask me"}]}
    ask("POST", f"/v1/sessions/{session}/messages", prompt)
    for _ in range(20):
        if open_ones := ask("GET", f"/v1/permissions?sessionId={session}")["permissions"]:
            return open_ones[0]["permissionId"]
    return None


@schemathesis.hook
def map_case(ctx, case):
    global count
    count += 1
    if not case.meta.generation.mode.is_positive:
        return case
    # A key that comes again gets the first answer, with a session that was deleted since.
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"key-{count}"
    if count % 2 == 0:
        # Scenarios have ids of their own.
        if case.meta.phase.name != TestPhase.STATEFUL:
            known_ids(case.path_parameters or {}, case.method, case.operation.path)
        if isinstance(case.body, dict):
            known_names(case.body)
        if case.headers and "X-Workspace-Path" in case.headers:
            case.headers["X-Workspace-Path"] = WORK
    return case


def known_ids(path, method, route):
    # A session that is deleted teaches nobody anything after.
    if "sessionId" in path and method != "DELETE":
        path["sessionId"] = a_session()
        if "turnId" in path:
            path["turnId"] = a_turn(path["sessionId"]) or path["turnId"]
        if "name" in path:
            path["name"] = a_file(path["sessionId"], "artifacts" if "/artifacts/" in route else "attachments") or path["name"]
    if "permissionId" in path:
        path["permissionId"] = a_question() or path["permissionId"]
    if "configId" in path:
        path["configId"] = ["mode", "model", "thinking"][count // 2 % 3]


def known_names(body):
    for field, value in {"cwd": WORK, "additionalDirectories": [], "mcpServers": []}.items():
        if field in body:
            body[field] = value
    for field in ("mode", "modeId"):
        if isinstance(body.get(field), str):
            body[field] = MODES[count // 2 % 4]
    for field in ("model", "thinking"):
        body.pop(field, None)
