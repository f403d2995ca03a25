"""Drives nuncio over ACP while it hosts public agents: check.py NUNCIO HOME [NAME...]."""

import concurrent.futures
import json
import os
import queue
import subprocess
import sys
import threading
import time

import terminal
from agents import AGENTS, REPOSITORY
from mock import Mock

# Maximum times in seconds. A start of an agent is part of the first turn.
TURN = 120
CANCELLED = 40
PROCESS_END = 40


class Failure(Exception):
    """The reason why a check failed."""


class Client:
    """A process of nuncio and an ACP connection with it."""

    def __init__(self, nuncio, cwd, environment, *flags):
        self.errors = open(os.path.join(environment["HOME"], "stderr"), "ab")
        self.process = subprocess.Popen(
            [nuncio, "acp", *flags], cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.cwd, self.answer, self.last = cwd, None, 0
        self.updates, self.questions = [], []
        self.responses = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.call("initialize", protocolVersion=1)

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self.responses.put(message)
            elif message["method"] == "session/update":
                self.updates.append(message["params"]["update"])
            elif message["method"] == "session/request_permission":
                self.permit(message)
            elif "id" in message:
                self.send(id=message["id"], error={"code": -32601, "message": "not supported"})
        self.responses.put({"id": self.last, "error": "nuncio has ended"})

    def permit(self, message):
        self.questions.append(message["params"])
        # No budget is raised.
        kind = "reject_once" if "the budget of this" in json.dumps(message) else self.answer
        options = [option["optionId"] for option in message["params"]["options"] if option["kind"] == kind]
        review = message["params"].get("_meta", {}).get("nuncio", {}).get("review")
        if review:
            paths = [file["path"] for file in review["files"]]
            options = ["each_file"] if len(paths) > 1 else ["reject" if paths[0].endswith("rejected.txt") else "accept"]
        outcome = {"outcome": "selected", "optionId": options[0]} if options else {"outcome": "cancelled"}
        self.send(id=message["id"], result={"outcome": outcome})

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def begin(self, method, **params):
        self.last += 1
        self.send(id=self.last, method=method, params=params)

    def wait(self, seconds=TURN):
        until = time.monotonic() + seconds
        response = {}
        while response.get("id") != self.last:
            try:
                response = self.responses.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                raise Failure(f"no response within {seconds} s") from None
        if "error" in response:
            raise Failure(json.dumps(response["error"]))
        return response["result"]

    def call(self, method, **params):
        self.begin(method, **params)
        return self.wait()

    def prompt(self, session, text, answer=None, budget=None):
        """Starts a turn in which permission requests get the first option of the kind `answer`."""
        self.answer = answer
        self.updates.clear()
        self.questions.clear()
        meta = {"nuncio": {"budget": budget}} if budget else {}
        self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}], _meta=meta)

    def text(self):
        """The agent's text since the start of the turn."""
        chunks = [update for update in self.updates if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def end(self):
        """Closes the connection and waits until nuncio has ended."""
        self.process.stdin.close()
        try:
            code = self.process.wait(PROCESS_END)
        except subprocess.TimeoutExpired:
            raise Failure(f"nuncio did not end within {PROCESS_END} s") from None
        expect(code, 0, "exit code of nuncio")


def expect(actual, expected, what):
    if actual != expected:
        raise Failure(f"{what}: {actual!r}, not {expected!r}")


def processes(home, word=b""):
    """The command lines of processes with this home and with `word` in the command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/cmdline", "rb") as line:
                command = line.read()
                if b"HOME=%s\0" % home.encode() in environment.read() and word in command:
                    found.append(command.replace(b"\0", b" ").decode()[:120])
        except OSError:
            continue
    return found


def poll(condition, seconds):
    """Waits until `condition` returns true."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


class Check:
    """The checks of one agent."""

    def __init__(self, nuncio, home, name):
        self.nuncio, self.name, self.agent = nuncio, name, AGENTS[name]
        self.home = os.path.join(home, name)
        self.work = os.path.join(self.home, "work")
        self.mock = Mock(arguments=self.agent.get("arguments"))
        self.environment = {**os.environ, "HOME": self.home, "NUNCIO_HOME": os.path.join(self.home, "nuncio")}
        self.client = self.session = None
        self.failed = self.minute = 0

    def fill(self, value):
        """Replaces `{port}`, `{home}` and `{nuncio}` in texts."""
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        for word, replacement in (("port", str(self.mock.port)), ("home", self.home), ("nuncio", self.nuncio)):
            value = value.replace(f"{{{word}}}", replacement)
        return value

    def write(self, name, content):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content = self.fill(content)
        with open(path, "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def prepare(self):
        os.makedirs(self.work)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.work, check=True)
        for name, content in self.agent.get("files", {}).items():
            self.write(name, content)
        refused = self.agent.get("refused", {})
        for name, content in REPOSITORY.items():
            if name not in refused:
                self.write(f"work/{name}", content)
        self.settings()
        ran = subprocess.run([self.nuncio, "trust"], cwd=self.work, env=self.environment, capture_output=True, text=True)
        expect(ran.returncode, 0, ran.stderr)

    def settings(self, own="", more="", denied=()):
        """Writes the settings of nuncio: `own` are for the agent, `denied` are patterns of commands."""
        rules = ", ".join(f'{{tool = "bash", pattern = "{pattern}", policy = "deny"}}' for pattern in ("touch forbidden*", *denied))
        command, environment = json.dumps(self.fill(self.agent["command"])), self.fill(self.agent["env"])
        lines = [f"{key} = {json.dumps(value)}" for key, value in environment.items()]
        self.write(
            "nuncio/config.toml",
            "\n".join([
                'hooks = [{event = "tool.execute.before", command = ["sh", "-c", "grep -q hooked && exit 2; exit 0"]}]',
                f"[permissions]\nrules = [{rules}]",
                f'[agents]\nallowed = ["{self.name}"]',
                f'[agents."{self.name}"]\nkind = "{self.agent["kind"]}"\ncommand = {command}',
                f"writable = {json.dumps(self.fill(self.agent.get('writable', [])))}",
                own,
                f'[agents."{self.name}".env]',
                *lines,
                more,
            ]),
        )

    def start(self, *flags):
        self.client = Client(self.nuncio, self.work, self.environment, *flags)

    def create(self, **params):
        meta = {"nuncio": {"agent": self.name, **params.pop("ours", {})}}
        return self.client.call("session/new", cwd=self.work, mcpServers=[], _meta=meta, **params)["sessionId"]

    def exists(self, name):
        return os.path.exists(os.path.join(self.work, name))

    def finish(self, text):
        expect(self.client.wait()["stopReason"], "end_turn", "stop reason")
        if text not in self.client.text():
            raise Failure(f"text: {self.client.text()!r}, without {text!r}")

    def allow(self):
        self.start()
        self.session = self.create()
        self.client.prompt(self.session, "RUN touch allowed.txt", "allow_once")
        self.finish("finished")
        self.minute = int(time.time() / 60)
        expect(len(self.client.questions), 1 if self.agent.get("asks", True) else 0, "permission requests")
        expect(self.exists("allowed.txt"), True, "allowed.txt exists")

    def deny(self):
        self.client.prompt(self.session, "RUN touch denied.txt", "reject_once")
        reason = self.client.wait()["stopReason"]
        if not self.agent.get("asks", True):
            expect(self.exists("denied.txt"), True, "denied.txt exists without a question")
            return
        expect(len(self.client.questions), 1, "permission requests")
        expect(reason, self.agent.get("denied", "end_turn"), "stop reason")
        expect(self.exists("denied.txt"), False, "denied.txt exists")

    def rule(self):
        """A rule of the settings denies a command without a question."""
        if not self.agent.get("asks", True):
            return
        self.client.prompt(self.session, "RUN touch forbidden.txt", "allow_once")
        reason = self.client.wait()["stopReason"]
        expect((len(self.client.questions), self.exists("forbidden.txt")), (0, False), "questions, forbidden.txt exists")
        expect(reason, self.agent.get("denied", "end_turn"), "stop reason")

    def hook(self):
        """A hook of the settings blocks a command without a question."""
        if not self.agent.get("asks", True):
            return
        self.client.prompt(self.session, "RUN touch hooked.txt", "allow_once")
        self.client.wait()
        expect((len(self.client.questions), self.exists("hooked.txt")), (0, False), "questions, hooked.txt exists")
        if self.agent.get("bridge"):
            # The agent needs no permission for this command.
            self.client.prompt(self.session, "RUN echo hooked")
            self.client.wait()
            statuses = [update.get("status") for update in self.client.updates]
            expect((len(self.client.questions), "failed" in statuses), (0, True), "questions, the command was blocked")

    def policies(self):
        """The agent asks before a command and a change of a file. A rule denies commands, or the
        turn is refused where the agent would not ask."""
        arguments, self.mock.arguments = self.mock.arguments, {}
        try:
            self.questions()
            self.denials()
        finally:
            self.mock.arguments = arguments
            self.settings()

    def questions(self):
        patch = "apply_patch <<'EOF'\\n*** Begin Patch\\n*** Add File: patched.txt\\n+one\\n*** End Patch\\nEOF"
        for answer in ("reject_once", "allow_once"):
            for command, name in (("cat allowed.txt", "none"), ("touch written.txt", "written.txt"), (patch, "patched.txt")):
                self.client.prompt(self.session, f"RUN {command}", answer)
                self.finish("finished")
                expect(len(self.client.questions), 1, f"permission requests about {command}")
                expect(self.exists(name), answer == "allow_once" and name != "none", f"{name} exists after {answer}")

    def denials(self):
        file, refused = ".codex/rules/default.rules", "so it could break the rule"
        for own, code, message in (
            ("", 4, "denied by a rule"),
            ("config = '{\"sandbox_mode\": \"danger-full-access\"}'", 4, "denied by a rule"),
            ("config = '{\"approval_policy\": \"never\"}'", 2, refused),
            ("", 2, refused),
        ):
            if (own, code) == ("", 2):
                self.write(file, 'prefix_rule(pattern=["rm"], decision="allow")\n')
            self.settings(own, denied=("rm *", "cat *"))
            for command in ("rm written.txt", "cat written.txt"):
                ran = self.run_once("--mode", "auto", f"RUN {command}")
                found = (ran.returncode, message in ran.stderr, self.exists("written.txt"))
                expect(found, (code, True, True), f"exit code, message and file of {command} with {own!r}: {ran.stderr}")
        os.remove(os.path.join(self.home, file))

    def run_once(self, *arguments):
        command = [self.nuncio, "run", "--agent", self.name, *arguments]
        return subprocess.run(command, cwd=self.work, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TURN)

    def budget(self):
        """A limit of time interrupts the agent, and so does one of requests if the agent reports them."""
        limits = [("maxWallS", 3, "RUN sh -c 'sleep 543; true'")]
        limits += [("maxRequests", 1, "RUN sh -c 'sleep 3; touch limited.txt'")] * self.agent.get("reports", False)
        for name, limit, prompt in limits:
            self.client.prompt(self.session, prompt, "allow_once", {name: limit})
            expect(self.client.wait()["stopReason"], "max_turn_requests", f"stop reason with {name}")

    def prompts(self):
        """The system prompt of a session reaches the model."""
        session = self.create(systemPrompt={"mode": "append", "content": [{"type": "text", "text": "Rhyme in the check."}]})
        self.client.prompt(session, "SAY rhymed")
        self.finish("rhymed")
        if not any("Rhyme in the check." in body for body in self.mock.bodies):
            raise Failure("no request to the model has the system prompt")

    def compact(self):
        """The agent replaces its conversation by a summary."""
        before = len(self.mock.bodies)
        self.client.prompt(self.session, "/compact")
        expect(self.client.wait()["stopReason"], "end_turn", "stop reason")
        if len(self.mock.bodies) == before:
            raise Failure("no summary was requested from the model")

    def changes(self):
        """A failed check is a further prompt, which repairs it, and the review restores a rejected file."""
        command = "test -f fixed.txt || { echo; echo RUN touch fixed.txt; exit 1; }"
        more = f'[verify]\ncommands = [{json.dumps(command)}]\n[review]\nmode = "request"\n'
        self.settings("verify = true", more)
        self.start("--mode", "auto")
        session = self.create()
        self.client.prompt(session, "RUN sh -c 'echo one > kept.txt; echo two > rejected.txt; true'", "allow_once")
        self.finish("finished")
        found = tuple(self.exists(name) for name in ("fixed.txt", "kept.txt", "rejected.txt"))
        expect(found, (True, True, False), "file of the repair, accepted file, rejected file")
        self.client.prompt(session, "SAY reviewed")
        self.finish("reviewed")
        if not any("rejected.txt: rejected" in body for body in self.mock.bodies):
            raise Failure("the agent was not told what was rejected")
        self.client.end()
        self.gone()
        self.settings()

    def sandbox(self):
        """The agent and its commands write only below the session, also after a restart."""
        self.start("--sandbox", "workspace-write", "--mode", "auto")
        session = self.create()
        for number in range(2):
            self.client.prompt(session, f"RUN sh -c 'touch in-{number}.txt; touch ../out-{number}.txt; true'", "allow_once")
            self.finish("finished")
            found = (self.exists(f"in-{number}.txt"), self.exists(f"../out-{number}.txt"))
            expect(found, (True, False), "file below the session, file outside")
            self.client.end()
            self.gone()
            if number == 0 and not self.agent.get("resumes_next_minute"):
                self.start("--sandbox", "workspace-write", "--mode", "auto")
                self.client.call("session/load", sessionId=session, cwd=self.work, mcpServers=[])
            elif number == 0:
                break

    def auto(self):
        """The mode auto allows a command without a question."""
        self.client.call("session/set_mode", sessionId=self.session, modeId="auto")
        # An agent may know the same command from the checks before.
        self.client.prompt(self.session, "RUN touch automatic.txt")
        self.client.wait()
        self.client.call("session/set_mode", sessionId=self.session, modeId="ask")
        expect((len(self.client.questions), self.exists("automatic.txt")), (0, True), "questions, automatic.txt exists")

    def cancel(self):
        # Most agents leave a process in another session, and some leave all processes. nuncio then
        # ends the agent, whose session must be loaded.
        other = "" if self.agent.get("resumes_next_minute") else "setsid sleep 543 & "
        self.client.prompt(self.session, f"RUN sh -c '{other}sleep 543; true'", "allow_once")
        poll(lambda: self.sleeping() or not self.client.responses.empty(), TURN)
        if not self.sleeping():
            raise Failure("the command did not start")
        self.client.send(method="session/cancel", params={"sessionId": self.session})
        expect(self.client.wait(CANCELLED)["stopReason"], "cancelled", "stop reason")
        if not poll(lambda: not self.sleeping(), PROCESS_END):
            raise Failure(f"the command still runs: {self.sleeping()}")

    def sleeping(self):
        return [command for command in processes(self.home, b"543") if command.startswith("sleep 543")]

    def second(self):
        self.say("the second turn")

    def resume(self):
        self.client.kill()
        self.gone()
        while self.agent.get("resumes_next_minute") and int(time.time() / 60) == self.minute:
            time.sleep(1)
        self.start()
        self.client.call("session/load", sessionId=self.session, cwd=self.work, mcpServers=[])
        if "finished" not in self.client.text():
            raise Failure(f"the loaded session has the text {self.client.text()!r}")
        self.say("after the restart")

    def say(self, text):
        """A turn of text, in which the agent sends the earlier prompts to the model."""
        self.client.prompt(self.session, f"SAY {text}")
        self.finish(text)
        prompts = ("RUN touch allowed.txt", f"SAY {text}")
        sent = ["\n".join(request) for request in self.mock.requests()]
        if not any(all(prompt in request for prompt in prompts) for request in sent):
            raise Failure(f"no request to the model has {prompts}: {sent[-1:]!r}")

    def end(self):
        self.client.end()
        self.gone()

    def repository(self):
        """No program of the repository has run."""
        expect([name for name in os.listdir(self.home) if name.startswith("ran-")], [], "programs of the repository")
        user = ".codex/config.toml"
        if user in self.agent.get("files", {}):
            with open(os.path.join(self.home, user)) as file:
                expect(file.read(), self.fill(self.agent["files"][user]), "the user's configuration of Codex")

    def refused(self):
        """The agent is not started beside files that it would run."""
        for name, content in self.agent["refused"].items():
            self.write(f"work/{name}", content)
        self.start()
        session = self.create()
        self.client.prompt(session, "SAY started")
        try:
            self.client.wait()
        except Failure as failure:
            if "would run programs" not in str(failure):
                raise
        else:
            raise Failure("the agent was started")
        self.client.end()
        self.repository()

    def terminal(self):
        """The agent's own terminal client."""

        def fail(message):
            raise Failure(message)

        key = self.agent["env"]["ANTHROPIC_API_KEY"]
        terminal.check(self.nuncio, self.name, self.home, self.work, self.environment, key, poll, fail)
        self.gone()

    def requests(self):
        """No provider would refuse a request of nuncio. Those of other agents are reported."""
        if self.mock.broken:
            rules = ", ".join(f"{rule} ({count} times)" for rule, count in sorted(self.mock.broken.items()))
            print(f"note {self.name}: its requests break the rules {rules}", flush=True)
        expect(self.mock.faults, [], "what providers refuse in requests of nuncio")

    def gone(self):
        if not poll(lambda: not processes(self.home), PROCESS_END):
            raise Failure(f"still running: {processes(self.home)}")

    def run(self):
        names = ["prepare", "allow", "deny", "rule", "hook"] + ["policies"] * self.agent.get("policies", False)
        names += ["auto", "cancel", "budget", "second", "resume"]
        names += ["prompts"] * self.agent.get("prompts", False) + ["compact"] * self.agent.get("compacts", False)
        names += ["end", "changes", "sandbox", "repository"]
        names += ["refused"] * ("refused" in self.agent) + ["terminal"] * self.agent.get("terminal", False) + ["requests"]
        for name in names:
            started = time.monotonic()
            try:
                getattr(self, name)()
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                self.failed += 1
                print(f"FAIL {self.name}: {name}: {failure}", flush=True)
                if name in ("prepare", "allow"):
                    break
            else:
                print(f"ok   {self.name}: {name} ({time.monotonic() - started:.1f} s)", flush=True)
        if self.client:
            self.client.kill()
        return self.failed


def main():
    nuncio, home, *names = sys.argv[1:]
    names = names or list(AGENTS)

    def failures(name):
        """The failed checks of an agent. A failure counts only if it is repeated: the agents are programs of others."""
        failed = Check(nuncio, home, name).run()
        if failed:
            print(f"again {name}", flush=True)
            failed = Check(nuncio, os.path.join(home, "again"), name).run()
        return failed

    started = time.monotonic()
    # Starting an agent needs about one core.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        failed = sum(pool.map(failures, names))
    print(f"{failed} failed, {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed else 0)


main()
