"""Sends a mail from the command line: python3 -m notify TO SUBJECT BODY [html] [urgent] [copy=A,B]"""
import sys

from notify import mail, transport


def main(arguments):
    to, subject, body, *flags = arguments
    options = {flag: True for flag in flags if flag in ("html", "urgent")}
    options.update(flag.split("=", 1) for flag in flags if flag.startswith("copy="))
    mail.send(to, subject, body, **options)
    print(transport.outbox)


if __name__ == "__main__":
    main(sys.argv[1:])
