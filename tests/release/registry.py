"""A npm registry on loopback: `registry.py DIRECTORY PORT_FILE` serves the packages in the directory until it is stopped."""

import base64
import hashlib
import json
import sys
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

DIRECTORY, PORT_FILE = Path(sys.argv[1]), Path(sys.argv[2])


def documents(host):
    """Returns the documents of all packages, by name."""
    found = {}
    for path in DIRECTORY.glob("*.tgz"):
        with tarfile.open(path) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        manifest["dist"] = {"tarball": f"http://{host}/-/{path.name}", "integrity": integrity}
        name, version = manifest["name"], manifest["version"]
        document = found.setdefault(name, {"name": name, "versions": {}, "dist-tags": {"latest": version}})
        document["versions"][version] = manifest
    return found


class Registry(BaseHTTPRequestHandler):
    def do_GET(self):
        path = unquote(self.path.split("?")[0])
        if path.startswith("/-/"):
            body = (DIRECTORY / Path(path).name).read_bytes()
        else:
            document = documents(self.headers["Host"]).get(path.strip("/"))
            body = json.dumps(document).encode() if document else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
PORT_FILE.write_text(str(server.server_address[1]))
server.serve_forever()
