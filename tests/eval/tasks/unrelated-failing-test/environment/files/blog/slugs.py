"""Slugs: the part of an address that names a post."""


def slug(title):
    return "".join(character if character.isalnum() else "-" for character in title.lower())


def unique_slug(title, taken):
    """Returns a slug that is not in `taken`: adds -2, -3 and so on."""
    name = slug(title)
    number = 2
    while name in taken:
        name = f"{slug(title)}-{number}"
        number += 1
    return name
