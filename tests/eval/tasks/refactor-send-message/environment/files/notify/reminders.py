from notify import mail

TEAM = "ann@example.com, bob@example.com"


def remind(customers, days):
    """Reminds customers; after 14 days urgently and with a copy to the team."""
    late = days > 14
    for customer in customers:
        mail.send(customer, "Reminder", f"{days} days late", urgent=late, copy=TEAM if late else None)
