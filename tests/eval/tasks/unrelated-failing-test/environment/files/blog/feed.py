"""The feed of a blog."""
from datetime import datetime


def entry(title, published):
    return {"title": title, "published": published.strftime("%a, %d %b %Y %H:%M:%S GMT")}


def newest(entries):
    return sorted(entries, key=lambda entry: entry["published"], reverse=True)
