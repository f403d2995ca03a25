"""A model server for agents: answers chat completions, responses, messages and Gemini requests.

The last line of the prompts that begins with one of these words decides the answer:

    RUN COMMAND    a call of the shell tool that the agent offers, then the text "finished"; \\n in
                   COMMAND is a line break
    SAY TEXT       the text

A request without tools is for a title or a summary, and gets a fixed text. `python3 mock.py [PORT]`
serves on its own and prints each request.

JUDGE names the program of tests/it/judge.rs. A request of nuncio that a provider would refuse is
refused, and is a fault of the check. Those of other agents are only counted.
"""

import gzip
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import judge  # noqa: E402

# nuncio's own requests. Codex begins with the name of its client, too, and adds the system and its terminal.
NUNCIO = re.compile(r"nuncio/[\w.+-]+")
INSTRUCTION = re.compile(r"^(RUN|SAY) (.*)$", re.MULTILINE)

# The shell tools of the agents, with the argument for the command.
SHELLS = {
    "bash": "command",
    "Bash": "command",
    "exec_command": "cmd",
    "run_shell_command": "command",
    "shell_command": "command",
}


def text_of(content):
    """The text of a string, or of a list of content blocks."""
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))
    return content or ""


class Chat:
    """https://platform.openai.com/docs/api-reference/chat"""

    @staticmethod
    def read(body):
        """Yields ("user", text) and ("result", text) in order."""
        for message in body["messages"]:
            if message["role"] == "user":
                yield "user", text_of(message["content"])
            elif message["role"] == "tool":
                yield "result", text_of(message["content"])

    @staticmethod
    def tools(body):
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    @staticmethod
    def events(number, model, texts, call):
        def chunk(delta, reason=None, **more):
            choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
            return {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": int(time.time()), "model": model, "choices": choices, **more}

        yield chunk({"role": "assistant", "content": ""})
        for text in texts:
            yield chunk({"content": text})
        if call:
            name, arguments = call
            function = {"name": name, "arguments": json.dumps(arguments)}
            yield chunk({"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]})
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield chunk({}, "tool_calls" if call else "stop", usage=usage)
        yield "[DONE]"

    @staticmethod
    def whole(number, model, text):
        choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        return {"id": f"chat-{number}", "object": "chat.completion", "created": int(time.time()), "model": model, "choices": choices}


class Responses:
    """https://platform.openai.com/docs/api-reference/responses"""

    @staticmethod
    def read(body):
        if isinstance(body["input"], str):
            yield "user", body["input"]
            return
        for item in body["input"]:
            if item.get("type", "").endswith("_output"):
                yield "result", text_of(item["output"])
            elif item.get("role") == "user":
                yield "user", text_of(item["content"])

    @staticmethod
    def tools(body):
        return [tool.get("name", tool["type"]) for tool in body.get("tools", [])]

    @staticmethod
    def response(number, model, status, output):
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        return {"id": f"resp_{number}", "object": "response", "created_at": int(time.time()), "status": status, "model": model, "output": output, "usage": usage}

    @classmethod
    def events(cls, number, model, texts, call):
        yield {"type": "response.created", "response": cls.response(number, model, "in_progress", [])}
        if call:
            name, arguments = call
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
            yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
        else:
            content = [{"type": "output_text", "text": "".join(texts), "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
            yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
            for text in texts:
                yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": text}
        yield {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}}
        yield {"type": "response.completed", "response": cls.response(number, model, "completed", [item])}

    @classmethod
    def whole(cls, number, model, text):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
        return cls.response(number, model, "completed", [item])


class Messages:
    """https://docs.claude.com/en/api/messages"""

    @staticmethod
    def read(body):
        for message in body["messages"]:
            content = message["content"]
            if message["role"] != "user":
                continue
            if isinstance(content, str):
                yield "user", content
                continue
            for block in content:
                if block["type"] == "tool_result":
                    yield "result", text_of(block.get("content"))
                elif block["type"] == "text":
                    yield "user", block["text"]

    @staticmethod
    def tools(body):
        return [tool["name"] for tool in body.get("tools", [])]

    @staticmethod
    def message(number, model, content, reason):
        usage = {"input_tokens": 10, "output_tokens": 5}
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    @classmethod
    def events(cls, number, model, texts, call):
        yield {"type": "message_start", "message": cls.message(number, model, [], None)}
        if call:
            name, arguments = call
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]
        else:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": text} for text in texts]
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        reason = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 5}}
        yield {"type": "message_stop"}

    @classmethod
    def whole(cls, number, model, text):
        return cls.message(number, model, [{"type": "text", "text": text}], "end_turn")


class Gemini:
    """https://ai.google.dev/api/generate-content"""

    @staticmethod
    def read(body):
        for content in body["contents"]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    yield "result", json.dumps(part["functionResponse"])
                elif content.get("role") != "model" and "text" in part:
                    yield "user", part["text"]

    @staticmethod
    def tools(body):
        return [function["name"] for tool in body.get("tools", []) for function in tool.get("functionDeclarations", [])]

    @staticmethod
    def answer(model, parts, reason=None):
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return {"candidates": [candidate], "modelVersion": model, "usageMetadata": usage}

    @classmethod
    def events(cls, number, model, texts, call):
        for text in texts:
            yield cls.answer(model, [{"text": text}])
        if call:
            name, arguments = call
            yield cls.answer(model, [{"functionCall": {"id": f"call_{number}", "name": name, "args": arguments}}])
        yield cls.answer(model, [{"text": ""}], "STOP")

    @classmethod
    def whole(cls, number, model, text):
        return cls.answer(model, [{"text": text}], "STOP")


def protocol_of(path):
    if path.endswith("/chat/completions"):
        return Chat
    if path.endswith("/responses"):
        return Responses
    if path.endswith("/messages"):
        return Messages
    if "enerateContent" in path:
        return Gemini
    return None


class Mock:
    """A server on a free port of 127.0.0.1, or on `port`. `arguments` are further arguments of the
    calls of the shell tool."""

    def __init__(self, port=0, verbose=False, arguments=None):
        self.prompts, self.bodies, self.arguments = [], [], arguments or {}
        # What providers would refuse: the faults of nuncio, and the rules that other agents break.
        self.faults, self.broken = [], Counter()
        self.judge = judge.Judge()
        self.lock = threading.Lock()
        self.verbose = verbose
        mock = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.reply(200, {})

            def do_GET(self):
                models = [{"id": "mock-model", "object": "model", "owned_by": "mock"}]
                known = self.path.split("?")[0].endswith("/models")
                self.reply(200 if known else 404, {"object": "list", "data": models} if known else {"error": {"message": "unknown path"}})

            def do_POST(self):
                mock.post(self, self.body())

            def body(self):
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

            def reply(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def stream(self, events):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for event in events:
                    name = f"event: {event['type']}\n" if "type" in event and isinstance(event, dict) else ""
                    data = event if isinstance(event, str) else json.dumps(event)
                    self.wfile.write(f"{name}data: {data}\n\n".encode())
                    self.wfile.flush()
                self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                # Agents close connections when a turn is cancelled.
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def post(self, handler, body):
        path = handler.path.split("?")[0]
        protocol = protocol_of(path)
        if protocol is None:
            counts = {"input_tokens": 10, "totalTokens": 10}
            counting = path.endswith("/count_tokens") or path.endswith(":countTokens")
            handler.reply(200 if counting else 404, counts if counting else {"error": {"message": "unknown path"}})
            return
        refusals = self.judge.refusals(path, body)
        if NUNCIO.fullmatch(handler.headers.get("User-Agent", "")):
            if refusals:
                self.faults += map(judge.shown, refusals)
                message = refusals[0]["message"]
                handler.reply(400, {"type": "error", "error": {"type": "invalid_request_error", "code": 400, "message": message}})
                return
        else:
            self.broken.update(refusal["rule"] for refusal in refusals)
        body = json.loads(body)
        model = body.get("model", "mock-model")
        with self.lock:
            number = len(self.prompts) + 1
            texts, call, users = answer(protocol, body, self.arguments)
            self.prompts.append(users)
            self.bodies.append(json.dumps(body))
        if self.verbose:
            print(number, path, texts, call, protocol.tools(body), flush=True)
        if body.get("stream") or "streamGenerateContent" in path:
            handler.stream(protocol.events(number, model, texts, call))
        else:
            handler.reply(200, protocol.whole(number, model, "".join(texts)))

    def requests(self):
        """The texts of the user's messages in each request so far that offered tools."""
        with self.lock:
            return [users for users in self.prompts if users]


def answer(protocol, body, more):
    """Returns the texts of the answer, the call as name and arguments or None, and the texts of the
    user's messages. `more` are further arguments of the call."""
    tools = protocol.tools(body)
    if not tools:
        # Gemini's requests for a JSON object.
        wants_json = "responseJsonSchema" in json.dumps(body.get("generationConfig", {}))
        return (['{"next_speaker":"user","reasoning":""}'] if wants_json else ["Title"]), None, []
    word, rest, results, users = "SAY", "nothing to do", 0, []
    for kind, text in protocol.read(body):
        if kind == "result":
            results += 1
            continue
        users.append(text)
        for match in INSTRUCTION.finditer(text):
            (word, rest), results = match.groups(), 0
    if word == "SAY":
        return re.findall(r"\S+\s*", rest), None, users
    if results:
        return ["fin", "ished"], None, users
    shell = next(name for name in SHELLS if name in tools)
    arguments = {SHELLS[shell]: rest.replace("\\n", "\n"), **more}
    if shell in ("bash", "Bash", "run_shell_command"):
        arguments["description"] = "run a command"
    return [], (shell, arguments), users


if __name__ == "__main__":
    if "JUDGE" not in os.environ:
        sys.exit("JUDGE must name the program of tests/it/judge.rs, which tests/judge.sh builds")
    mock = Mock(int(sys.argv[1]) if len(sys.argv) > 1 else 0, verbose=True)
    print(f"http://127.0.0.1:{mock.port}", flush=True)
    threading.Event().wait()
