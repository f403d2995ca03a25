"""nuncio uses the MCP server of Playwright with Debian's Chromium: browser.py NUNCIO HOME."""

import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

nuncio, home = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
work = os.path.join(home, "browser")
os.makedirs(work)
# Settings of its own: the other checks leave theirs. They are outside of the project, because a
# program whose directory is in the project needs trust.
os.environ["NUNCIO_HOME"] = os.path.join(home, "browser-settings")
chromium = shutil.which("chromium")
if not chromium:
    sys.exit("chromium is not installed: apt-get install chromium")


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        page = b"<!doctype html><title>A page</title><h1>Quite visible</h1><button onclick=\"document.title='Pressed'\">Press</button>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


pages = ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=pages.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{pages.server_port}/"
server = [
    "node", os.path.join(here, "node_modules", "@playwright", "mcp", "cli.js"),
    "--headless", "--isolated", "--no-sandbox", "--browser", "chromium", "--executable-path", chromium, "--output-dir", work,
]


def run(*arguments):
    return subprocess.run([nuncio, *arguments], cwd=work, capture_output=True, text=True, timeout=90)


failed = []


def check(name, ran, *expected):
    output = ran.stdout + ran.stderr
    missing = [text for text in expected if text not in output]
    ok = ran.returncode == 0 and not missing
    print("ok  " if ok else "FAIL", name, "" if ok else f"exit code {ran.returncode} without {missing}\n{output[-4000:]}")
    if not ok:
        failed.append(name)


check("add", run("mcp", "add", "browser", "--", *server))
check("check", run("mcp", "check", "browser"), "ok   browser")
script = os.path.join(work, "script.json")
prefix = "mcp__browser__browser_"
steps = [
    {"tool_calls": [{"name": prefix + "navigate", "input": {"url": url}}]},
    {"expect": "Page Title: A page", "tool_calls": [{"name": prefix + "evaluate", "input": {"function": "() => document.querySelector('button').click()"}}]},
    {"tool_calls": [{"name": prefix + "snapshot", "input": {}}]},
    {"expect": "Page Title: Pressed", "tool_calls": [{"name": prefix + "find", "input": {"text": "Quite visible"}}]},
    {"expect": "Quite visible", "tool_calls": [{"name": prefix + "take_screenshot", "input": {}}]},
    {"tool_calls": [{"name": prefix + "close", "input": {}}]},
    {"text": "The page was used."},
]
with open(script, "w") as file:
    json.dump({"steps": steps}, file)
with open(os.path.join(os.environ["NUNCIO_HOME"], "config.toml"), "a") as file:
    file.write("\n[tools]\nmcp_tokens = 100000\nmcp_wait_s = 60\n")
check("turn", run("run", "--mode", "auto", "--model", f"scripted:{script}", "use the page"), "The page was used.")
print(f"{'failed: ' + ', '.join(failed) if failed else 'browser: all checks passed'}")
sys.exit(1 if failed else 0)
