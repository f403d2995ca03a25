"""Compares `merge` with a slow one, and counts calls and comparisons instead of time."""
import os
import random
import sys

sys.path.insert(0, os.getcwd())
from contacts import Contact, merge


def slow(contacts, key):
    result = []
    for contact in contacts:
        same = next((other for other in result if key(contact) is not None and key(other) == key(contact)), None)
        if same is None:
            same = Contact(contact.name)
            result.append(same)
        same.mails += [mail for mail in dict.fromkeys(contact.mails) if mail not in same.mails]
        same.phone = same.phone if contact.phone is None else contact.phone
    return result


def fields(contacts):
    return [(type(contact), contact.name, contact.mails, contact.phone) for contact in contacts]


random.seed(7)
word = lambda most: str(random.randrange(most))
# The key depends on the name only: the first name of a merged contact is kept.
for keys in (
    lambda contact: contact.name.strip().casefold(), lambda contact: None if contact.name in "12" else contact.name,
    lambda contact: (contact.name, 1), lambda contact: int(contact.name) % 3 == 0, lambda contact: float(int(contact.name) % 2),
    lambda contact: "" if contact.name < "5" else 0,
):
    for _ in range(60):
        contacts = [
            Contact(word(12), [word(6) for _ in range(random.randrange(5))], random.choice((None, "", word(99))))
            for _ in range(random.randrange(25))
        ]
        before = fields(contacts)
        merged = merge(contacts, keys)
        assert isinstance(merged, list) and fields(merged) == fields(slow(contacts, keys)), contacts
        assert not {id(contact) for contact in merged} & {id(contact) for contact in contacts}
        assert not {id(contact.mails) for contact in merged} & {id(contact.mails) for contact in contacts}
        assert fields(contacts) == before
assert fields(merge([Contact(" Ann ", ["b", "b"]), Contact("aNN", ["c"], "")])) == [(Contact, " Ann ", ["b", "c"], "")]
assert merge([]) == [] and len(merge(Contact(str(n % 3)) for n in range(9))) == 3

calls = comparisons = 0


class Counted:
    """A key or a mail that counts comparisons with others of its kind."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        global comparisons
        comparisons += 1
        return isinstance(other, Counted) and self.value == other.value


def counted(contact):
    global calls
    calls += 1
    return Counted(contact.name)


SIZE = 4000
for contacts in (
    [Contact(f"n{number}", [Counted(number)]) for number in range(SIZE)],
    [Contact(f"n{number % 1500}", [Counted(number)]) for number in range(SIZE)],
    [Contact("one", [Counted(number)]) for number in range(SIZE)],
    [Contact("one", [Counted(number) for number in range(SIZE)])],
):
    calls = comparisons = 0
    merged = merge(contacts, counted)
    assert calls <= len(contacts), f"{calls} calls of key for {len(contacts)} contacts"
    assert comparisons <= 10 * SIZE, f"{comparisons} comparisons for {len(contacts)} contacts"
    assert sum(len(contact.mails) for contact in merged) == SIZE
print("all checks passed")
