"""Runs the client scenarios of the MCP conformance suite with nuncio: conformance.py NUNCIO. A scenario is clean if it has
neither a failure nor a warning. The exceptions are listed with their reasons; one that becomes clean must be removed."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

nuncio = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
suite = [
    "node", "--import", os.path.join(here, "node20.mjs"),
    os.path.join(here, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
]
EXCEPTIONS = {
    "auth/2025-03-26-oauth-metadata-backcompat":
        "its authorization server names another issuer than its address; rmcp refuses that (RFC 8414, section 3.3)",
    "auth/client-credentials-jwt": "an extension: nuncio signs in as a user, not as a machine (SEP-1046)",
    "auth/client-credentials-basic": "an extension: nuncio signs in as a user, not as a machine (SEP-1046)",
    "auth/cross-app-access-complete-flow": "an extension: identity of an enterprise (SEP-990)",
}

# The suite accepts a delay of 200 ms, which a busy machine can need by itself, so these have three attempts.
TIMED = {"sse-retry"}


def listed():
    text = subprocess.run([*suite, "list"], capture_output=True, text=True, timeout=60, check=True).stdout
    return re.findall(r"^  - (\S+)", text.split("Client scenarios")[1], re.MULTILINE)


def run(scenario):
    for _ in range(3 if scenario in TIMED else 1):
        found = run_once(scenario)
        if not found[1]:
            break
    return found


def run_once(scenario):
    client = " ".join([sys.executable, os.path.join(here, "conformance_client.py"), nuncio])
    command = [*suite, "client", "--command", client, "--scenario", scenario, "--timeout", "60000", "--verbose"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=90, cwd=os.environ.get("TMPDIR"))
    except subprocess.TimeoutExpired as error:
        return scenario, [f"no end within {error.timeout} s"], ""
    output = ran.stdout + ran.stderr
    found = re.findall(r'"status": "(FAILURE|WARNING)"', output)
    told = re.findall(r'"status": "(?:FAILURE|WARNING)",\s*"timestamp": "[^"]*",\s*"errorMessage": "(.*)"', output)
    faults = found or ([] if ran.returncode == 0 else [f"exit code {ran.returncode}"])
    return scenario, faults, "\n".join([*told, *re.findall(r"^(?:\$ nuncio|FAIL|Error|browser:|\{\"name).*", output, re.MULTILINE)])


scenarios = sys.argv[2:] or listed()
clean, failed = 0, []
with ThreadPoolExecutor(2) as pool:
    for scenario, faults, output in pool.map(run, scenarios):
        exception = EXCEPTIONS.get(scenario)
        if faults and exception:
            print("skip", scenario, "-", exception)
        elif faults:
            failed.append(scenario)
            print("FAIL", scenario, faults, output)
        elif exception:
            failed.append(scenario)
            print("FAIL", scenario, "is clean: remove it from the exceptions")
        else:
            clean += 1
            print("ok  ", scenario)
print(f"client conformance: {clean} of {len(scenarios)} clean, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
sys.exit(1 if failed else 0)
