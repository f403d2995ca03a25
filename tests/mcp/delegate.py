"""Delegates tasks to `nuncio mcp serve` with the Python client of MCP: delegate.py NUNCIO HOME."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

nuncio, home = sys.argv[1:3]
work = os.path.join(home, "delegated")
os.makedirs(work)
script = os.path.join(home, "delegated.json")
touch = {"name": "bash", "input": {"command": "touch made"}}
with open(script, "w") as file:
    json.dump({"steps": [{"text": "I work.", "tool_calls": [touch]}, {"text": "It is made."}]}, file)
failed = []


def check(name, ok, shown):
    print("ok  " if ok else "FAIL", name, "" if ok else shown)
    if not ok:
        failed.append(name)


async def main():
    asked, progress = [], []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})

    async def report(value, total, message):
        progress.append(message)

    command = StdioServerParameters(
        command=nuncio, args=["mcp", "serve", "--model", f"scripted:{script}"], cwd=work, env=dict(os.environ)
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write, elicitation_callback=answer) as session:
        info = await session.initialize()
        server = getattr(info, "server_info", None) or info.serverInfo
        check("initialize", server.name == "nuncio", info)
        tools = (await session.list_tools()).tools
        check("tools/list", [tool.name for tool in tools] == ["delegate"], tools)
        result = await session.call_tool("delegate", {"prompt": "make it"}, progress_callback=report)
        result = json.loads(result.model_dump_json(by_alias=True))
        content = result["structuredContent"]
        check("delegate", result["content"][0]["text"] == "It is made.", result)
        check("structured content", content["stopReason"] == "end_turn" and content["turnId"], content)
        check("elicitation", len(asked) == 1 and "touch made" in asked[0], asked)
        check("effect", os.path.exists(os.path.join(work, "made")), work)
        check("progress", len(progress) > 0, progress)
        again = await session.call_tool("delegate", {"prompt": "again", "session": content["sessionId"]})
        again = json.loads(again.model_dump_json(by_alias=True))
        check("continue a session", again["structuredContent"]["sessionId"] == content["sessionId"], again)
        wrong = await session.call_tool("delegate", {"prompt": ""})
        check("an error of the tool", "is empty" in wrong.model_dump_json(), wrong)


asyncio.run(main())
print(f"{'failed: ' + ', '.join(failed) if failed else 'delegate: all checks passed'}")
sys.exit(1 if failed else 0)
