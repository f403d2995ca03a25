"""Checks the container file as text: `container.py CONTAINERFILE DIRECTORY`. No engine builds it here."""

import json
import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text()
directory = Path(sys.argv[2])
lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
steps = [tuple(line.split(maxsplit=1)) for line in lines]
known = {"FROM", "RUN", "ARG", "ADD", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT"}
assert all(word in known for word, _ in steps), [word for word, _ in steps if word not in known]
bases = [rest for word, rest in steps if word == "FROM"]
assert all(base == "scratch" or re.search(r":[\w.-]+(@sha256:\w{64})?( AS \w+)?$", base) and ":latest" not in base for base in bases), bases
stage = [step for step in steps[max(index for index, (word, _) in enumerate(steps) if word == "FROM"):]]
users = [rest for word, rest in stage if word == "USER"]
assert users and re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]), f"the last stage must set a numeric user other than root: {users}"
user = users[-1].split(":")[0]
assert f"--uid {user} " in text and f"-o {user} " in text, "the user and the owner of the directory must be the same"
entry = [json.loads(rest) for word, rest in stage if word == "ENTRYPOINT"]
assert entry == [["/usr/local/bin/nuncio"]], entry
archives = [rest.split("=")[1] for word, rest in steps if word == "ARG" and rest.startswith("ARCHIVE=")]
assert archives and all((directory / name).exists() for name in archives), f"no {archives} in {directory}"
assert not re.search(r"(ADD|COPY)\s+https?:", text), "files come from the directory of the packages"
