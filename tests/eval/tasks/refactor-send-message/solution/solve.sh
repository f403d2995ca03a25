#!/bin/bash
set -e
cat >notify/mail.py <<'PY'
"""Mails as headers and a body."""
from dataclasses import dataclass

from notify import transport


@dataclass
class Message:
    to: str
    subject: str
    body: str
    html: bool = False
    urgent: bool = False
    copies: tuple = ()


def addresses(text):
    """Returns the addresses in a text that separates them by commas; `None` has none."""
    return tuple(part.strip() for part in text.split(",")) if text else ()


def send(message):
    """Sends a mail."""
    headers = {"To": message.to, "Subject": message.subject}
    if message.html:
        headers["Content-Type"] = "text/html"
    if message.urgent:
        headers["Priority"] = "urgent"
    if message.copies:
        headers["Cc"] = ", ".join(message.copies)
    transport.deliver(headers, message.body)
PY
cat >notify/broadcast.py <<'PY'
"""The same mail to many."""
from notify.mail import Message, send


def broadcast(addresses, subject, body):
    for address in addresses:
        send(Message(address, subject, body, html=True))


def alarm(addresses, text):
    for address in addresses:
        send(Message(address, "Alarm", text, urgent=True))
PY
python3 - <<'PY'
from pathlib import Path


def change(name, *pairs):
    path = Path(name)
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)


change(
    "notify/invoices.py",
    ("import send\n", "import Message, addresses, send\n"),
    ("send(customer, subject, body, True, amount > 1000, accountant)",
     "send(Message(customer, subject, body, html=True, urgent=amount > 1000, copies=addresses(accountant)))"),
    ('send(customer, f"Receipt for {number}", "Thank you.")', 'send(Message(customer, f"Receipt for {number}", "Thank you."))'),
)
change(
    "notify/reminders.py",
    ('TEAM = "ann@example.com, bob@example.com"', 'TEAM = ("ann@example.com", "bob@example.com")'),
    ('mail.send(customer, "Reminder", f"{days} days late", urgent=late, copy=TEAM if late else None)',
     'message = mail.Message(customer, "Reminder", f"{days} days late", urgent=late, copies=TEAM if late else ())\n        mail.send(message)'),
)
change(
    "notify/__main__.py",
    ('    options.update(flag.split("=", 1) for flag in flags if flag.startswith("copy="))\n    mail.send(to, subject, body, **options)\n',
     '    for flag in flags:\n        if flag.startswith("copy="):\n            options["copies"] = mail.addresses(flag[len("copy="):])\n'
     '    mail.send(mail.Message(to, subject, body, **options))\n'),
)
change(
    "tests/test_mail.py",
    ("import send\n", "import Message, send\n"),
    ('send("a@example.com", "Hi", "Text")', 'send(Message("a@example.com", "Hi", "Text"))'),
    ('send("a@example.com", "Hi", "Text", copy="b@example.com,c@example.com")',
     'send(Message("a@example.com", "Hi", "Text", copies=("b@example.com", "c@example.com")))'),
)
PY
