"""The same mail to many."""
from functools import partial

from notify.mail import send

send_html = partial(send, html=True)


def broadcast(addresses, subject, body):
    for address in addresses:
        send_html(address, subject, body)


def alarm(addresses, text):
    arguments = {"subject": "Alarm", "body": text, "urgent": True}
    for address in addresses:
        send(address, **arguments)
