"""Judges requests to models by the rules of the providers, with the program of tests/it/judge.rs."""

import json
import os
import subprocess
import threading


class Judge:
    """Safe to share between threads. `JUDGE` names the program."""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["JUDGE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()

    def refusals(self, path, body):
        """What the provider refuses in a request: objects with `rule`, `place`, `message` and `status`."""
        line = b'{"path":%b,"body":%b}\n' % (json.dumps(path).encode(), body.replace(b"\n", b" "))
        with self.lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        return json.loads(answer)["refusals"]


def shown(refusal):
    return f"rule {refusal['rule']}, {refusal['place']}: {refusal['message']}"
