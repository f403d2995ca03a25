"""An ACP handshake: `handshake.py VERSION COMMAND…` starts the agent, sends `initialize`, and checks its answer and its exit at the end of
the input."""

import json
import subprocess
import sys

VERSION, COMMAND = sys.argv[1], sys.argv[2:]
request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
ran = subprocess.run(COMMAND, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60)
answers = [json.loads(line) for line in ran.stdout.splitlines()]
results = [answer["result"] for answer in answers if answer.get("id") == 1]
assert ran.returncode == 0, ran
# The registry of ACP starts the agent with an empty home, and knows these types of authentication.
methods = answers[0]["result"]["authMethods"]
assert methods and {method["type"] for method in methods} <= {"agent", "terminal"}, methods
assert len(results) == 1 and results[0]["protocolVersion"] == 1, ran
assert results[0]["agentInfo"] | {"title": None} == {"name": "nuncio", "version": VERSION, "title": None}, results[0]["agentInfo"]
