"""Adds amounts such as 1,10: total.py AMOUNT …"""
import sys


def cents(text):
    whole, _, part = text.partition(",")
    value = abs(int(whole)) * 100 + int(part or 0)
    return -value if text.startswith("-") else value


def main(amounts):
    total = sum(cents(amount) for amount in amounts)
    sign = "-" if total < 0 else ""
    print(f"{sign}{abs(total) // 100},{abs(total) % 100:02}")


if __name__ == "__main__":
    main(sys.argv[1:])
