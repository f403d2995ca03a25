"""Contacts from several address books."""


class Contact:
    def __init__(self, name, mails=(), phone=None):
        self.name = name
        self.mails = list(mails)
        self.phone = phone

    def __repr__(self):
        return f"Contact({self.name!r}, {self.mails!r}, {self.phone!r})"


def by_name(contact):
    return contact.name.strip().casefold()


def merge(contacts, key=by_name):
    """Returns a new list in which contacts with the same key are one contact.

    A merged contact stands where the first of them stood. It has the name of the first one, the
    mails of all of them in their order without repetitions, and the last phone number given. The
    contacts in `contacts` are not changed. A contact whose key is None is never merged, but loses
    repeated mails, too.
    """
    result = []
    for contact in contacts:
        same = None
        for other in result:
            if key(contact) is not None and key(other) == key(contact):
                same = other
                break
        if same is None:
            same = Contact(contact.name)
            result.append(same)
        for mail in contact.mails:
            if mail not in same.mails:
                same.mails.append(mail)
        if contact.phone is not None:
            same.phone = contact.phone
    return result
