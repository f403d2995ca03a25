"""Uses nuncio's MCP server over HTTP as a hosted agent does: with the Python clients of MCP, and with the server
scenarios of the conformance suite that need no tools of their own: hosted.py NUNCIO HOME. `hosted.py agent` is the
agent, which speaks ACP."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCENARIOS = [
    "server-initialize", "ping", "tools-list", "server-sse-polling", "server-sse-multiple-streams", "dns-rebinding-protection",
]
WORK = "mcp-hosted"


async def use(server):
    """Connects to the server of `session/new` and calls its tools. Returns what they answered."""
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    headers = {header["name"]: header["value"] for header in server["headers"]}
    async with httpx2.AsyncClient(headers=headers) as http, streamable_http_client(server["url"], http_client=http) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            info = await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            answers = []
            for name, arguments in [
                ("workspace_metadata", {}),
                ("workspace_execute", {"command": "echo executed"}),
                ("delegate", {"prompt": "say it"}),
                ("delegate", {"prompt": ""}),
            ]:
                answers.append(json.loads((await session.call_tool(name, arguments)).model_dump_json(by_alias=True)))
    return {"info": json.loads(info.model_dump_json(by_alias=True)), "tools": tools, "answers": answers}


async def use_default(server):
    """Delegates with the default client, which answers the permission request. Returns what it saw."""
    import httpx2
    from mcp import Client, types
    from mcp.client.streamable_http import streamable_http_client

    asked = []

    async def fill(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})

    headers = {header["name"]: header["value"] for header in server["headers"]}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(server["url"], http_client=http)
        async with Client(transport, elicitation_callback=fill, read_timeout_seconds=30) as client:
            result = await client.call_tool("delegate", {"prompt": "make it", "mode": "ask", "agent": "maker"})
            return {"version": client.protocol_version, "asked": asked, "result": json.loads(result.model_dump_json(by_alias=True))}


def conformance(server):
    """Runs the scenarios through a proxy that adds the token. Returns the output of each, and its exit code."""
    token = {header["name"]: header["value"] for header in server["headers"]}
    origin, path = server["url"].removesuffix("/mcp"), "/mcp"

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            own = f"localhost:{proxy.server_port}"
            hop = ("connection", "content-length", "host")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in hop} | token
            # Names of another host are passed on.
            headers = {name: value.replace(f"http://{own}", origin) for name, value in headers.items()}
            host = self.headers["Host"]
            headers["Host"] = origin.removeprefix("http://") if host == own else host
            request = urllib.request.Request(origin + path, body or None, headers, method=self.command)
            try:
                answer = urllib.request.urlopen(request, timeout=20)
            except urllib.error.HTTPError as error:
                answer = error
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = forward

        def log_message(self, *_):
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    here = os.path.dirname(os.path.abspath(__file__))
    suite = os.path.join(here, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
    found = {}
    for scenario in SCENARIOS:
        command = ["node", "--import", os.path.join(here, "node20.mjs"), suite, "server", "--url", f"http://localhost:{proxy.server_port}/mcp"]
        ran = subprocess.run([*command, "--scenario", scenario, "--verbose"], capture_output=True, text=True, timeout=30)
        found[scenario] = [ran.returncode, (ran.stdout + ran.stderr)[-3000:]]
    proxy.shutdown()
    return found


def agent():
    server = None
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        result = {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}}}
        elif method == "session/new":
            server = next(server for server in params["mcpServers"] if server["name"] == "nuncio")
            result = {"sessionId": "one"}
        elif method == "session/prompt":
            asked = params["prompt"][0]["text"]
            if asked == "conformance":
                text = json.dumps(conformance(server))
            else:
                text = json.dumps(asyncio.run(use_default(server) if asked == "default client" else use(server)))
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "one", "update": update}}))
            result = {"stopReason": "end_turn"}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def run(nuncio, home):
    work, data = os.path.join(home, WORK), os.path.join(home, "nuncio-hosted")
    os.makedirs(work)
    os.makedirs(data)
    script = os.path.join(home, "hosted.json")
    with open(script, "w") as file:
        json.dump({"steps": [{"text": "It is said."}]}, file)
    making = os.path.join(home, "hosted-making.json")
    with open(making, "w") as file:
        json.dump({"steps": [{"tool_calls": [{"name": "bash", "input": {"command": "touch made"}}]}, {"text": "It is made."}]}, file)
    os.makedirs(os.path.join(data, "agents"))
    with open(os.path.join(data, "agents", "maker.md"), "w") as file:
        file.write(f"---\nname: maker\ndescription: Makes.\nmodel: scripted:{making}\n---\nYou make.\n")
    with open(os.path.join(data, "config.toml"), "w") as file:
        command = json.dumps([sys.executable, os.path.abspath(__file__), "agent"])
        file.write(f'[agents]\nallowed = ["python"]\n[agents.python]\nkind = "acp"\ncommand = {command}\n')
    environment = {**os.environ, "NUNCIO_HOME": data, "NUNCIO_LOG": "error"}
    subprocess.run([nuncio, "trust", work], env=environment, check=True, stdout=subprocess.DEVNULL)
    flags = ["--http", "127.0.0.1:0", "--mode", "auto", "--agent", "python", "--model", f"scripted:{script}"]
    child = subprocess.Popen(
        [nuncio, "acp", *flags], cwd=work, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def call(number, method, params):
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        child.stdin.flush()
        text = ""
        for line in child.stdout:
            message = json.loads(line)
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                text += update["content"]["text"]
            if message.get("id") == number:
                return message["result"], text

    call(1, "initialize", {"protocolVersion": 1})
    session = call(2, "session/new", {"cwd": work, "mcpServers": []})[0]["sessionId"]

    def prompt(number, text):
        return json.loads(call(number, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})[1])

    found, default, judged = prompt(3, "use the tools"), prompt(4, "default client"), prompt(5, "conformance")
    child.stdin.close()
    child.wait(30)
    failed = []

    def check(name, ok, shown):
        print("ok  " if ok else "FAIL", name, "" if ok else shown)
        if not ok:
            failed.append(name)

    metadata, executed, delegated, wrong = found["answers"]
    check("initialize over HTTP", found["info"]["serverInfo"]["name"] == "nuncio", found["info"])
    check("tools/list", {"delegate", "workspace_execute", "workspace_set_metadata"} <= set(found["tools"]), found["tools"])
    check("workspace_metadata", metadata["structuredContent"]["sessionId"] == session, metadata)
    check("workspace_execute", executed["content"][0]["text"].startswith("executed\n"), executed)
    check("delegate", delegated["content"][0]["text"] == "It is said.", delegated)
    check("an error of the tool", "is empty" in wrong["content"][0]["text"], wrong)
    check("newest protocol over HTTP", default["version"] == "2026-07-28", default)
    check("permission request over HTTP", len(default["asked"]) == 1 and os.path.exists(os.path.join(work, "made")), default)
    check("delegate with the default client", default["result"]["content"][0]["text"] == "It is made.", default)
    for scenario, (code, output) in judged.items():
        check(f"conformance of the server: {scenario}", code == 0, output)
    print(f"{'failed: ' + ', '.join(failed) if failed else 'hosted agent: all checks passed'}")
    sys.exit(1 if failed else 0)


if sys.argv[1] == "agent":
    agent()
else:
    run(*sys.argv[1:3])
