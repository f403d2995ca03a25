"""Stays: from the day of arrival to the day of departure, which has no night any more."""
from calendar import monthrange
from datetime import date, timedelta


class Stay:
    def __init__(self, arrival, departure):
        if departure <= arrival:
            raise ValueError("a stay has at least one night")
        self.arrival = arrival
        self.departure = departure

    @property
    def nights(self):
        return (self.departure - self.arrival).days

    def __eq__(self, other):
        return (self.arrival, self.departure) == (other.arrival, other.departure)

    def __repr__(self):
        return f"Stay({self.arrival}, {self.departure})"


def by_month(stay):
    """Splits a stay into one stay for each calendar month."""
    parts = []
    start = stay.arrival
    while start < stay.departure:
        last = monthrange(start.year, start.month)[1]
        end = min(stay.departure, date(start.year, start.month, last))
        if end > start:
            parts.append(Stay(start, end))
        start = end + timedelta(days=1)
    return parts
