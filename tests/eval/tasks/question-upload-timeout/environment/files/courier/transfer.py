"""Transfers of files."""
from urllib.request import Request, urlopen

from courier.settings import load


def download(name):
    settings = load()
    return urlopen(f"{settings['endpoint']}/{name}", timeout=settings["timeout"]).read()


def upload(name, content):
    """Uploads a file. The server checks it before it answers, so an upload waits longer."""
    settings = load()
    request = Request(f"{settings['endpoint']}/{name}", data=content, method="PUT")
    return urlopen(request, timeout=wait(settings, len(content))).status


def wait(settings, size):
    # Small files are checked at once; see the minimum in the service's documentation.
    return max(settings["timeout"] * (settings["upload_factor"] - 1), 60)
