"""Replays recorded answers to nuncio and compares what it reports with the providers' SDKs.

Usage: replay.py NUNCIO HOME PACKAGE…

JUDGE names the program of tests/it/judge.rs: nuncio's requests are judged by the rules of the
providers, too.
"""

import http.server
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import judge  # noqa: E402
import readers  # noqa: E402
from recordings import load, protocol_of  # noqa: E402

RECORDINGS_MIN, PROVIDERS_MIN = 100, 6
WORKERS = 2
# An answer arrives in pieces of these sizes.
SIZES = (1 << 20, 61)
EMPTY = "The model's answer is empty"

# The answer to every further request of a turn.
DONE = {
    "openai-chat": '{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}\n\ndata: [DONE]',
    "openai-responses": '{"type":"response.output_text.delta","delta":"done"}\n\n'
    'data: {"type":"response.completed","response":{"status":"completed"}}',
    "anthropic": '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"done"}}\n\n'
    'data: {"type":"content_block_stop","index":0}\n\n'
    'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}',
    "ollama": '{"message":{"role":"assistant","content":"done"},"done":true,"done_reason":"stop"}',
    "gemini": '{"candidates":[{"content":{"parts":[{"text":"done"}]},"finishReason":"STOP"}]}',
}


def done(protocol):
    return f"{DONE[protocol]}\n".encode() if protocol == "ollama" else f"data: {DONE[protocol]}\n\n".encode()


class Server(http.server.ThreadingHTTPServer):
    """Sends a recording in pieces. The path starts with /CLIENT/SIZE/NUMBER."""

    daemon_threads = True

    def __init__(self, recordings):
        super().__init__(("127.0.0.1", 0), Handler)
        self.recordings = recordings
        self.requests = Counter()
        self.refusals = defaultdict(list)
        self.judge = judge.Judge()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, client, size, number):
        protocol = self.recordings[number].protocol
        version = "/v1" if protocol.startswith("openai") else "/v1beta" if (client, protocol) == ("nuncio", "gemini") else ""
        return f"http://127.0.0.1:{self.server_port}/{client}/{size}/{number}{version}"

    def handle_error(self, request, client_address):
        """A client may close the connection before the end of an answer."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        request = self.rfile.read(int(self.headers["content-length"]))
        if not protocol_of(self.path.split("?")[0]):
            return self.send_error(404)
        _, client, size, number, *_ = self.path.split("/")
        recording = self.server.recordings[int(number)]
        self.server.requests[client, size, number] += 1
        if client == "nuncio":
            path = self.path.removeprefix(f"/{client}/{size}/{number}")
            self.server.refusals[number] += map(judge.shown, self.server.judge.refusals(path, request))
        first = self.server.requests[client, size, number] == 1
        body = recording.body if first else done(recording.protocol)
        pieces = (body[at : at + int(size)] for at in range(0, len(body), int(size)))
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson" if recording.protocol == "ollama" else "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")

    def log_message(self, *_):
        pass


def expect(protocol, model, url):
    try:
        return readers.read(protocol, model, url)
    except Exception as error:
        return {"unreadable": f"{type(error).__name__}: {error}"}


def run(nuncio, home, server, size, number):
    """What nuncio reports about the first request of a turn."""
    recording = server.recordings[number]
    command = [nuncio, "run", "--json", "--mode", "plan", "--model", f"{recording.protocol}/{recording.model}"]
    command += ["--base-url", server.url("nuncio", size, number), "Hello"]
    environment = os.environ | {"NUNCIO_HOME": f"{home}/{threading.current_thread().name}"}
    done = subprocess.run(command, cwd=f"{home}/work", env=environment, capture_output=True, timeout=120)
    blocks, step = [], None
    for line in done.stdout.decode().splitlines():
        event = json.loads(line)["body"]
        match event["type"]:
            case "message.completed" if event["role"] in ("assistant", "thought"):
                kind = "text" if event["role"] == "assistant" else "thinking"
                blocks.append([kind, "".join(part["text"] for part in event["parts"])])
            case "tool.started":
                blocks.append(["call", event["name"], event["input"]])
            case "step.completed":
                step = event
                break
    if step is None:
        return {"failed": done.stderr.decode()[-1000:]}
    outcome, error = step["outcome"], step.get("error")
    if error and error != EMPTY:
        return {"stop": "error"}
    stop = "end_turn" if outcome in ("tool_calls", "retried") else outcome
    report = readers.answer(blocks, step.get("usage"), stop)
    # Results of calls and empty answers lead to one more request, and nothing else does.
    requests = server.requests["nuncio", str(size), str(number)]
    if requests != (2 if outcome in ("tool_calls", "retried") else 1):
        report["requests"] = requests
    return report


def write_settings(home):
    providers = "".join(f'[providers.{protocol}]\nprotocol = "{protocol}"\nbase_url = "http://127.0.0.1:1"\n' for protocol in DONE)
    Path(f"{home}/work").mkdir()
    for worker in range(WORKERS):
        directory = Path(f"{home}/nuncio_{worker}")
        directory.mkdir()
        (directory / "config.toml").write_text(providers)


def differences(expected, reported):
    return [
        f"  {key}\n    expected {json.dumps(expected.get(key))[:1000]}\n    reported {json.dumps(reported.get(key))[:1000]}"
        for key in sorted(expected.keys() | reported.keys())
        if expected.get(key) != reported.get(key)
    ]


def exceptions():
    """The recordings that may differ: a name and the reason in each line."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def replay(nuncio, home, recordings):
    """The differences of each recording."""
    server = Server(recordings)
    write_settings(home)
    numbers = range(len(recordings))
    # A forked process would keep the pipes of the runs open.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, spawn) as sdks, ThreadPoolExecutor(WORKERS, "nuncio") as runs:
        jobs = [[runs.submit(run, nuncio, home, server, size, number) for size in SIZES] for number in numbers]
        arguments = [(recordings[number].protocol, recordings[number].model, server.url("sdk", SIZES[0], number)) for number in numbers]
        expected = list(sdks.map(expect, *zip(*arguments), chunksize=8))
        for number in numbers:
            wrong = [line for job in jobs[number] for line in differences(expected[number], job.result())]
            wrong += [f"  refused {refusal}" for refusal in server.refusals[str(number)]]
            yield list(dict.fromkeys(wrong))


def main(nuncio, home, *packages):
    recordings = list(load(map(Path, packages)))
    excepted = exceptions()
    failed, passed = [f"{name}: an exception without a recording" for name in excepted.keys() - {r.name for r in recordings}], 0
    providers = Counter()
    for recording, wrong in zip(recordings, replay(nuncio, home, recordings)):
        if wrong and recording.name not in excepted:
            failed.append("\n".join([f"{recording.name} ({recording.protocol}, {recording.model})", *wrong]))
        elif not wrong and recording.name in excepted:
            failed.append(f"{recording.name}: an exception without a difference")
        elif not wrong:
            passed += 1
            providers[recording.provider] += not recording.made
    for failure in failed:
        print(f"FAILED  {failure}")
    real = sum(providers.values())
    print(f"{real} recordings of {len(+providers)} providers: " + ", ".join(f"{name} {n}" for name, n in (+providers).most_common()))
    print(f"{passed - real} answers written by hand, {len(excepted)} exceptions")
    if real < RECORDINGS_MIN or len(+providers) < PROVIDERS_MIN:
        failed.append("too few")
        print(f"FAILED  fewer than {RECORDINGS_MIN} recordings or {PROVIDERS_MIN} providers")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
