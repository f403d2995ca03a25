import crm


def greeting(key, fetch=crm.fetch_usr):
    """Greets a user. Tests replace `fetch`, by default fetch_usr."""
    return "Hello " + fetch(key)["name"]
