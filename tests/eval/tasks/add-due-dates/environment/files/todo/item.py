"""An item of the list."""


class Item:
    def __init__(self, number, text, done=False):
        self.number = number
        self.text = text
        self.done = done

    def to_json(self):
        return {"number": self.number, "text": self.text, "done": self.done}

    @staticmethod
    def from_json(value):
        unknown = set(value) - {"number", "text", "done"}
        if unknown:
            raise ValueError("unknown fields: " + ", ".join(sorted(unknown)))
        return Item(value["number"], value["text"], value["done"])
