from shop.prices import discount


def total(prices, voucher=0):
    return discount(sum(prices), voucher)
