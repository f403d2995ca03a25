"""The crates in the binary: `dependencies.py TARGET EPOCH SBOM NOTICES` writes a CycloneDX 1.5 document from Cargo.lock, and the licence
texts of the crates. Fails if licenses.txt does not allow the licence of a crate. Run it in the package's directory."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET, EPOCH, SBOM, NOTICES = sys.argv[1:]


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def graph(meta):
    """Returns the packages that are linked into the binary or run in its build as macros, each with those that it uses."""
    nodes = {node["id"]: node for node in meta["resolve"]["nodes"]}
    found, waiting = {}, [meta["resolve"]["root"]]
    while waiting:
        identity = waiting.pop()
        if identity in found:
            continue
        used = [one["pkg"] for one in nodes[identity]["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]
        found[identity] = used
        waiting += used
    return found


def expression(package):
    return (package["license"] or "").replace("/", " OR ").replace("  ", " ")


def is_allowed(text, allowed):
    """Returns whether a SPDX expression is satisfied by the allowed licences."""
    words = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", text)
    operators = {"(": "(", ")": ")", "OR": "or", "AND": "and"}
    return bool(words) and bool(eval(" ".join(operators.get(word) or str(word in allowed) for word in words)))


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksum):
    row = {"type": "library", "bom-ref": purl(package), "name": package["name"], "version": package["version"], "purl": purl(package)}
    if checksum:
        row["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    row["licenses"] = [{"expression": expression(package)}]
    if package["repository"]:
        row["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return row


def notices(packages):
    """Returns the licence files of all crates. A text that several crates have is printed once."""
    texts, parts = {}, []
    for package in packages:
        directory = Path(package["manifest_path"]).parent
        names = sorted(path for path in directory.iterdir() if re.match(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", path.name, re.I) and path.is_file())
        lines = [f"{package['name']} {package['version']}: {expression(package)}"]
        for path in names:
            text = path.read_text(errors="replace").strip()
            number = texts.setdefault(text, len(texts) + 1)
            lines.append(f"  {path.name}: text {number}")
        parts.append("\n".join(lines))
    bodies = [f"{'=' * 78}\nText {number}\n\n{text}" for text, number in texts.items()]
    return "nuncio contains these crates, under these licences.\n\n" + "\n".join(parts) + "\n\n" + "\n\n".join(bodies) + "\n"


def main():
    meta = metadata()
    used = graph(meta)
    root = meta["resolve"]["root"]
    packages = {package["id"]: package for package in meta["packages"]}
    lock = tomllib.loads(Path("Cargo.lock").read_text())
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}
    crates = sorted((packages[identity] for identity in used if identity != root), key=purl)

    allowed = {line for line in (HERE / "licenses.txt").read_text().splitlines() if line and not line.startswith("#")}
    refused = [f"{purl(crate)}: {expression(crate) or 'no licence'}" for crate in crates if not is_allowed(expression(crate), allowed)]
    if refused:
        sys.exit("licences that licenses.txt does not allow:\n" + "\n".join(refused))

    rows = [component(crate, checksums.get((crate["name"], crate["version"]))) for crate in crates]
    application = component(packages[root], None) | {"type": "application"}
    edges = [{"ref": purl(packages[one]), "dependsOn": sorted({purl(packages[other]) for other in others})} for one, others in used.items()]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same lock file has the same number.
        "serialNumber": uuid.UUID(hashlib.sha256(Path("Cargo.lock").read_bytes() + TARGET.encode()).hexdigest()[:32]).urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(EPOCH), timezone.utc).isoformat(),
            "component": application,
        },
        "components": rows,
        "dependencies": sorted(edges, key=lambda edge: edge["ref"]),
    }
    known = {row["bom-ref"] for row in rows} | {application["bom-ref"]}
    missing = {one for edge in edges for one in edge["dependsOn"]} - known
    unhashed = [row["purl"] for row in rows if "hashes" not in row]
    if missing or unhashed:
        sys.exit(f"the SBOM is incomplete: no component {missing}, no checksum {unhashed}")
    Path(SBOM).write_text(json.dumps(document, indent=1) + "\n")
    Path(NOTICES).write_text(notices(crates))
    print(f"{len(rows)} crates, licences allowed")


main()
