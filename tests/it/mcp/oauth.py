"""An MCP server that requires OAuth, with its authorization server: oauth.py LOG SECONDS [challenge]
[authorize=ADDRESS]. Prints its port. With `challenge`, only the answer to a request without a token tells where the
metadata are and which scope is required. The tool `admin` requires the scope `admin`.

Each access token is valid for one minute, each refresh token once. `POST /revoke` makes all tokens
invalid, `POST /forget` removes all clients, `POST /break` makes the next call fail. The log has a
line for each request of a token: the grant, and whether it succeeded."""

import base64
import hashlib
import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

log = open(sys.argv[1], "a", buffering=1)
lock = threading.Lock()
clients, codes, access, refresh, broken = {"known": "secret"}, {}, {}, {}, []
lifetime = [60]


def tokens(scope):
    token, again = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
    access[token] = refresh[again] = scope
    return {"access_token": token, "token_type": "Bearer", "expires_in": lifetime[0], "refresh_token": again, "scope": scope}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value=None, **headers):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()

    def do_GET(self):
        base = f"http://127.0.0.1:{self.server.server_port}"
        url = urlsplit(self.path)
        if url.path == METADATA:
            resource = {"resource": f"{base}/mcp", "authorization_servers": [base]}
            return self.answer(200, resource if challenges else {**resource, "scopes_supported": ["tools"]})
        if url.path == "/.well-known/oauth-authorization-server":
            return self.answer(200, {
                "issuer": base,
                "authorization_endpoint": named or f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            })
        if url.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            if asked["client_id"] not in clients or asked["code_challenge_method"] != "S256":
                return self.answer(400, {"error": "invalid_request"})
            code = secrets.token_urlsafe(8)
            codes[code] = asked
            return self.answer(302, Location=f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")
        return self.answer(405 if url.path == "/mcp" else 404)

    def do_POST(self):
        with lock:
            routes = {"/register": self.register, "/token": self.token, "/mcp": self.mcp, "/revoke": self.revoke}
            routes |= {"/forget": self.forget, "/break": self.break_calls}
            routes[self.path]()

    def register(self):
        asked = json.loads(self.body())
        name = secrets.token_urlsafe(4)
        clients[name] = None
        self.answer(201, {"client_id": name, "redirect_uris": asked["redirect_uris"], "client_name": asked["client_name"]})

    def revoke(self):
        self.body()
        access.clear()
        refresh.clear()
        self.answer(200, {})

    def forget(self):
        self.body()
        clients.clear()
        self.answer(200, {})

    def break_calls(self):
        self.body()
        broken.append(True)
        self.answer(200, {})

    def token(self):
        form = {name: values[0] for name, values in parse_qs(self.body()).items()}
        if form.get("client_id") not in clients:
            return self.answer(401, {"error": "invalid_client"})
        scope = self.granted(form)
        log.write(f"{form['grant_type']} {'ok' if scope else 'refused'}\n")
        self.answer(*((200, tokens(scope)) if scope else (400, {"error": "invalid_grant"})))

    def granted(self, form):
        """Returns the scope of the tokens, or None."""
        client = form.get("client_id")
        if client not in clients or clients[client] != form.get("client_secret"):
            return None
        if form["grant_type"] == "refresh_token":
            scope = refresh.pop(form["refresh_token"], None)
            if scope:
                lifetime[0] = 3600
            return scope
        asked = codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        same = asked and all(asked[name] == form[name] for name in ("client_id", "redirect_uri", "resource"))
        return asked.get("scope", "tools") if same and asked["code_challenge"] == challenge else None

    def mcp(self):
        message = json.loads(self.body())
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        metadata = f"http://127.0.0.1:{self.server.server_port}{METADATA}"
        if token not in access:
            scope = ', scope="tools files"' if challenges else ""
            return self.answer(401, WWW_Authenticate=f'Bearer resource_metadata="{metadata}"{scope}')
        if message["method"] == "tools/call" and message["params"]["name"] == "admin" and "admin" not in access[token].split():
            why = f'Bearer error="insufficient_scope", scope="admin", resource_metadata="{metadata}"'
            return self.answer(403, WWW_Authenticate=why)
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}},
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["whoami"] + ["admin"] * challenges]},
            "tools/call": {"content": [{"type": "text", "text": "the owner"}]},
        }
        if "id" not in message:
            return self.answer(202)
        if message["method"] == "tools/call" and broken:
            broken.pop()
            return self.answer(500)
        result = results.get(message["method"])
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], **outcome})


challenges = "challenge" in sys.argv
named = next((argument.partition("=")[2] for argument in sys.argv if argument.startswith("authorize=")), None)
METADATA = "/private/metadata" if challenges else "/.well-known/oauth-protected-resource/mcp"
if len(sys.argv) > 2:
    lifetime[0] = int(sys.argv[2])
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
