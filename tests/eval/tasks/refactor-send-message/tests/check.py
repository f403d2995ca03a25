"""Checks `Message`, `send` and what each caller delivers."""
import ast
import dataclasses
import os
import subprocess
import sys

sys.path.insert(0, os.getcwd())
from notify import broadcast, invoices, mail, reminders, transport
from notify.mail import Message, send


def sent(function, *arguments, **more):
    transport.outbox.clear()
    function(*arguments, **more)
    return list(transport.outbox)


assert dataclasses.is_dataclass(Message)
assert [field.name for field in dataclasses.fields(Message)] == ["to", "subject", "body", "html", "urgent", "copies"]
message = Message("a@x.org", "S", "B")
assert (message.html, message.urgent, message.copies) == (False, False, ())
assert sent(send, message) == [({"To": "a@x.org", "Subject": "S"}, "B")]
full = Message("a@x.org", "S", "B", html=True, urgent=True, copies=("b@x.org", "c@x.org"))
headers = {"To": "a@x.org", "Subject": "S", "Content-Type": "text/html", "Priority": "urgent", "Cc": "b@x.org, c@x.org"}
assert sent(send, full) == [(headers, "B")] and list(transport.outbox[0][0]) == list(headers)
for old in (("a@x.org", "S", "B"), ("a@x.org", "S", "B", True)):
    try:
        send(*old)
    except TypeError:
        continue
    raise AssertionError("the old way of calling still works")

assert sent(invoices.send_invoice, "c@x.org", 7, 1200, "d@x.org, e@x.org") == [(
    {"To": "c@x.org", "Subject": "Invoice 7", "Content-Type": "text/html", "Priority": "urgent", "Cc": "d@x.org, e@x.org"},
    "<p>Please pay 1200.00 EUR.</p>",
)]
assert sent(invoices.send_invoice, "c@x.org", 8, 5) == [(
    {"To": "c@x.org", "Subject": "Invoice 8", "Content-Type": "text/html"}, "<p>Please pay 5.00 EUR.</p>",
)]
assert sent(invoices.send_receipt, "c@x.org", 8) == [({"To": "c@x.org", "Subject": "Receipt for 8"}, "Thank you.")]
late = {"To": "c@x.org", "Subject": "Reminder", "Priority": "urgent", "Cc": "ann@example.com, bob@example.com"}
assert sent(reminders.remind, ["c@x.org"], 15) == [(late, "15 days late")]
assert sent(reminders.remind, ["c@x.org"], 14) == [({"To": "c@x.org", "Subject": "Reminder"}, "14 days late")]
assert sent(broadcast.broadcast, ["a@x.org", "b@x.org"], "S", "B") == [
    ({"To": to, "Subject": "S", "Content-Type": "text/html"}, "B") for to in ("a@x.org", "b@x.org")
]
assert sent(broadcast.alarm, ["a@x.org"], "Fire") == [({"To": "a@x.org", "Subject": "Alarm", "Priority": "urgent"}, "Fire")]

env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
run = lambda *arguments: subprocess.run([sys.executable, "-m", *arguments], env=env, stdout=subprocess.PIPE, text=True)
shown = run("notify", "a@x.org", "S", "B", "html", "urgent", "copy=b@x.org,c@x.org")
assert shown.returncode == 0 and ast.literal_eval(shown.stdout) == [(headers, "B")]
shown = run("notify", "a@x.org", "S", "B")
assert shown.returncode == 0 and ast.literal_eval(shown.stdout) == [({"To": "a@x.org", "Subject": "S"}, "B")]
assert run("unittest", "-q").returncode == 0
with open("tests/test_mail.py", encoding="utf-8") as file:
    assert file.read().count("def test_") >= 2
print("all checks passed")
