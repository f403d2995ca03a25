"""Users and organizations."""

USERS = {7: "Ada", 9: "Grace"}
ORGS = {2: "Navy"}


def fetch_usr(key):
    return {"key": key, "name": USERS[key]}


def fetch_usr_log(key):
    return [f"{fetch_usr(key)['name']} logged in"]


def fetch_org(key):
    return {"key": key, "name": ORGS[key]}
