"""Delegates a task with the default client of the Python SDK, which takes the newest protocol version that a server
offers: default_client.py NUNCIO HOME. `mcp serve` on stdio; `/mcp` is used by hosted.py."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters, types

nuncio, home = sys.argv[1:3]
work = os.path.join(home, "default-client")
os.makedirs(work)
failed = []


def check(name, ok, shown):
    print("ok  " if ok else "FAIL", name, "" if ok else shown)
    if not ok:
        failed.append(name)


def script(command):
    path = os.path.join(work, "script.json")
    with open(path, "w") as file:
        call = {"name": "bash", "input": {"command": command}}
        json.dump({"steps": [{"tool_calls": [call]}, {"text": "It is done."}]}, file)
    return f"scripted:{path}"


async def delegate(command, answer, **arguments):
    """Returns the protocol version, the result and the messages of the forms."""
    asked = []

    async def fill(context, params):
        asked.append(params.message)
        return answer

    arguments_of_server = ["mcp", "serve", "--model", script(command)]
    server = StdioServerParameters(command=nuncio, args=arguments_of_server, cwd=work, env=dict(os.environ))
    callback = {"elicitation_callback": fill} if answer else {}
    async with Client(server, read_timeout_seconds=30, **callback) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["delegate"], tools
        result = await client.call_tool("delegate", {"prompt": "make it", **arguments})
        return client.protocol_version, json.loads(result.model_dump_json(by_alias=True)), asked


async def main():
    allow = types.ElicitResult(action="accept", content={"decision": "allow_once"})
    version, result, asked = await delegate("touch made", allow)
    check("newest protocol", version == "2026-07-28", version)
    check("delegate", result["content"][0]["text"] == "It is done." and not result["isError"], result)
    check("elicitation", len(asked) == 1 and "touch made" in asked[0], asked)
    check("allowed command ran", os.path.exists(os.path.join(work, "made")), work)
    _, result, asked = await delegate("touch refused", types.ElicitResult(action="decline"))
    check("declined", len(asked) == 1 and not os.path.exists(os.path.join(work, "refused")), result)
    _, result, asked = await delegate("touch unasked", None)
    check("client without forms", not asked and not os.path.exists(os.path.join(work, "unasked")), result)
    _, result, _ = await delegate("true", allow, cwd="/")
    check("directory of the server", result["isError"] and "outside the allowed roots" in result["content"][0]["text"], result)


asyncio.run(asyncio.wait_for(main(), 120))
print(f"{'failed: ' + ', '.join(failed) if failed else 'default client: all checks passed'}")
sys.exit(1 if failed else 0)
