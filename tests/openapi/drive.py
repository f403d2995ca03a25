"""A client that openapi-python-client generated from schema/openapi.json drives a running bridge: session, prompt, events, approval,
messages, close, delete. `python3 drive.py URL TOKEN`; exits with 1 and the reason when something does not hold."""

import json
import sys

from generated_python.api.permissions import permission_answer, permission_list
from generated_python.api.sessions import (
    session_close,
    session_delete,
    session_get,
    session_list,
    session_messages,
    session_new,
    session_prompt,
)
from generated_python.client import AuthenticatedClient
from generated_python.models import (
    BodyPermissionRequested,
    BodyTurnCompleted,
    ContentBlockText,
    Envelope,
    Event,
    PartText,
    PermissionAnswerBody,
    PermissionOptionKind,
    SessionCloseBody,
    SessionNewBody,
    SessionPromptBody,
    SessionPromptResponse202,
)

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True, timeout=60)


def check(value, what):
    if not value:
        sys.exit(f"drive.py: {what}: {value!r}")
    return value


def got(answer, what):
    """The answer of a call, which must not be an error."""
    check(answer is not None and not isinstance(answer, Envelope), f"{what}: {answer!r}")
    return answer


def events(session):
    """The events of a session from its first, as the client's own types."""
    with client.get_httpx_client().stream("GET", f"/v1/sessions/{session}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: ") and '"sessionId"' in line:
                yield Event.from_dict(json.loads(line.removeprefix("data: ")))


session = got(session_new.sync(client=client, body=SessionNewBody(title="By a generated client")), "session/new").session_id
prompt = SessionPromptBody(prompt=[ContentBlockText(type_="text", text="Make a file.")])
began = got(session_prompt.sync(session, client=client, body=prompt, prefer="respond-async"), "session/prompt")
check(isinstance(began, SessionPromptResponse202), f"the turn did not begin: {began!r}")

ended = None
for event in events(session):
    if isinstance(event.body, BodyPermissionRequested):
        open_ones = got(permission_list.sync(client=client, session_id=session), "permissions").permissions
        check([one.permission_id for one in open_ones] == [event.body.permission_id], f"open questions: {open_ones!r}")
        refused = permission_answer.sync(event.body.permission_id, client=client, body=PermissionAnswerBody(option_id="no such"))
        check(isinstance(refused, Envelope) and refused.error.code == "invalid_params", f"a wrong answer: {refused!r}")
        answer = PermissionAnswerBody(outcome=PermissionOptionKind.ALLOW_ONCE)
        got(permission_answer.sync(event.body.permission_id, client=client, body=answer), "the answer")
    if event.turn_id == began.turn_id and isinstance(event.body, BodyTurnCompleted):
        ended = event.body
        break
check(ended and ended.stop_reason == "end_turn", "the turn's end")

messages = got(session_messages.sync(session, client=client), "messages").messages
texts = [part.text for message in messages for part in message.parts if isinstance(part, PartText)]
check("Make a file." in texts and "It is there." in texts, f"messages: {texts}")
modes = got(session_get.sync(session, client=client), "the session").modes
check(modes.current_mode_id == "ask", f"modes: {modes!r}")
listed = got(session_list.sync(client=client), "the list").sessions
check(session in [one.session_id for one in listed], f"sessions: {listed!r}")

got(session_close.sync(session, client=client, body=SessionCloseBody()), "close")
got(session_delete.sync(session, client=client), "delete")
gone = session_get.sync(session, client=client)
check(isinstance(gone, Envelope) and gone.error.code == "not_found", f"a deleted session: {gone!r}")
