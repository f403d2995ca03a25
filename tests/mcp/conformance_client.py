"""One client scenario of the conformance suite, with nuncio: conformance_client.py NUNCIO URL. The suite names the
scenario in the environment. A user of nuncio would do what is done here: `mcp add`, `mcp check`, the command that an
error names (`mcp login`, in a browser), and calls of the tools."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request

nuncio, url = sys.argv[1:3]
scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
home = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
os.environ.update(HOME=home, NUNCIO_HOME=os.path.join(home, "nuncio"))
# Sign-ins after which a scenario is given up, as a user would.
SIGN_INS = 3


def run(*arguments):
    ran = subprocess.run([nuncio, *arguments], cwd=home, capture_output=True, text=True, timeout=25)
    print("$ nuncio", *arguments, "\n" + ran.stdout + ran.stderr, flush=True)
    return ran


def sign_in():
    login = subprocess.Popen([nuncio, "mcp", "login", "test"], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = next((line.strip() for line in login.stdout if line.startswith("http")), None)
    if address:
        # The authorization server redirects the browser to nuncio.
        print("browser:", urllib.request.urlopen(address, timeout=20).status, address, flush=True)
    print(*login.stdout)
    return login.wait(20) == 0


def with_sign_in(action):
    """Repeats an action after the sign-in that its output asks for."""
    for _ in range(SIGN_INS):
        ran = action()
        if "nuncio mcp login test" not in ran.stdout + ran.stderr or not sign_in():
            return ran
    return action()


def fill_in_forms(tools):
    """Calls the tools as an ACP client that accepts each form without a value."""
    script = os.path.join(home, "script.json")
    with open(script, "w") as file:
        steps = [{"tool_calls": [{"name": f"mcp__test__{tool}", "input": {}}]} for tool in tools]
        json.dump({"steps": [*steps, {"text": "end"}]}, file)
    command = [nuncio, "acp", "--mode", "auto", "--model", f"scripted:{script}"]
    agent = subprocess.Popen(command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(**message):
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        agent.stdin.flush()

    def call(method, **params):
        send(id=method, method=method, params=params)
        for line in agent.stdout:
            print(line, end="")
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], result={"action": "accept", "content": {}})
            elif message.get("id") == method:
                return message.get("result")

    call("initialize", protocolVersion=1, clientCapabilities={"elicitation": {"form": {}}})
    session = call("session/new", cwd=home, mcpServers=[])["sessionId"]
    call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
    agent.stdin.close()
    agent.wait(10)


added = run("mcp", "add", "test", "--url", url)
settings = os.path.join(home, "nuncio", "config.toml")
client = context.get("client_id")
if scenario == "auth/basic-cimd":
    # The address of a document that describes the client is an id that needs no registration.
    client = "https://conformance-test.local/client-metadata.json"
if client:
    secret = context.get("client_secret")
    os.environ["CONFORMANCE_SECRET"] = secret or ""
    with open(settings, "a") as file:
        file.write(f"\n[mcp.test.oauth]\nclient_id = {json.dumps(client)}\n")
        file.write('client_secret_env = "CONFORMANCE_SECRET"\n' if secret else "")
checked = with_sign_in(lambda: run("mcp", "check", "--json", "test"))
report = json.loads(checked.stdout.splitlines()[0]) if checked.stdout.strip() else {}
tools = report.get("tools", [])
if scenario.startswith("elicitation"):
    fill_in_forms(tools)
else:
    for tool in tools:
        arguments = {"a": 5, "b": 3} if tool == "add_numbers" else {}
        with_sign_in(lambda: run("tool", "--mode", "auto", f"mcp__test__{tool}", json.dumps(arguments)))
sys.exit(0 if report.get("ok") else 1)
