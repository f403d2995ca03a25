from notify.mail import send


def send_invoice(customer, number, amount, accountant=None):
    subject = f"Invoice {number}"
    body = f"<p>Please pay {amount:.2f} EUR.</p>"
    send(customer, subject, body, True, amount > 1000, accountant)


def send_receipt(customer, number):
    send(customer, f"Receipt for {number}", "Thank you.")
