"""Uses nuncio's MCP server over HTTP with the Python client of MCP, as a hosted agent does: hosted.py NUNCIO HOME.
`hosted.py agent` is the agent, which speaks ACP."""

import asyncio
import json
import os
import subprocess
import sys

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
            text = json.dumps(asyncio.run(use(server)))
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
    prompt = [{"type": "text", "text": "use the tools"}]
    found = json.loads(call(3, "session/prompt", {"sessionId": session, "prompt": prompt})[1])
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
    print(f"{'failed: ' + ', '.join(failed) if failed else 'hosted agent: all checks passed'}")
    sys.exit(1 if failed else 0)


if sys.argv[1] == "agent":
    agent()
else:
    run(*sys.argv[1:3])
