"""Validates recorded wires against ACP's JSON Schema: `python3 wires.py DIRECTORY SCHEMA`. For each connection the directory has two
files, NAME.client and NAME.agent, with the lines that each side sent. Also breaks one message of each kind and expects an error.
Prints the number of messages; exits with 1 when a message is not valid, or a broken one is."""

import copy
import json
import sys
from pathlib import Path

import jsonschema

OTHER = {"client": "agent", "agent": "client"}


class Schema:
    def __init__(self, path):
        self.schema = json.loads(Path(path).read_text())
        self.validators = {}
        # Definitions by the side that serves a method, the method, and the kind of message.
        self.definitions = {}
        for name, definition in self.schema["$defs"].items():
            for kind in ("Request", "Response", "Notification"):
                if "x-method" in definition and name.endswith(kind):
                    self.definitions[definition["x-side"], definition["x-method"], kind] = name

    def errors(self, name, value):
        if name not in self.validators:
            root = {"$schema": self.schema["$schema"], "$ref": f"#/$defs/{name}", "$defs": self.schema["$defs"]}
            self.validators[name] = jsonschema.Draft202012Validator(root)
        found = self.validators[name].iter_errors(value)
        return [f"{name}{'/'.join(['', *map(str, error.absolute_path)])}: {error.message[:300]}" for error in found]

    def definition(self, served_by, method, kind):
        """The name of a definition. None for an extension, whose method begins with an underscore."""
        if method.startswith("_"):
            return None
        name = self.definitions.get((served_by, method, kind)) or self.definitions.get(("protocol", method, kind))
        if name is None:
            raise KeyError(f"the schema has no {kind.lower()} {method} to the {served_by}")
        return name


def parts(schema, sender, message, requested):
    """The definition of a message and the part of it that the definition is about."""
    if message.get("jsonrpc") != "2.0":
        raise KeyError("jsonrpc is not 2.0")
    if "method" in message:
        kind = "Request" if "id" in message else "Notification"
        if kind == "Request":
            requested[json.dumps(message["id"])] = message["method"]
        return schema.definition(OTHER[sender], message["method"], kind), message.get("params", {})
    if "error" in message:
        return "Error", message["error"]
    return message["id"], message["result"]


def read(path):
    lines = path.read_bytes().split(b"\n")
    # The last line may be cut when a side was killed.
    for line in [*lines[:-1], *filter(None, lines[-1:])]:
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError:
            if line is not lines[-1]:
                raise


def main(directory, path):
    schema, messages, problems, valid = Schema(path), 0, [], {}

    def check(name, value, where):
        errors = schema.errors(name, value)
        problems.extend(f"{where}: {error}" for error in errors)
        if not errors:
            valid.setdefault(name, value)

    for client in sorted(Path(directory).glob("*.client")):
        sent = {"client": list(read(client)), "agent": list(read(client.with_suffix(".agent")))}
        requested, answers = {"client": {}, "agent": {}}, []
        for sender, all_sent in sent.items():
            for message in all_sent:
                messages += 1
                try:
                    name, value = parts(schema, sender, message, requested[sender])
                except KeyError as error:
                    problems.append(f"{client.stem}: {sender}: {error.args[0]}: {json.dumps(message)[:300]}")
                    continue
                if "method" not in message and "error" not in message:
                    answers.append((sender, message))
                elif name is not None:
                    check(name, value, f"{client.stem}: {sender}")
        for sender, message in answers:
            method = requested[OTHER[sender]].get(json.dumps(message["id"]))
            if method is None:
                problems.append(f"{client.stem}: {sender}: an answer without a request: {json.dumps(message)[:300]}")
                continue
            name = schema.definition(sender, method, "Response")
            # Some clients answer with null where the schema wants an object without fields.
            if name is not None and not (sender == "client" and message["result"] is None):
                check(name, message["result"], f"{client.stem}: {sender}: answer to {method}")

    broken = 0
    for name, value in valid.items():
        required = [field for field in schema.schema["$defs"][name].get("required", []) if field in value]
        for wrong in ({**copy.deepcopy(value), required[0]: [[]]} if required else 7,):
            broken += 1
            if not schema.errors(name, wrong):
                problems.append(f"self-check: a broken {name} is valid: {json.dumps(wrong)[:300]}")
    if not messages or not broken:
        problems.append("no messages were recorded")
    for problem in problems[:50]:
        print(problem)
    print(f"{messages} messages of {len(valid)} kinds, {len(problems)} errors; {broken} broken messages, one of each kind, were checked")
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
