"""Drives nuncio with the official Python SDK, over standard input and output: initialize, new, a prompt with an allowed call, one with a
rejected call, a cancel while it streams, a cancel while it asks, then load and prompt in a second process.
`python3 python_client.py NUNCIO`; exits with 1 and the reason when something does not hold."""

import asyncio
import sys
import tempfile
from pathlib import Path

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, Implementation, RequestPermissionResponse

HERE = Path(__file__).resolve().parent
NUNCIO = str(Path(sys.argv[1]).resolve())


class Client:
    """Keeps the updates and the questions of a turn, and answers as it is told: an option's kind, or a coroutine function."""

    def __init__(self):
        self.start(None)

    def start(self, answer, on_update=None):
        self.updates, self.questions, self.answer, self.on_update = [], [], answer, on_update

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        if self.on_update:
            await self.on_update(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append((session_id, tool_call))
        if callable(self.answer):
            await self.answer()
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        option = next(option for option in options if option.kind == self.answer)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def create_elicitation(self, **_):
        raise RequestError.method_not_found("elicitation/create")

    def text(self, kind):
        return "".join(update.content.text for update in self.updates if update.session_update == kind)

    def calls(self):
        """The tool calls, each with the last value of every field."""
        calls = {}
        for update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                fields = update.model_dump(exclude_unset=True)
                calls[update.tool_call_id] = calls.get(update.tool_call_id, {}) | fields
        return list(calls.values())


def check(actual, expected, what):
    assert actual == expected, f"{what}: {actual!r}, not {expected!r}"


class connected:
    """`async with connected(SCRIPT, HOME) as (agent, client)`: one process of nuncio, initialized; it must end with 0."""

    def __init__(self, script, home):
        self.client = Client()
        command = [NUNCIO, "acp", "--model", f"scripted:{HERE / script}"]
        # The SDK's default, a pipe for the log that nobody reads, would stop an agent that writes a lot.
        self.spawned = spawn_agent_process(self.client, *command, env={"NUNCIO_HOME": home}, transport_kwargs={"stderr": None})

    async def __aenter__(self):
        agent, self.process = await self.spawned.__aenter__()
        initialized = await agent.initialize(
            PROTOCOL_VERSION, ClientCapabilities(), Implementation(name="nuncio-test", version="1")
        )
        check(initialized.protocol_version, 1, "the protocol's version")
        check(initialized.agent_info.name, "nuncio", "the agent's name")
        check(initialized.agent_capabilities.load_session, True, "that sessions can be loaded")
        return agent, self.client

    async def __aexit__(self, *error):
        await self.spawned.__aexit__(*error)
        if error[0] is None:
            check(self.process.returncode, 0, "the exit code at the end of the input")


async def work(home, cwd):
    made, asked = Path(cwd, "made.txt"), Path(cwd, "asked.txt")

    async with connected("script.json", home) as (agent, client):
        session_id = (await agent.new_session(cwd)).session_id

        async def prompt(words):
            return (await agent.prompt(session_id, [text_block(words)])).stop_reason

        async def cancel(*_):
            await agent.cancel(session_id)

        client.start("allow_once")
        check(await prompt("Please write the file."), "end_turn", "the stop of an allowed call's turn")
        check(client.text("agent_thought_chunk"), "A file is wanted.", "the thought")
        check(client.text("agent_message_chunk"), "I will write it.It is written.", "the answer")
        check(made.read_text(), "made by a client\n", "the file")
        (call,) = client.calls()
        check((call["kind"], call["status"]), ("execute", "completed"), "the call")
        check([(id, asked.tool_call_id) for id, asked in client.questions], [(session_id, call["tool_call_id"])], "the question")
        assert "made by a client" in str(call["content"]), call

        client.start("reject_once")
        check(await prompt("Now remove it."), "end_turn", "the stop of a rejected call's turn")
        check(client.calls()[0]["status"], "failed", "the rejected call")
        assert made.exists(), "a rejected call does nothing"

        async def cancel_at_first_word(update):
            if update.session_update == "agent_message_chunk":
                client.on_update = None
                await cancel()

        client.start(None, cancel_at_first_word)
        check(await prompt("Talk."), "cancelled", "the stop of a cancelled turn")
        said = client.text("agent_message_chunk")
        assert 0 < len(said) < 100, f"cut short: {said!r}"

        client.start(cancel)
        check(await prompt("Wait."), "cancelled", "the stop of a turn that was cancelled while it asked")
        check(client.calls()[0]["status"], "failed", "the call whose question was cancelled")
        assert not asked.exists(), "a call whose question was cancelled does nothing"

    async with connected("resume.json", home) as (agent, client):
        listed = (await agent.list_sessions(cwd=cwd)).sessions
        check([session.session_id for session in listed], [session_id], "the sessions")
        await agent.load_session(cwd, session_id)
        check(client.text("user_message_chunk"), "Please write the file.Now remove it.Talk.Wait.", "the replayed prompts")
        said = client.text("agent_message_chunk")
        assert said.startswith("I will write it.It is written.I will remove it.It stays.A"), f"the replayed answers: {said!r}"
        check([call["status"] for call in client.calls()], ["completed", "failed", "failed"], "the replayed calls")
        assert "made by a client" in str(client.calls()[0]["content"]), client.calls()[0]

        client.start(None)
        check((await agent.prompt(session_id, [text_block("Do you remember?")])).stop_reason, "end_turn", "the stop after a load")
        check(client.text("agent_message_chunk"), "I remember.", "the answer after a load")


with tempfile.TemporaryDirectory(prefix="nuncio-home-") as home, tempfile.TemporaryDirectory(prefix="nuncio-work-") as cwd:
    asyncio.run(asyncio.wait_for(work(home, str(Path(cwd).resolve())), 60))
