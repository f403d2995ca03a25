"""Mails as headers and a body."""
from notify import transport


def send(to, subject, body, html=False, urgent=False, copy=None):
    """Sends a mail. `copy` is an address, or several ones separated by commas."""
    headers = {"To": to, "Subject": subject}
    if html:
        headers["Content-Type"] = "text/html"
    if urgent:
        headers["Priority"] = "urgent"
    if copy:
        headers["Cc"] = ", ".join(part.strip() for part in copy.split(","))
    transport.deliver(headers, body)
