"""Delivers mails. Here, they are only collected."""

outbox = []


def deliver(headers, body):
    outbox.append((headers, body))
