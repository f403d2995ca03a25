"""Uses public MCP servers through the built binary: checks.py NUNCIO HOME."""

import json
import os
import subprocess
import sys
import time

nuncio, home = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
work = os.path.join(home, "work")
passed, failed = 0, []


def run(*arguments, **options):
    return subprocess.run([nuncio, *arguments], cwd=work, capture_output=True, text=True, timeout=120, **options)


def check(name, ran, *expected, code=0):
    global passed
    output = ran.stdout + ran.stderr
    missing = [text for text in expected if text not in output]
    if ran.returncode == code and not missing:
        passed += 1
        print("ok  ", name)
    else:
        failed.append(name)
        print("FAIL", name, "exit code", ran.returncode, "without", missing)
        print(output)


def tool(name, **arguments):
    return run("tool", "--mode", "auto", name, json.dumps(arguments))


def module(name, path):
    return os.path.join(here, "node_modules", "@modelcontextprotocol", name, path)


def acp(steps, *prompts):
    """Sends prompts as an ACP client that fills in forms. Returns all lines of nuncio, and then its text."""
    script = os.path.join(home, "acp.json")
    with open(script, "w") as file:
        json.dump({"steps": steps}, file)
    command = [nuncio, "acp", "--mode", "auto", "--model", f"scripted:{script}"]
    agent = subprocess.Popen(command, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = []

    def send(**message):
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        agent.stdin.flush()

    def call(method, **params):
        send(id=method, method=method, params=params)
        for line in agent.stdout:
            lines.append(line)
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], result={"action": "accept", "content": {"name": "Ada", "check": True}})
            elif message.get("id") == method:
                return message.get("result") or message["error"]

    call("initialize", protocolVersion=1, clientCapabilities={"elicitation": {"form": {}}})
    session = call("session/new", cwd=work, mcpServers=[])["sessionId"]
    for prompt in prompts:
        call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": prompt}])
    agent.stdin.close()
    lines.extend(agent.stdout)
    # A text may arrive in several notifications, so checks look for it in the joined text.
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in lines]
    chunks = [update["content"].get("text", "") for update in updates if update.get("sessionUpdate") == "agent_message_chunk"]
    return subprocess.CompletedProcess(command, agent.wait(timeout=60), "".join(lines), "".join(chunks))


def processes(text):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found


os.makedirs(work)
with open(os.path.join(work, "hello.txt"), "w") as file:
    file.write("hello from a file\n")
subprocess.run(["git", "init", "-q", "-b", "main"], cwd=work, check=True)

everything = module("server-everything", "dist/index.js")
servers = [
    ("filesystem", ["node", module("server-filesystem", "dist/index.js"), work]),
    ("everything", ["node", everything]),
    ("time", ["python3", "-m", "mcp_server_time", "--local-timezone", "UTC"]),
    ("git", ["python3", "-m", "mcp_server_git"]),
]
for name, command in servers:
    check(f"add {name}", run("mcp", "add", name, "--env", f"PYTHONPATH={os.environ['PYTHONPATH']}", "--", *command))
check("list", run("mcp", "list"), *[name for name, _ in servers])
check("check", run("mcp", "check"), *[f"ok   {name}" for name, _ in servers])

check("filesystem reads", tool("mcp__filesystem__read_text_file", path=os.path.join(work, "hello.txt")), "hello from a file")
check("filesystem refuses", tool("mcp__filesystem__read_text_file", path="/etc/passwd"), '"ok":false', code=1)
check("filesystem lists", tool("mcp__filesystem__list_directory", path=work), "hello.txt")
check("time", tool("mcp__time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"), "21:00")
check("git", tool("mcp__git__git_status", repo_path=work), "hello.txt")
check("echo", tool("mcp__everything__echo", message="quite audible"), "quite audible")
check("progress", tool("mcp__everything__trigger-long-running-operation", duration=1, steps=4), '"ok":true')
check("image", tool("mcp__everything__get-tiny-image"), "image/png image")
check("structured", tool("mcp__everything__get-structured-content", location="New York"), "structuredContent")
check("resources", tool("mcp_resource", server="everything"), "://")
check("bad arguments", tool("mcp__everything__echo"), '"ok":false', code=1)
check("denied", run("tool", "mcp__everything__echo", '{"message": "x"}'), "permission", code=4)

script = os.path.join(home, "script.json")
steps = [
    {"tool_calls": [
        {"name": "mcp__everything__get-sum", "input": {"a": 19, "b": 23}},
        {"name": "mcp__filesystem__write_file", "input": {"path": os.path.join(work, "new.txt"), "content": "new"}},
    ]},
    {"expect": "42", "text": "the sum is 42"},
]
with open(script, "w") as file:
    json.dump({"steps": steps}, file)
with open(os.path.join(home, "nuncio", "config.toml"), "a") as file:
    file.write("\n[tools]\nmcp_tokens = 100000\nmcp_wait_s = 60\n")
check("turn", run("run", "--mode", "auto", "--model", f"scripted:{script}", "go"), "the sum is 42")
check("turn wrote", subprocess.run(["cat", "new.txt"], cwd=work, capture_output=True, text=True), "new")

with open(os.path.join(home, "nuncio", "config.toml"), "a") as file:
    file.write(f"\n[mcp.sampler]\ncommand = {json.dumps(['node', everything])}\nsampling = true\n")
steps = [
    {"tool_calls": [{"name": "mcp__everything__trigger-elicitation-request", "input": {}}]},
    {"expect": "- Name: Ada", "text": "the form was filled in"},
    {"tool_calls": [{"name": "mcp__sampler__trigger-sampling-request", "input": {"prompt": "the number"}}]},
    {"expect": "context: the number", "text": "the model says 42"},
    {"expect": "the model says 42", "text": "the request was answered"},
    {"expect": "What's weather in Paris, Texas?", "text": "the prompt was used"},
    {"expect": "This is a plaintext resource", "text": "the resource was attached"},
]
lines = acp(steps, "ask me", "sample", "/mcp__everything__args-prompt Paris Texas", "see @everything:demo://resource/dynamic/text/1")
check("elicitation", lines, '"elicitation/create"', "the form was filled in")
check("sampling", lines, "the request was answered")
check("prompt", lines, '"mcp__everything__args-prompt"', "the prompt was used")
check("attached resource", lines, "the resource was attached")
check("rm sampler", run("mcp", "rm", "sampler"))

port = "18931"
server = subprocess.Popen(["node", everything, "streamableHttp"], env={**os.environ, "PORT": port}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    while "listening" not in (line := server.stdout.readline()).lower() and line:
        pass
    check("add http", run("mcp", "add", "http", "--url", f"http://127.0.0.1:{port}/mcp"))
    check("check http", run("mcp", "check", "http"), "ok   http")
    check("http echo", tool("mcp__http__echo", message="over http"), "over http")
finally:
    server.kill()
    server.wait()
check("http is gone", run("mcp", "check", "http"), "FAIL http", code=1)
for name in [name for name, _ in servers] + ["http"]:
    check(f"rm {name}", run("mcp", "rm", name))
check("empty list", run("mcp", "list"))

# Servers end with nuncio, at once or after a short time.
until = time.monotonic() + 5
while processes(here) and time.monotonic() < until:
    time.sleep(0.05)
left = [command for command in processes(here) if "checks.py" not in command and "tests/mcp/run" not in command]
if left:
    failed.append("processes")
    print("FAIL still running:", left)
print(f"{passed} passed, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
sys.exit(1 if failed else 0)
