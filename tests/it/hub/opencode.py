"""A server as `opencode serve`. The words of a prompt choose what it does; arguments before `serve` choose how it starts."""

import base64
import json
import os
import queue
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen



def attach():
    """Does what the words after `attach URL --session ID` say, as a user in the terminal client."""
    address, session, words = sys.argv[2], sys.argv[4], sys.argv[5:]
    login = base64.b64encode(f"opencode:{os.environ['OPENCODE_SERVER_PASSWORD']}".encode()).decode()

    def call(path, body=None):
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        url = f"{address}{path}?{urlencode({'directory': os.getcwd()})}"
        data = None if body is None else json.dumps(body).encode()
        return json.loads(urlopen(Request(url, data, headers)).read() or "null")

    if words[0] == "abort":
        call(f"/session/{session}/abort", {})
    elif words[0] == "reply":
        call(f"/permission/{call('/permission')[0]['id']}/reply", {"reply": words[1]})
    else:
        call(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": " ".join(words)}]})
    sys.exit()


if sys.argv[1:2] == ["attach"]:
    attach()
PLACE = sys.argv.index("serve")
FLAGS = set(sys.argv[1:PLACE])
PORT = int(sys.argv[sys.argv.index("--port") + 1])
STORE = os.path.join(os.environ["HOME"], "fake-opencode")
PASSWORD = os.environ["OPENCODE_SERVER_PASSWORD"]
LOGIN = "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()

lock = threading.RLock()
streams, permissions, questions, sessions = [], {}, {}, {}
reads = threading.Event()
counter = time.time_ns()


def number(kind):
    global counter
    with lock:
        counter += 1
        return f"{kind}_{counter:x}"


def emit(kind, **properties):
    with lock:
        for stream in streams:
            stream.put({"id": number("evt"), "type": kind, "properties": properties})


def cut():
    """Closes all event streams, and waits until one is open again and the messages were read."""
    reads.clear()
    with lock:
        for stream in streams:
            stream.put(None)
        streams.clear()


class Session:
    def __init__(self, identifier, prompts, rules, parent=None):
        self.id, self.prompts, self.rules = identifier, prompts, rules
        self.messages, self.busy, self.aborted = [], False, threading.Event()
        self.later, self.deleted, self.child, self.parent = None, False, None, parent

    def emit(self, kind, **properties):
        emit(kind, sessionID=self.id, **properties)

    def status(self, kind, **more):
        self.busy = kind != "idle"
        self.emit("session.status", status={"type": kind, **more})
        if kind == "idle":
            self.emit("session.idle")

    def message(self, role):
        info = {"id": number("msg"), "sessionID": self.id, "role": role, "time": {"created": 1}, "providerID": "fake", "modelID": "model"}
        self.messages.append({"info": info, "parts": []})
        self.emit("message.updated", info=json.loads(json.dumps(info)))
        return self.messages[-1]

    def complete(self, message, **more):
        tokens = {"input": 1000, "output": 20, "reasoning": 5, "cache": {"read": 200, "write": 0}}
        message["info"].update(cost=0.25, tokens=tokens, finish="stop", **more)
        message["info"]["time"]["completed"] = 2
        self.emit("message.updated", info=message["info"])

    def part(self, message, kind, **fields):
        part = {"id": number("prt"), "messageID": message["info"]["id"], "sessionID": self.id, "type": kind, **fields}
        message["parts"].append(part)
        self.update(part)
        return part

    def update(self, part, **fields):
        part.update(fields)
        self.emit("message.part.updated", part=json.loads(json.dumps(part)), time=1)

    def delta(self, part, text):
        self.emit("message.part.delta", messageID=part["messageID"], partID=part["id"], field="text", delta=text)

    def say(self, message, *pieces, kind="text"):
        part = self.part(message, kind, text="", time={"start": 1})
        for piece in pieces:
            self.delta(part, piece)
        self.update(part, text="".join(pieces), time={"start": 1, "end": 2})

    def ask(self, call, permission, metadata, shown=True):
        identifier = number("per")
        request = {"id": identifier, "sessionID": self.id, "permission": permission, "patterns": ["*"], "always": ["*"],
                   "metadata": metadata, "tool": {"messageID": "m", "callID": call}}
        answered = queue.Queue()
        with lock:
            permissions[identifier] = (request, answered)
        if shown:
            emit("permission.asked", **request)
        return identifier, answered

    def wait(self, answered):
        while True:
            try:
                return answered.get(timeout=0.02)
            except queue.Empty:
                if self.aborted.is_set():
                    return None

    def run(self, message, command, metadata=True, hidden=False):
        """Returns whether the turn goes on."""
        call = number("call")
        part = self.part(message, "tool", tool="bash", callID=call, state={"status": "pending", "input": {}})
        if hidden:
            cut()
        identifier, answered = self.ask(call, "bash", {"command": command} if metadata else {}, not hidden)
        self.update(part, state={"status": "running", "input": {"command": command}})
        answer = self.wait(answered)
        with lock:
            permissions.pop(identifier, None)
        if answer is None:
            self.abort(message, part)
            return False
        self.emit("permission.replied", requestID=identifier, reply=answer["reply"])
        state = {"input": {"command": command}}
        if answer["reply"] == "reject":
            self.update(part, state={**state, "status": "error", "error": "rejected"})
        else:
            ran = subprocess.run(command, shell=True, capture_output=True, text=True)
            self.update(part, state={**state, "status": "running", "metadata": {"output": ran.stdout}})
            self.update(part, state={**state, "status": "completed", "output": ran.stdout, "title": command})
        if answer["reply"] == "reject" and "message" not in answer:
            return True
        self.say(message, f"[{answer['reply']}]")
        return True

    def subagent(self, how, command):
        """Runs a command in a session below this one. `how` is the way in which its client can learn of that session."""
        if how == "resumed":
            child = self.child
        else:
            child = self.child = Session(number("ses"), [], self.rules, None if how == "stranger" else self.id)
            sessions[child.id] = child
        if how in ("created", "nested", "updated"):
            kind = "session.updated" if how == "updated" else "session.created"
            child.emit(kind, info={"id": child.id, "parentID": self.id})
        elif how == "task":
            state = {"status": "running", "input": {"prompt": command}, "metadata": {"sessionId": child.id}}
            message = self.message("assistant")
            self.part(message, "tool", tool="task", callID=number("call"), state=state)
            self.complete(message)
        child.busy = True
        if how == "nested":
            child.subagent("created", command)
        elif how == "stranger":
            child.ask(number("call"), "bash", {"command": command})
        else:
            child.run(child.message("assistant"), command, hidden=how == "unseen")
        child.busy = False

    def abort(self, message, part=None):
        error = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
        self.emit("session.error", error=error)
        self.status("idle")
        if part:
            self.update(part, state={"status": "error", "input": part["state"]["input"], "error": "Tool execution aborted"})
        self.complete(message, error=error)
        self.status("idle")

    def save(self):
        """Other servers read the file while they start."""
        path = os.path.join(STORE, self.id)
        with lock:
            if self.deleted:
                return os.remove(path + ".json")
            with open(path + ".new", "w") as file:
                json.dump([self.prompts, self.rules], file)
            os.replace(path + ".new", path + ".json")

    def summarize(self, body):
        self.part(self.message("user"), "compaction", auto=False)
        self.status("busy")
        message = self.message("assistant")
        message["info"]["summary"] = True
        self.emit("message.updated", info=message["info"])
        self.summary = f"by {body['providerID']}/{body['modelID']}"
        self.say(message, "A summary")
        self.complete(message)
        self.status("idle")

    def prompt(self, body):
        text = body["parts"][-1]["text"]
        words = text.split()
        self.prompts.append(text)
        self.save()
        user = self.message("user")
        self.part(user, "text", text=text)
        self.status("busy")
        message = self.message("assistant")
        if self.work(message, words, body):
            self.complete(message)
            self.status("idle")
        if self.later:
            text, self.later = self.later, None
            self.prompt({"parts": [{"text": text}]})

    def work(self, message, words, body):
        word, rest = words[0], " ".join(words[1:])
        if word == "say":
            self.say(message, "thin", "king", kind="reasoning")
            self.say(message, "Hello, ", "world")
        elif word == "flood":
            for _ in range(int(rest)):
                self.say(message, "x" * (1 << 20))
        elif word == "run":
            return self.run(message, rest)
        elif word == "late":
            return self.run(message, rest, metadata=False)
        elif word == "again":
            return all(self.run(message, rest) for _ in range(3))
        elif word == "hidden":
            return self.run(message, rest, hidden=True)
        elif word == "cut":
            part = self.part(message, "text", text="", time={"start": 1})
            self.delta(part, "Hello, ")
            cut()
            self.delta(part, "lost ")
            reads.wait()
            self.delta(part, "world")
            self.update(part, text="Hello, lost world", time={"start": 1, "end": 2})
        elif word == "glob":
            # Asks for permission only if the rules of the session say so.
            call = number("call")
            part = self.part(message, "tool", tool="glob", callID=call, state={"status": "running", "input": {"pattern": rest}})
            asks = [rule["action"] for rule in self.rules if rule["permission"] == "glob"] == ["ask"]
            answer = self.wait(self.ask(call, "glob", {"pattern": rest})[1]) if asks else {"reply": "unasked"}
            done = {"status": "error", "error": "rejected"} if answer["reply"] == "reject" else {"status": "completed", "output": ""}
            self.update(part, state={"input": {"pattern": rest}, **done})
            self.say(message, f"[{answer['reply']}]")
        elif word == "summary":
            self.say(message, self.summary)
        elif word == "system":
            self.say(message, str(body.get("system")))
        elif word == "edit":
            call = number("call")
            change = {"filePath": os.path.join(os.getcwd(), "a.txt"), "oldString": "one", "newString": "two"}
            part = self.part(message, "tool", tool="edit", callID=call, state={"status": "pending", "input": {}})
            self.update(part, state={"status": "running", "input": change})
            answer = self.wait(self.ask(call, "edit", {"filepath": change["filePath"]})[1])
            done = answer["reply"] != "reject"
            state = {"status": "completed", "output": "edited"} if done else {"status": "error", "error": "rejected"}
            self.update(part, state={"input": change, **state})
        elif word == "subagent":
            self.subagent(words[1], " ".join(words[2:]))
            self.say(message, "done")
        elif word == "question":
            answered = queue.Queue()
            questions["que_1"] = answered
            self.emit("question.asked", id="que_1", questions=[{"question": "Which?", "header": "Which", "options": [{"label": "A"}]}])
            self.say(message, f"[{self.wait(answered)}]")
        elif word in ("wait", "fork"):
            if word == "fork":
                subprocess.Popen(["setsid", "sleep", "600"], close_fds=False)
            part = self.part(message, "tool", tool="bash", callID=number("call"), state={"status": "running", "input": {"command": "sleep"}})
            self.aborted.wait()
            self.abort(message, part)
            return False
        elif word == "hang":
            self.say(message, "hanging")
            threading.Event().wait()
        elif word == "retry":
            self.status("retry", attempt=1, message="too many requests", next=1)
            self.status("busy")
            self.say(message, "tried again")
        elif word == "error":
            error = {"name": "APIError", "data": {"message": "quota exceeded", "statusCode": 400}}
            self.emit("session.error", error=error)
            self.status("idle")
            self.complete(message, error=error)
            self.status("idle")
            return False
        elif word == "stuck":
            # The message is never completed.
            self.say(message, "stuck")
            self.status("idle")
            return False
        elif word == "delete":
            # Another client deletes the session after the turn.
            self.say(message, "deleted")
            self.deleted = True
            self.save()
        elif word == "crash":
            self.say(message, "a part")
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(3)
        elif word == "garbage":
            for stream in streams:
                for item in ({"type": "never.heard.of"}, {"type": 7, "properties": 7}, [], {"type": "server.heartbeat", "properties": {}}):
                    stream.put(item)
            emit("message.updated", info={"id": "msg_z", "role": "assistant", "sessionID": "ses_other", "time": {}}, sessionID="ses_other")
            self.emit("message.part.updated", part={"type": "snapshot", "sessionID": self.id})
            self.emit("message.part.delta", messageID="m", partID="none", field="text", delta="lost")
            self.say(message, "still here")
        elif word == "env":
            self.say(message, os.environ.get(rest, "(unset)"))
        elif word == "servers":
            self.say(message, json.dumps(servers))
        elif word == "mode":
            self.say(message, body.get("agent", "(none)"))
        elif word == "model":
            model = body.get("model", "(none)")
            self.say(message, model if isinstance(model, str) else f"{model['providerID']}/{model['modelID']}")
        elif word == "echo":
            self.say(message, rest)
        elif word == "later":
            # Another client sends a prompt as soon as the turn has ended.
            self.say(message, "wait")
            self.later = rest
        elif word == "server":
            self.say(message, f"{os.getpid()} {PORT} {self.id}")
        elif word == "rules":
            self.say(message, json.dumps(self.rules))
        elif word != "silent":
            self.say(message, " / ".join(self.prompts))
        return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def admitted(self):
        if first.acquire(blocking=False):
            # A server that just began to listen never answers.
            self.connection.recv(1)
            self.close_connection = True
            return False
        if self.headers.get("Authorization") != LOGIN and "open" not in FLAGS:
            self.reply(401, {})
            return False
        return True

    def session(self, path):
        found = sessions.get(path.split("/")[2])
        return None if found and found.deleted and not found.busy else found

    def do_GET(self):
        if not self.admitted():
            return
        url = urlsplit(self.path)
        path, query = url.path, parse_qs(url.query)
        if path == "/event":
            return self.stream()
        if path == "/global/health":
            return self.reply(200, {"healthy": True, "version": "9.9.9"})
        if query.get("directory") != [os.getcwd()]:
            return self.reply(400, {"data": {"message": f"another directory: {query}"}})
        if path == "/config/providers":
            models = {"model": {"name": "Model", "limit": {"context": 200000}}, "other": {"name": "Other"}}
            return self.reply(200, {"providers": [{"id": "fake", "models": models}]})
        if path == "/agent":
            agents = [("build", "primary"), ("careful", "all"), ("plan", "primary"), ("explore", "subagent"), ("title", "primary")]
            return self.reply(200, [{"name": name, "mode": mode, "hidden": name == "title"} for name, mode in agents])
        if path == "/command":
            return self.reply(200, [{"name": "greet", "description": "Greets", "template": "echo greeted $ARGUMENTS"}])
        if path == "/config":
            return self.reply(200, {"model": "fake/model"})
        if path == "/session/status":
            return self.reply(200, {session.id: {"type": "busy"} for session in sessions.values() if session.busy})
        if path == "/permission":
            return self.reply(200, [request for request, _ in permissions.values()])
        if path == "/question":
            return self.reply(200, [])
        session = self.session(path)
        if not session:
            return self.reply(404, {"name": "NotFoundError", "data": {"message": "Session not found"}})
        if path.endswith("/children"):
            below = [{"id": child.id, "parentID": child.parent} for child in sessions.values() if child.parent == session.id]
            return self.reply(200, below)
        if path.endswith("/message"):
            with lock:
                self.reply(200, session.messages[-int(query["limit"][0]):])
                if query["limit"] != ["1"]:
                    reads.set()
            return None
        return self.reply(200, {"id": session.id})

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        events = queue.Queue()
        events.put({"type": "server.connected", "properties": {}})
        with lock:
            streams.append(events)
        while (event := events.get()) is not None:
            try:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            except OSError:
                with lock:
                    if events in streams:
                        streams.remove(events)
                return

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        if not self.admitted():
            return
        path = urlsplit(self.path).path
        if path == "/session":
            session = Session(number("ses"), [], body.get("permission"))
            sessions[session.id] = session
            session.save()
            return self.reply(200, {"id": session.id})
        if path == "/mcp":
            servers[body["name"]] = body["config"]
            return self.reply(200, {})
        words = path.split("/")
        if words[1] == "permission":
            with lock:
                request = permissions.pop(words[2], None)
            if request:
                request[1].put(body)
            return self.reply(200 if request else 404, True)
        if words[1] == "question":
            questions[words[2]].put(words[3])
            return self.reply(200, True)
        session = self.session(path)
        if not session:
            return self.reply(404, {"name": "NotFoundError", "data": {"message": "Session not found"}})
        if path.endswith("/abort"):
            session.aborted.set()
            return self.reply(200, True)
        session.aborted.clear()
        if path.endswith("/command"):
            text = f"echo greeted {body['arguments']}" if body["arguments"] != "mode" else "mode"
            session.prompt({**body, "parts": [{"text": text}]})
            return self.reply(200, session.messages[-1])
        if path.endswith("/summarize"):
            session.summarize(body)
            return self.reply(200, True)
        self.reply(204)
        threading.Thread(target=session.prompt, args=(body,), daemon=True).start()
        return None


first = threading.Semaphore(1)
servers = {}
if "broken" in FLAGS:
    sys.exit("Error: config is invalid")
if "used" in FLAGS and not os.path.exists(STORE):
    os.mkdir(STORE)
    sys.exit("Unexpected error\nServeError: port in use")
os.makedirs(STORE, exist_ok=True)
for name in os.listdir(STORE):
    identifier, ending = os.path.splitext(name)
    if ending == ".json" and "forgets" not in FLAGS:
        with open(os.path.join(STORE, name)) as file:
            sessions[identifier] = Session(identifier, *json.load(file))
try:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
except OSError as error:
    sys.exit(f"Unexpected error\nServeError: {error}")
server.daemon_threads = True
print("a warning", flush=True)
print(f"opencode server listening on http://127.0.0.1:{PORT}", flush=True)
server.serve_forever()
