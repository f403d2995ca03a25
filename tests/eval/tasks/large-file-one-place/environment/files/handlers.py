"""Handlers of all routes. Each takes the body of a request and returns a status and a body."""

ROUTES = {}


def route(method, path):
    """Registers a handler."""
    def register(handler):
        ROUTES[method, path] = handler
        return handler
    return register


@route("GET", "/accounts")
def get_accounts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "accounts", "page": page}


@route("GET", "/accounts/archive")
def get_accounts_archive(body):
    return 200, {"kind": "accounts", "archived": True}


@route("POST", "/accounts/archive")
def post_accounts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "accounts", "archived": done}


@route("DELETE", "/accounts")
def delete_accounts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "accounts", "deleted": len(ids)}


@route("GET", "/addresses")
def get_addresses(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "addresses", "page": page}


@route("GET", "/addresses/archive")
def get_addresses_archive(body):
    return 200, {"kind": "addresses", "archived": True}


@route("POST", "/addresses/archive")
def post_addresses_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "addresses", "archived": done}


@route("DELETE", "/addresses")
def delete_addresses(body):
    ids = body.get("ids", [])
    return 200, {"kind": "addresses", "deleted": len(ids)}


@route("GET", "/articles")
def get_articles(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "articles", "page": page}


@route("GET", "/articles/archive")
def get_articles_archive(body):
    return 200, {"kind": "articles", "archived": True}


@route("POST", "/articles/archive")
def post_articles_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "articles", "archived": done}


@route("DELETE", "/articles")
def delete_articles(body):
    ids = body.get("ids", [])
    return 200, {"kind": "articles", "deleted": len(ids)}


@route("GET", "/badges")
def get_badges(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "badges", "page": page}


@route("GET", "/badges/archive")
def get_badges_archive(body):
    return 200, {"kind": "badges", "archived": True}


@route("POST", "/badges/archive")
def post_badges_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "badges", "archived": done}


@route("DELETE", "/badges")
def delete_badges(body):
    ids = body.get("ids", [])
    return 200, {"kind": "badges", "deleted": len(ids)}


@route("GET", "/banners")
def get_banners(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "banners", "page": page}


@route("GET", "/banners/archive")
def get_banners_archive(body):
    return 200, {"kind": "banners", "archived": True}


@route("POST", "/banners/archive")
def post_banners_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "banners", "archived": done}


@route("DELETE", "/banners")
def delete_banners(body):
    ids = body.get("ids", [])
    return 200, {"kind": "banners", "deleted": len(ids)}


@route("GET", "/batches")
def get_batches(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "batches", "page": page}


@route("GET", "/batches/archive")
def get_batches_archive(body):
    return 200, {"kind": "batches", "archived": True}


@route("POST", "/batches/archive")
def post_batches_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "batches", "archived": done}


@route("DELETE", "/batches")
def delete_batches(body):
    ids = body.get("ids", [])
    return 200, {"kind": "batches", "deleted": len(ids)}


@route("GET", "/budgets")
def get_budgets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "budgets", "page": page}


@route("GET", "/budgets/archive")
def get_budgets_archive(body):
    return 200, {"kind": "budgets", "archived": True}


@route("POST", "/budgets/archive")
def post_budgets_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "budgets", "archived": done}


@route("DELETE", "/budgets")
def delete_budgets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "budgets", "deleted": len(ids)}


@route("GET", "/calendars")
def get_calendars(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "calendars", "page": page}


@route("GET", "/calendars/archive")
def get_calendars_archive(body):
    return 200, {"kind": "calendars", "archived": True}


@route("POST", "/calendars/archive")
def post_calendars_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "calendars", "archived": done}


@route("DELETE", "/calendars")
def delete_calendars(body):
    ids = body.get("ids", [])
    return 200, {"kind": "calendars", "deleted": len(ids)}


@route("GET", "/carts")
def get_carts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "carts", "page": page}


@route("GET", "/carts/archive")
def get_carts_archive(body):
    return 200, {"kind": "carts", "archived": True}


@route("POST", "/carts/archive")
def post_carts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "carts", "archived": done}


@route("DELETE", "/carts")
def delete_carts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "carts", "deleted": len(ids)}


@route("GET", "/catalogues")
def get_catalogues(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "catalogues", "page": page}


@route("GET", "/catalogues/archive")
def get_catalogues_archive(body):
    return 200, {"kind": "catalogues", "archived": True}


@route("POST", "/catalogues/archive")
def post_catalogues_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "catalogues", "archived": done}


@route("DELETE", "/catalogues")
def delete_catalogues(body):
    ids = body.get("ids", [])
    return 200, {"kind": "catalogues", "deleted": len(ids)}


@route("GET", "/channels")
def get_channels(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "channels", "page": page}


@route("GET", "/channels/archive")
def get_channels_archive(body):
    return 200, {"kind": "channels", "archived": True}


@route("POST", "/channels/archive")
def post_channels_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "channels", "archived": done}


@route("DELETE", "/channels")
def delete_channels(body):
    ids = body.get("ids", [])
    return 200, {"kind": "channels", "deleted": len(ids)}


@route("GET", "/claims")
def get_claims(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "claims", "page": page}


@route("GET", "/claims/archive")
def get_claims_archive(body):
    return 200, {"kind": "claims", "archived": True}


@route("POST", "/claims/archive")
def post_claims_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "claims", "archived": done}


@route("DELETE", "/claims")
def delete_claims(body):
    ids = body.get("ids", [])
    return 200, {"kind": "claims", "deleted": len(ids)}


@route("GET", "/clients")
def get_clients(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "clients", "page": page}


@route("GET", "/clients/archive")
def get_clients_archive(body):
    return 200, {"kind": "clients", "archived": True}


@route("POST", "/clients/archive")
def post_clients_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "clients", "archived": done}


@route("DELETE", "/clients")
def delete_clients(body):
    ids = body.get("ids", [])
    return 200, {"kind": "clients", "deleted": len(ids)}


@route("GET", "/comments")
def get_comments(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "comments", "page": page}


@route("GET", "/comments/archive")
def get_comments_archive(body):
    return 200, {"kind": "comments", "archived": True}


@route("POST", "/comments/archive")
def post_comments_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "comments", "archived": done}


@route("DELETE", "/comments")
def delete_comments(body):
    ids = body.get("ids", [])
    return 200, {"kind": "comments", "deleted": len(ids)}


@route("GET", "/contracts")
def get_contracts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "contracts", "page": page}


@route("GET", "/contracts/archive")
def get_contracts_archive(body):
    return 200, {"kind": "contracts", "archived": True}


@route("POST", "/contracts/archive")
def post_contracts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "contracts", "archived": done}


@route("DELETE", "/contracts")
def delete_contracts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "contracts", "deleted": len(ids)}


@route("GET", "/coupons")
def get_coupons(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "coupons", "page": page}


@route("GET", "/coupons/archive")
def get_coupons_archive(body):
    return 200, {"kind": "coupons", "archived": True}


@route("POST", "/coupons/archive")
def post_coupons_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "coupons", "archived": done}


@route("DELETE", "/coupons")
def delete_coupons(body):
    ids = body.get("ids", [])
    return 200, {"kind": "coupons", "deleted": len(ids)}


@route("GET", "/couriers")
def get_couriers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "couriers", "page": page}


@route("GET", "/couriers/archive")
def get_couriers_archive(body):
    return 200, {"kind": "couriers", "archived": True}


@route("POST", "/couriers/archive")
def post_couriers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "couriers", "archived": done}


@route("DELETE", "/couriers")
def delete_couriers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "couriers", "deleted": len(ids)}


@route("GET", "/credits")
def get_credits(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "credits", "page": page}


@route("GET", "/credits/archive")
def get_credits_archive(body):
    return 200, {"kind": "credits", "archived": True}


@route("POST", "/credits/archive")
def post_credits_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "credits", "archived": done}


@route("DELETE", "/credits")
def delete_credits(body):
    ids = body.get("ids", [])
    return 200, {"kind": "credits", "deleted": len(ids)}


@route("GET", "/currencies")
def get_currencies(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "currencies", "page": page}


@route("GET", "/currencies/archive")
def get_currencies_archive(body):
    return 200, {"kind": "currencies", "archived": True}


@route("POST", "/currencies/archive")
def post_currencies_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "currencies", "archived": done}


@route("DELETE", "/currencies")
def delete_currencies(body):
    ids = body.get("ids", [])
    return 200, {"kind": "currencies", "deleted": len(ids)}


@route("GET", "/customers")
def get_customers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "customers", "page": page}


@route("GET", "/customers/archive")
def get_customers_archive(body):
    return 200, {"kind": "customers", "archived": True}


@route("POST", "/customers/archive")
def post_customers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "customers", "archived": done}


@route("DELETE", "/customers")
def delete_customers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "customers", "deleted": len(ids)}


@route("GET", "/deliveries")
def get_deliveries(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "deliveries", "page": page}


@route("GET", "/deliveries/archive")
def get_deliveries_archive(body):
    return 200, {"kind": "deliveries", "archived": True}


@route("POST", "/deliveries/archive")
def post_deliveries_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "deliveries", "archived": done}


@route("DELETE", "/deliveries")
def delete_deliveries(body):
    ids = body.get("ids", [])
    return 200, {"kind": "deliveries", "deleted": len(ids)}


@route("GET", "/devices")
def get_devices(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "devices", "page": page}


@route("GET", "/devices/archive")
def get_devices_archive(body):
    return 200, {"kind": "devices", "archived": True}


@route("POST", "/devices/archive")
def post_devices_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "devices", "archived": done}


@route("DELETE", "/devices")
def delete_devices(body):
    ids = body.get("ids", [])
    return 200, {"kind": "devices", "deleted": len(ids)}


@route("GET", "/discounts")
def get_discounts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "discounts", "page": page}


@route("GET", "/discounts/archive")
def get_discounts_archive(body):
    return 200, {"kind": "discounts", "archived": True}


@route("POST", "/discounts/archive")
def post_discounts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "discounts", "archived": done}


@route("DELETE", "/discounts")
def delete_discounts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "discounts", "deleted": len(ids)}


@route("GET", "/documents")
def get_documents(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "documents", "page": page}


@route("GET", "/documents/archive")
def get_documents_archive(body):
    return 200, {"kind": "documents", "archived": True}


@route("POST", "/documents/archive")
def post_documents_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "documents", "archived": done}


@route("DELETE", "/documents")
def delete_documents(body):
    ids = body.get("ids", [])
    return 200, {"kind": "documents", "deleted": len(ids)}


@route("GET", "/drafts")
def get_drafts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "drafts", "page": page}


@route("GET", "/drafts/archive")
def get_drafts_archive(body):
    return 200, {"kind": "drafts", "archived": True}


@route("POST", "/drafts/archive")
def post_drafts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "drafts", "archived": done}


@route("DELETE", "/drafts")
def delete_drafts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "drafts", "deleted": len(ids)}


@route("GET", "/events")
def get_events(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "events", "page": page}


@route("GET", "/events/archive")
def get_events_archive(body):
    return 200, {"kind": "events", "archived": True}


@route("POST", "/events/archive")
def post_events_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "events", "archived": done}


@route("DELETE", "/events")
def delete_events(body):
    ids = body.get("ids", [])
    return 200, {"kind": "events", "deleted": len(ids)}


@route("GET", "/exports")
def get_exports(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "exports", "page": page}


@route("GET", "/exports/archive")
def get_exports_archive(body):
    return 200, {"kind": "exports", "archived": True}


@route("POST", "/exports/archive")
def post_exports_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "exports", "archived": done}


@route("DELETE", "/exports")
def delete_exports(body):
    ids = body.get("ids", [])
    return 200, {"kind": "exports", "deleted": len(ids)}


@route("GET", "/fees")
def get_fees(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "fees", "page": page}


@route("GET", "/fees/archive")
def get_fees_archive(body):
    return 200, {"kind": "fees", "archived": True}


@route("POST", "/fees/archive")
def post_fees_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "fees", "archived": done}


@route("DELETE", "/fees")
def delete_fees(body):
    ids = body.get("ids", [])
    return 200, {"kind": "fees", "deleted": len(ids)}


@route("GET", "/folders")
def get_folders(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "folders", "page": page}


@route("GET", "/folders/archive")
def get_folders_archive(body):
    return 200, {"kind": "folders", "archived": True}


@route("POST", "/folders/archive")
def post_folders_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "folders", "archived": done}


@route("DELETE", "/folders")
def delete_folders(body):
    ids = body.get("ids", [])
    return 200, {"kind": "folders", "deleted": len(ids)}


@route("GET", "/forecasts")
def get_forecasts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "forecasts", "page": page}


@route("GET", "/forecasts/archive")
def get_forecasts_archive(body):
    return 200, {"kind": "forecasts", "archived": True}


@route("POST", "/forecasts/archive")
def post_forecasts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "forecasts", "archived": done}


@route("DELETE", "/forecasts")
def delete_forecasts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "forecasts", "deleted": len(ids)}


@route("GET", "/gifts")
def get_gifts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "gifts", "page": page}


@route("GET", "/gifts/archive")
def get_gifts_archive(body):
    return 200, {"kind": "gifts", "archived": True}


@route("POST", "/gifts/archive")
def post_gifts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "gifts", "archived": done}


@route("DELETE", "/gifts")
def delete_gifts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "gifts", "deleted": len(ids)}


@route("GET", "/groups")
def get_groups(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "groups", "page": page}


@route("GET", "/groups/archive")
def get_groups_archive(body):
    return 200, {"kind": "groups", "archived": True}


@route("POST", "/groups/archive")
def post_groups_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "groups", "archived": done}


@route("DELETE", "/groups")
def delete_groups(body):
    ids = body.get("ids", [])
    return 200, {"kind": "groups", "deleted": len(ids)}


@route("GET", "/holidays")
def get_holidays(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "holidays", "page": page}


@route("GET", "/holidays/archive")
def get_holidays_archive(body):
    return 200, {"kind": "holidays", "archived": True}


@route("POST", "/holidays/archive")
def post_holidays_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "holidays", "archived": done}


@route("DELETE", "/holidays")
def delete_holidays(body):
    ids = body.get("ids", [])
    return 200, {"kind": "holidays", "deleted": len(ids)}


@route("GET", "/images")
def get_images(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "images", "page": page}


@route("GET", "/images/archive")
def get_images_archive(body):
    return 200, {"kind": "images", "archived": True}


@route("POST", "/images/archive")
def post_images_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "images", "archived": done}


@route("DELETE", "/images")
def delete_images(body):
    ids = body.get("ids", [])
    return 200, {"kind": "images", "deleted": len(ids)}


@route("GET", "/imports")
def get_imports(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "imports", "page": page}


@route("GET", "/imports/archive")
def get_imports_archive(body):
    return 200, {"kind": "imports", "archived": True}


@route("POST", "/imports/archive")
def post_imports_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "imports", "archived": done}


@route("DELETE", "/imports")
def delete_imports(body):
    ids = body.get("ids", [])
    return 200, {"kind": "imports", "deleted": len(ids)}


@route("GET", "/invoices")
def get_invoices(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "invoices", "page": page}


@route("GET", "/invoices/archive")
def get_invoices_archive(body):
    return 200, {"kind": "invoices", "archived": True}


@route("POST", "/invoices/archive")
def post_invoices_archive(body):
    ids = body.get("ids", [])
    if not ids:
        return 400, {"error": "ids"}
    done = sorted(set(ids))
    return 202, {"kind": "invoices", "archived": done}


@route("DELETE", "/invoices")
def delete_invoices(body):
    ids = body.get("ids", [])
    return 200, {"kind": "invoices", "deleted": len(ids)}


@route("GET", "/journeys")
def get_journeys(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "journeys", "page": page}


@route("GET", "/journeys/archive")
def get_journeys_archive(body):
    return 200, {"kind": "journeys", "archived": True}


@route("POST", "/journeys/archive")
def post_journeys_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "journeys", "archived": done}


@route("DELETE", "/journeys")
def delete_journeys(body):
    ids = body.get("ids", [])
    return 200, {"kind": "journeys", "deleted": len(ids)}


@route("GET", "/labels")
def get_labels(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "labels", "page": page}


@route("GET", "/labels/archive")
def get_labels_archive(body):
    return 200, {"kind": "labels", "archived": True}


@route("POST", "/labels/archive")
def post_labels_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "labels", "archived": done}


@route("DELETE", "/labels")
def delete_labels(body):
    ids = body.get("ids", [])
    return 200, {"kind": "labels", "deleted": len(ids)}


@route("GET", "/ledgers")
def get_ledgers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "ledgers", "page": page}


@route("GET", "/ledgers/archive")
def get_ledgers_archive(body):
    return 200, {"kind": "ledgers", "archived": True}


@route("POST", "/ledgers/archive")
def post_ledgers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "ledgers", "archived": done}


@route("DELETE", "/ledgers")
def delete_ledgers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "ledgers", "deleted": len(ids)}


@route("GET", "/letters")
def get_letters(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "letters", "page": page}


@route("GET", "/letters/archive")
def get_letters_archive(body):
    return 200, {"kind": "letters", "archived": True}


@route("POST", "/letters/archive")
def post_letters_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "letters", "archived": done}


@route("DELETE", "/letters")
def delete_letters(body):
    ids = body.get("ids", [])
    return 200, {"kind": "letters", "deleted": len(ids)}


@route("GET", "/licences")
def get_licences(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "licences", "page": page}


@route("GET", "/licences/archive")
def get_licences_archive(body):
    return 200, {"kind": "licences", "archived": True}


@route("POST", "/licences/archive")
def post_licences_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "licences", "archived": done}


@route("DELETE", "/licences")
def delete_licences(body):
    ids = body.get("ids", [])
    return 200, {"kind": "licences", "deleted": len(ids)}


@route("GET", "/lists")
def get_lists(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "lists", "page": page}


@route("GET", "/lists/archive")
def get_lists_archive(body):
    return 200, {"kind": "lists", "archived": True}


@route("POST", "/lists/archive")
def post_lists_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "lists", "archived": done}


@route("DELETE", "/lists")
def delete_lists(body):
    ids = body.get("ids", [])
    return 200, {"kind": "lists", "deleted": len(ids)}


@route("GET", "/locations")
def get_locations(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "locations", "page": page}


@route("GET", "/locations/archive")
def get_locations_archive(body):
    return 200, {"kind": "locations", "archived": True}


@route("POST", "/locations/archive")
def post_locations_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "locations", "archived": done}


@route("DELETE", "/locations")
def delete_locations(body):
    ids = body.get("ids", [])
    return 200, {"kind": "locations", "deleted": len(ids)}


@route("GET", "/logs")
def get_logs(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "logs", "page": page}


@route("GET", "/logs/archive")
def get_logs_archive(body):
    return 200, {"kind": "logs", "archived": True}


@route("POST", "/logs/archive")
def post_logs_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "logs", "archived": done}


@route("DELETE", "/logs")
def delete_logs(body):
    ids = body.get("ids", [])
    return 200, {"kind": "logs", "deleted": len(ids)}


@route("GET", "/mandates")
def get_mandates(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "mandates", "page": page}


@route("GET", "/mandates/archive")
def get_mandates_archive(body):
    return 200, {"kind": "mandates", "archived": True}


@route("POST", "/mandates/archive")
def post_mandates_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "mandates", "archived": done}


@route("DELETE", "/mandates")
def delete_mandates(body):
    ids = body.get("ids", [])
    return 200, {"kind": "mandates", "deleted": len(ids)}


@route("GET", "/markets")
def get_markets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "markets", "page": page}


@route("GET", "/markets/archive")
def get_markets_archive(body):
    return 200, {"kind": "markets", "archived": True}


@route("POST", "/markets/archive")
def post_markets_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "markets", "archived": done}


@route("DELETE", "/markets")
def delete_markets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "markets", "deleted": len(ids)}


@route("GET", "/measures")
def get_measures(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "measures", "page": page}


@route("GET", "/measures/archive")
def get_measures_archive(body):
    return 200, {"kind": "measures", "archived": True}


@route("POST", "/measures/archive")
def post_measures_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "measures", "archived": done}


@route("DELETE", "/measures")
def delete_measures(body):
    ids = body.get("ids", [])
    return 200, {"kind": "measures", "deleted": len(ids)}


@route("GET", "/meetings")
def get_meetings(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "meetings", "page": page}


@route("GET", "/meetings/archive")
def get_meetings_archive(body):
    return 200, {"kind": "meetings", "archived": True}


@route("POST", "/meetings/archive")
def post_meetings_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "meetings", "archived": done}


@route("DELETE", "/meetings")
def delete_meetings(body):
    ids = body.get("ids", [])
    return 200, {"kind": "meetings", "deleted": len(ids)}


@route("GET", "/members")
def get_members(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "members", "page": page}


@route("GET", "/members/archive")
def get_members_archive(body):
    return 200, {"kind": "members", "archived": True}


@route("POST", "/members/archive")
def post_members_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "members", "archived": done}


@route("DELETE", "/members")
def delete_members(body):
    ids = body.get("ids", [])
    return 200, {"kind": "members", "deleted": len(ids)}


@route("GET", "/memos")
def get_memos(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "memos", "page": page}


@route("GET", "/memos/archive")
def get_memos_archive(body):
    return 200, {"kind": "memos", "archived": True}


@route("POST", "/memos/archive")
def post_memos_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "memos", "archived": done}


@route("DELETE", "/memos")
def delete_memos(body):
    ids = body.get("ids", [])
    return 200, {"kind": "memos", "deleted": len(ids)}


@route("GET", "/messages")
def get_messages(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "messages", "page": page}


@route("GET", "/messages/archive")
def get_messages_archive(body):
    return 200, {"kind": "messages", "archived": True}


@route("POST", "/messages/archive")
def post_messages_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "messages", "archived": done}


@route("DELETE", "/messages")
def delete_messages(body):
    ids = body.get("ids", [])
    return 200, {"kind": "messages", "deleted": len(ids)}


@route("GET", "/notes")
def get_notes(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "notes", "page": page}


@route("GET", "/notes/archive")
def get_notes_archive(body):
    return 200, {"kind": "notes", "archived": True}


@route("POST", "/notes/archive")
def post_notes_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "notes", "archived": done}


@route("DELETE", "/notes")
def delete_notes(body):
    ids = body.get("ids", [])
    return 200, {"kind": "notes", "deleted": len(ids)}


@route("GET", "/offers")
def get_offers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "offers", "page": page}


@route("GET", "/offers/archive")
def get_offers_archive(body):
    return 200, {"kind": "offers", "archived": True}


@route("POST", "/offers/archive")
def post_offers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "offers", "archived": done}


@route("DELETE", "/offers")
def delete_offers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "offers", "deleted": len(ids)}


@route("GET", "/orders")
def get_orders(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "orders", "page": page}


@route("GET", "/orders/archive")
def get_orders_archive(body):
    return 200, {"kind": "orders", "archived": True}


@route("POST", "/orders/archive")
def post_orders_archive(body):
    ids = body.get("ids", [])
    if not ids:
        return 400, {"error": "ids"}
    done = sorted(set(ids))
    return 202, {"kind": "orders", "archived": done}


@route("DELETE", "/orders")
def delete_orders(body):
    ids = body.get("ids", [])
    return 200, {"kind": "orders", "deleted": len(ids)}


@route("GET", "/pages")
def get_pages(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "pages", "page": page}


@route("GET", "/pages/archive")
def get_pages_archive(body):
    return 200, {"kind": "pages", "archived": True}


@route("POST", "/pages/archive")
def post_pages_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "pages", "archived": done}


@route("DELETE", "/pages")
def delete_pages(body):
    ids = body.get("ids", [])
    return 200, {"kind": "pages", "deleted": len(ids)}


@route("GET", "/parcels")
def get_parcels(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "parcels", "page": page}


@route("GET", "/parcels/archive")
def get_parcels_archive(body):
    return 200, {"kind": "parcels", "archived": True}


@route("POST", "/parcels/archive")
def post_parcels_archive(body):
    ids = body.get("ids", [])
    if not ids:
        return 400, {"error": "ids"}
    done = sorted(set(ids))
    return 202, {"kind": "parcels", "archived": done}


@route("DELETE", "/parcels")
def delete_parcels(body):
    ids = body.get("ids", [])
    return 200, {"kind": "parcels", "deleted": len(ids)}


@route("GET", "/partners")
def get_partners(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "partners", "page": page}


@route("GET", "/partners/archive")
def get_partners_archive(body):
    return 200, {"kind": "partners", "archived": True}


@route("POST", "/partners/archive")
def post_partners_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "partners", "archived": done}


@route("DELETE", "/partners")
def delete_partners(body):
    ids = body.get("ids", [])
    return 200, {"kind": "partners", "deleted": len(ids)}


@route("GET", "/payments")
def get_payments(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "payments", "page": page}


@route("GET", "/payments/archive")
def get_payments_archive(body):
    return 200, {"kind": "payments", "archived": True}


@route("POST", "/payments/archive")
def post_payments_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "payments", "archived": done}


@route("DELETE", "/payments")
def delete_payments(body):
    ids = body.get("ids", [])
    return 200, {"kind": "payments", "deleted": len(ids)}


@route("GET", "/photos")
def get_photos(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "photos", "page": page}


@route("GET", "/photos/archive")
def get_photos_archive(body):
    return 200, {"kind": "photos", "archived": True}


@route("POST", "/photos/archive")
def post_photos_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "photos", "archived": done}


@route("DELETE", "/photos")
def delete_photos(body):
    ids = body.get("ids", [])
    return 200, {"kind": "photos", "deleted": len(ids)}


@route("GET", "/plans")
def get_plans(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "plans", "page": page}


@route("GET", "/plans/archive")
def get_plans_archive(body):
    return 200, {"kind": "plans", "archived": True}


@route("POST", "/plans/archive")
def post_plans_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "plans", "archived": done}


@route("DELETE", "/plans")
def delete_plans(body):
    ids = body.get("ids", [])
    return 200, {"kind": "plans", "deleted": len(ids)}


@route("GET", "/policies")
def get_policies(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "policies", "page": page}


@route("GET", "/policies/archive")
def get_policies_archive(body):
    return 200, {"kind": "policies", "archived": True}


@route("POST", "/policies/archive")
def post_policies_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "policies", "archived": done}


@route("DELETE", "/policies")
def delete_policies(body):
    ids = body.get("ids", [])
    return 200, {"kind": "policies", "deleted": len(ids)}


@route("GET", "/prices")
def get_prices(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "prices", "page": page}


@route("GET", "/prices/archive")
def get_prices_archive(body):
    return 200, {"kind": "prices", "archived": True}


@route("POST", "/prices/archive")
def post_prices_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "prices", "archived": done}


@route("DELETE", "/prices")
def delete_prices(body):
    ids = body.get("ids", [])
    return 200, {"kind": "prices", "deleted": len(ids)}


@route("GET", "/products")
def get_products(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "products", "page": page}


@route("GET", "/products/archive")
def get_products_archive(body):
    return 200, {"kind": "products", "archived": True}


@route("POST", "/products/archive")
def post_products_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "products", "archived": done}


@route("DELETE", "/products")
def delete_products(body):
    ids = body.get("ids", [])
    return 200, {"kind": "products", "deleted": len(ids)}


@route("GET", "/profiles")
def get_profiles(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "profiles", "page": page}


@route("GET", "/profiles/archive")
def get_profiles_archive(body):
    return 200, {"kind": "profiles", "archived": True}


@route("POST", "/profiles/archive")
def post_profiles_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "profiles", "archived": done}


@route("DELETE", "/profiles")
def delete_profiles(body):
    ids = body.get("ids", [])
    return 200, {"kind": "profiles", "deleted": len(ids)}


@route("GET", "/projects")
def get_projects(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "projects", "page": page}


@route("GET", "/projects/archive")
def get_projects_archive(body):
    return 200, {"kind": "projects", "archived": True}


@route("POST", "/projects/archive")
def post_projects_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "projects", "archived": done}


@route("DELETE", "/projects")
def delete_projects(body):
    ids = body.get("ids", [])
    return 200, {"kind": "projects", "deleted": len(ids)}


@route("GET", "/quotas")
def get_quotas(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "quotas", "page": page}


@route("GET", "/quotas/archive")
def get_quotas_archive(body):
    return 200, {"kind": "quotas", "archived": True}


@route("POST", "/quotas/archive")
def post_quotas_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "quotas", "archived": done}


@route("DELETE", "/quotas")
def delete_quotas(body):
    ids = body.get("ids", [])
    return 200, {"kind": "quotas", "deleted": len(ids)}


@route("GET", "/quotes")
def get_quotes(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "quotes", "page": page}


@route("GET", "/quotes/archive")
def get_quotes_archive(body):
    return 200, {"kind": "quotes", "archived": True}


@route("POST", "/quotes/archive")
def post_quotes_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "quotes", "archived": done}


@route("DELETE", "/quotes")
def delete_quotes(body):
    ids = body.get("ids", [])
    return 200, {"kind": "quotes", "deleted": len(ids)}


@route("GET", "/rates")
def get_rates(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "rates", "page": page}


@route("GET", "/rates/archive")
def get_rates_archive(body):
    return 200, {"kind": "rates", "archived": True}


@route("POST", "/rates/archive")
def post_rates_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "rates", "archived": done}


@route("DELETE", "/rates")
def delete_rates(body):
    ids = body.get("ids", [])
    return 200, {"kind": "rates", "deleted": len(ids)}


@route("GET", "/ratings")
def get_ratings(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "ratings", "page": page}


@route("GET", "/ratings/archive")
def get_ratings_archive(body):
    return 200, {"kind": "ratings", "archived": True}


@route("POST", "/ratings/archive")
def post_ratings_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "ratings", "archived": done}


@route("DELETE", "/ratings")
def delete_ratings(body):
    ids = body.get("ids", [])
    return 200, {"kind": "ratings", "deleted": len(ids)}


@route("GET", "/refunds")
def get_refunds(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "refunds", "page": page}


@route("GET", "/refunds/archive")
def get_refunds_archive(body):
    return 200, {"kind": "refunds", "archived": True}


@route("POST", "/refunds/archive")
def post_refunds_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "refunds", "archived": done}


@route("DELETE", "/refunds")
def delete_refunds(body):
    ids = body.get("ids", [])
    return 200, {"kind": "refunds", "deleted": len(ids)}


@route("GET", "/regions")
def get_regions(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "regions", "page": page}


@route("GET", "/regions/archive")
def get_regions_archive(body):
    return 200, {"kind": "regions", "archived": True}


@route("POST", "/regions/archive")
def post_regions_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "regions", "archived": done}


@route("DELETE", "/regions")
def delete_regions(body):
    ids = body.get("ids", [])
    return 200, {"kind": "regions", "deleted": len(ids)}


@route("GET", "/reminders")
def get_reminders(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "reminders", "page": page}


@route("GET", "/reminders/archive")
def get_reminders_archive(body):
    return 200, {"kind": "reminders", "archived": True}


@route("POST", "/reminders/archive")
def post_reminders_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "reminders", "archived": done}


@route("DELETE", "/reminders")
def delete_reminders(body):
    ids = body.get("ids", [])
    return 200, {"kind": "reminders", "deleted": len(ids)}


@route("GET", "/rentals")
def get_rentals(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "rentals", "page": page}


@route("GET", "/rentals/archive")
def get_rentals_archive(body):
    return 200, {"kind": "rentals", "archived": True}


@route("POST", "/rentals/archive")
def post_rentals_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "rentals", "archived": done}


@route("DELETE", "/rentals")
def delete_rentals(body):
    ids = body.get("ids", [])
    return 200, {"kind": "rentals", "deleted": len(ids)}


@route("GET", "/report")
def get_report(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "report", "page": page}


@route("GET", "/report/archive")
def get_report_archive(body):
    return 200, {"kind": "report", "archived": True}


@route("POST", "/report/archive")
def post_report_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "report", "archived": done}


@route("DELETE", "/report")
def delete_report(body):
    ids = body.get("ids", [])
    return 200, {"kind": "report", "deleted": len(ids)}


@route("GET", "/reports")
def get_reports(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "reports", "page": page}


@route("GET", "/reports/archive")
def get_reports_archive(body):
    return 200, {"kind": "reports", "archived": True}


@route("POST", "/reports/archive")
def post_reports_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "reports", "archived": done}


@route("DELETE", "/reports")
def delete_reports(body):
    ids = body.get("ids", [])
    return 200, {"kind": "reports", "deleted": len(ids)}


@route("GET", "/returns")
def get_returns(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "returns", "page": page}


@route("GET", "/returns/archive")
def get_returns_archive(body):
    return 200, {"kind": "returns", "archived": True}


@route("POST", "/returns/archive")
def post_returns_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "returns", "archived": done}


@route("DELETE", "/returns")
def delete_returns(body):
    ids = body.get("ids", [])
    return 200, {"kind": "returns", "deleted": len(ids)}


@route("GET", "/reviews")
def get_reviews(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "reviews", "page": page}


@route("GET", "/reviews/archive")
def get_reviews_archive(body):
    return 200, {"kind": "reviews", "archived": True}


@route("POST", "/reviews/archive")
def post_reviews_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "reviews", "archived": done}


@route("DELETE", "/reviews")
def delete_reviews(body):
    ids = body.get("ids", [])
    return 200, {"kind": "reviews", "deleted": len(ids)}


@route("GET", "/rewards")
def get_rewards(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "rewards", "page": page}


@route("GET", "/rewards/archive")
def get_rewards_archive(body):
    return 200, {"kind": "rewards", "archived": True}


@route("POST", "/rewards/archive")
def post_rewards_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "rewards", "archived": done}


@route("DELETE", "/rewards")
def delete_rewards(body):
    ids = body.get("ids", [])
    return 200, {"kind": "rewards", "deleted": len(ids)}


@route("GET", "/roles")
def get_roles(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "roles", "page": page}


@route("GET", "/roles/archive")
def get_roles_archive(body):
    return 200, {"kind": "roles", "archived": True}


@route("POST", "/roles/archive")
def post_roles_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "roles", "archived": done}


@route("DELETE", "/roles")
def delete_roles(body):
    ids = body.get("ids", [])
    return 200, {"kind": "roles", "deleted": len(ids)}


@route("GET", "/rooms")
def get_rooms(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "rooms", "page": page}


@route("GET", "/rooms/archive")
def get_rooms_archive(body):
    return 200, {"kind": "rooms", "archived": True}


@route("POST", "/rooms/archive")
def post_rooms_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "rooms", "archived": done}


@route("DELETE", "/rooms")
def delete_rooms(body):
    ids = body.get("ids", [])
    return 200, {"kind": "rooms", "deleted": len(ids)}


@route("GET", "/routes")
def get_routes(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "routes", "page": page}


@route("GET", "/routes/archive")
def get_routes_archive(body):
    return 200, {"kind": "routes", "archived": True}


@route("POST", "/routes/archive")
def post_routes_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "routes", "archived": done}


@route("DELETE", "/routes")
def delete_routes(body):
    ids = body.get("ids", [])
    return 200, {"kind": "routes", "deleted": len(ids)}


@route("GET", "/rules")
def get_rules(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "rules", "page": page}


@route("GET", "/rules/archive")
def get_rules_archive(body):
    return 200, {"kind": "rules", "archived": True}


@route("POST", "/rules/archive")
def post_rules_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "rules", "archived": done}


@route("DELETE", "/rules")
def delete_rules(body):
    ids = body.get("ids", [])
    return 200, {"kind": "rules", "deleted": len(ids)}


@route("GET", "/salaries")
def get_salaries(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "salaries", "page": page}


@route("GET", "/salaries/archive")
def get_salaries_archive(body):
    return 200, {"kind": "salaries", "archived": True}


@route("POST", "/salaries/archive")
def post_salaries_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "salaries", "archived": done}


@route("DELETE", "/salaries")
def delete_salaries(body):
    ids = body.get("ids", [])
    return 200, {"kind": "salaries", "deleted": len(ids)}


@route("GET", "/samples")
def get_samples(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "samples", "page": page}


@route("GET", "/samples/archive")
def get_samples_archive(body):
    return 200, {"kind": "samples", "archived": True}


@route("POST", "/samples/archive")
def post_samples_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "samples", "archived": done}


@route("DELETE", "/samples")
def delete_samples(body):
    ids = body.get("ids", [])
    return 200, {"kind": "samples", "deleted": len(ids)}


@route("GET", "/schedules")
def get_schedules(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "schedules", "page": page}


@route("GET", "/schedules/archive")
def get_schedules_archive(body):
    return 200, {"kind": "schedules", "archived": True}


@route("POST", "/schedules/archive")
def post_schedules_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "schedules", "archived": done}


@route("DELETE", "/schedules")
def delete_schedules(body):
    ids = body.get("ids", [])
    return 200, {"kind": "schedules", "deleted": len(ids)}


@route("GET", "/seasons")
def get_seasons(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "seasons", "page": page}


@route("GET", "/seasons/archive")
def get_seasons_archive(body):
    return 200, {"kind": "seasons", "archived": True}


@route("POST", "/seasons/archive")
def post_seasons_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "seasons", "archived": done}


@route("DELETE", "/seasons")
def delete_seasons(body):
    ids = body.get("ids", [])
    return 200, {"kind": "seasons", "deleted": len(ids)}


@route("GET", "/sellers")
def get_sellers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "sellers", "page": page}


@route("GET", "/sellers/archive")
def get_sellers_archive(body):
    return 200, {"kind": "sellers", "archived": True}


@route("POST", "/sellers/archive")
def post_sellers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "sellers", "archived": done}


@route("DELETE", "/sellers")
def delete_sellers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "sellers", "deleted": len(ids)}


@route("GET", "/services")
def get_services(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "services", "page": page}


@route("GET", "/services/archive")
def get_services_archive(body):
    return 200, {"kind": "services", "archived": True}


@route("POST", "/services/archive")
def post_services_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "services", "archived": done}


@route("DELETE", "/services")
def delete_services(body):
    ids = body.get("ids", [])
    return 200, {"kind": "services", "deleted": len(ids)}


@route("GET", "/shelves")
def get_shelves(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "shelves", "page": page}


@route("GET", "/shelves/archive")
def get_shelves_archive(body):
    return 200, {"kind": "shelves", "archived": True}


@route("POST", "/shelves/archive")
def post_shelves_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "shelves", "archived": done}


@route("DELETE", "/shelves")
def delete_shelves(body):
    ids = body.get("ids", [])
    return 200, {"kind": "shelves", "deleted": len(ids)}


@route("GET", "/shifts")
def get_shifts(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "shifts", "page": page}


@route("GET", "/shifts/archive")
def get_shifts_archive(body):
    return 200, {"kind": "shifts", "archived": True}


@route("POST", "/shifts/archive")
def post_shifts_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "shifts", "archived": done}


@route("DELETE", "/shifts")
def delete_shifts(body):
    ids = body.get("ids", [])
    return 200, {"kind": "shifts", "deleted": len(ids)}


@route("GET", "/shops")
def get_shops(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "shops", "page": page}


@route("GET", "/shops/archive")
def get_shops_archive(body):
    return 200, {"kind": "shops", "archived": True}


@route("POST", "/shops/archive")
def post_shops_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "shops", "archived": done}


@route("DELETE", "/shops")
def delete_shops(body):
    ids = body.get("ids", [])
    return 200, {"kind": "shops", "deleted": len(ids)}


@route("GET", "/signals")
def get_signals(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "signals", "page": page}


@route("GET", "/signals/archive")
def get_signals_archive(body):
    return 200, {"kind": "signals", "archived": True}


@route("POST", "/signals/archive")
def post_signals_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "signals", "archived": done}


@route("DELETE", "/signals")
def delete_signals(body):
    ids = body.get("ids", [])
    return 200, {"kind": "signals", "deleted": len(ids)}


@route("GET", "/skills")
def get_skills(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "skills", "page": page}


@route("GET", "/skills/archive")
def get_skills_archive(body):
    return 200, {"kind": "skills", "archived": True}


@route("POST", "/skills/archive")
def post_skills_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "skills", "archived": done}


@route("DELETE", "/skills")
def delete_skills(body):
    ids = body.get("ids", [])
    return 200, {"kind": "skills", "deleted": len(ids)}


@route("GET", "/sources")
def get_sources(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "sources", "page": page}


@route("GET", "/sources/archive")
def get_sources_archive(body):
    return 200, {"kind": "sources", "archived": True}


@route("POST", "/sources/archive")
def post_sources_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "sources", "archived": done}


@route("DELETE", "/sources")
def delete_sources(body):
    ids = body.get("ids", [])
    return 200, {"kind": "sources", "deleted": len(ids)}


@route("GET", "/stations")
def get_stations(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "stations", "page": page}


@route("GET", "/stations/archive")
def get_stations_archive(body):
    return 200, {"kind": "stations", "archived": True}


@route("POST", "/stations/archive")
def post_stations_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "stations", "archived": done}


@route("DELETE", "/stations")
def delete_stations(body):
    ids = body.get("ids", [])
    return 200, {"kind": "stations", "deleted": len(ids)}


@route("GET", "/stocks")
def get_stocks(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "stocks", "page": page}


@route("GET", "/stocks/archive")
def get_stocks_archive(body):
    return 200, {"kind": "stocks", "archived": True}


@route("POST", "/stocks/archive")
def post_stocks_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "stocks", "archived": done}


@route("DELETE", "/stocks")
def delete_stocks(body):
    ids = body.get("ids", [])
    return 200, {"kind": "stocks", "deleted": len(ids)}


@route("GET", "/stores")
def get_stores(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "stores", "page": page}


@route("GET", "/stores/archive")
def get_stores_archive(body):
    return 200, {"kind": "stores", "archived": True}


@route("POST", "/stores/archive")
def post_stores_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "stores", "archived": done}


@route("DELETE", "/stores")
def delete_stores(body):
    ids = body.get("ids", [])
    return 200, {"kind": "stores", "deleted": len(ids)}


@route("GET", "/streets")
def get_streets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "streets", "page": page}


@route("GET", "/streets/archive")
def get_streets_archive(body):
    return 200, {"kind": "streets", "archived": True}


@route("POST", "/streets/archive")
def post_streets_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "streets", "archived": done}


@route("DELETE", "/streets")
def delete_streets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "streets", "deleted": len(ids)}


@route("GET", "/suppliers")
def get_suppliers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "suppliers", "page": page}


@route("GET", "/suppliers/archive")
def get_suppliers_archive(body):
    return 200, {"kind": "suppliers", "archived": True}


@route("POST", "/suppliers/archive")
def post_suppliers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "suppliers", "archived": done}


@route("DELETE", "/suppliers")
def delete_suppliers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "suppliers", "deleted": len(ids)}


@route("GET", "/surveys")
def get_surveys(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "surveys", "page": page}


@route("GET", "/surveys/archive")
def get_surveys_archive(body):
    return 200, {"kind": "surveys", "archived": True}


@route("POST", "/surveys/archive")
def post_surveys_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "surveys", "archived": done}


@route("DELETE", "/surveys")
def delete_surveys(body):
    ids = body.get("ids", [])
    return 200, {"kind": "surveys", "deleted": len(ids)}


@route("GET", "/tables")
def get_tables(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tables", "page": page}


@route("GET", "/tables/archive")
def get_tables_archive(body):
    return 200, {"kind": "tables", "archived": True}


@route("POST", "/tables/archive")
def post_tables_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tables", "archived": done}


@route("DELETE", "/tables")
def delete_tables(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tables", "deleted": len(ids)}


@route("GET", "/tags")
def get_tags(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tags", "page": page}


@route("GET", "/tags/archive")
def get_tags_archive(body):
    return 200, {"kind": "tags", "archived": True}


@route("POST", "/tags/archive")
def post_tags_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tags", "archived": done}


@route("DELETE", "/tags")
def delete_tags(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tags", "deleted": len(ids)}


@route("GET", "/targets")
def get_targets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "targets", "page": page}


@route("GET", "/targets/archive")
def get_targets_archive(body):
    return 200, {"kind": "targets", "archived": True}


@route("POST", "/targets/archive")
def post_targets_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "targets", "archived": done}


@route("DELETE", "/targets")
def delete_targets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "targets", "deleted": len(ids)}


@route("GET", "/tariffs")
def get_tariffs(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tariffs", "page": page}


@route("GET", "/tariffs/archive")
def get_tariffs_archive(body):
    return 200, {"kind": "tariffs", "archived": True}


@route("POST", "/tariffs/archive")
def post_tariffs_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tariffs", "archived": done}


@route("DELETE", "/tariffs")
def delete_tariffs(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tariffs", "deleted": len(ids)}


@route("GET", "/tasks")
def get_tasks(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tasks", "page": page}


@route("GET", "/tasks/archive")
def get_tasks_archive(body):
    return 200, {"kind": "tasks", "archived": True}


@route("POST", "/tasks/archive")
def post_tasks_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tasks", "archived": done}


@route("DELETE", "/tasks")
def delete_tasks(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tasks", "deleted": len(ids)}


@route("GET", "/teams")
def get_teams(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "teams", "page": page}


@route("GET", "/teams/archive")
def get_teams_archive(body):
    return 200, {"kind": "teams", "archived": True}


@route("POST", "/teams/archive")
def post_teams_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "teams", "archived": done}


@route("DELETE", "/teams")
def delete_teams(body):
    ids = body.get("ids", [])
    return 200, {"kind": "teams", "deleted": len(ids)}


@route("GET", "/templates")
def get_templates(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "templates", "page": page}


@route("GET", "/templates/archive")
def get_templates_archive(body):
    return 200, {"kind": "templates", "archived": True}


@route("POST", "/templates/archive")
def post_templates_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "templates", "archived": done}


@route("DELETE", "/templates")
def delete_templates(body):
    ids = body.get("ids", [])
    return 200, {"kind": "templates", "deleted": len(ids)}


@route("GET", "/tenants")
def get_tenants(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tenants", "page": page}


@route("GET", "/tenants/archive")
def get_tenants_archive(body):
    return 200, {"kind": "tenants", "archived": True}


@route("POST", "/tenants/archive")
def post_tenants_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tenants", "archived": done}


@route("DELETE", "/tenants")
def delete_tenants(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tenants", "deleted": len(ids)}


@route("GET", "/terms")
def get_terms(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "terms", "page": page}


@route("GET", "/terms/archive")
def get_terms_archive(body):
    return 200, {"kind": "terms", "archived": True}


@route("POST", "/terms/archive")
def post_terms_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "terms", "archived": done}


@route("DELETE", "/terms")
def delete_terms(body):
    ids = body.get("ids", [])
    return 200, {"kind": "terms", "deleted": len(ids)}


@route("GET", "/tickets")
def get_tickets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tickets", "page": page}


@route("GET", "/tickets/archive")
def get_tickets_archive(body):
    return 200, {"kind": "tickets", "archived": True}


@route("POST", "/tickets/archive")
def post_tickets_archive(body):
    ids = body.get("ids", [])
    if not ids:
        return 400, {"error": "ids"}
    done = sorted(set(ids))
    return 202, {"kind": "tickets", "archived": done}


@route("DELETE", "/tickets")
def delete_tickets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tickets", "deleted": len(ids)}


@route("GET", "/tokens")
def get_tokens(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tokens", "page": page}


@route("GET", "/tokens/archive")
def get_tokens_archive(body):
    return 200, {"kind": "tokens", "archived": True}


@route("POST", "/tokens/archive")
def post_tokens_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tokens", "archived": done}


@route("DELETE", "/tokens")
def delete_tokens(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tokens", "deleted": len(ids)}


@route("GET", "/tours")
def get_tours(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "tours", "page": page}


@route("GET", "/tours/archive")
def get_tours_archive(body):
    return 200, {"kind": "tours", "archived": True}


@route("POST", "/tours/archive")
def post_tours_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "tours", "archived": done}


@route("DELETE", "/tours")
def delete_tours(body):
    ids = body.get("ids", [])
    return 200, {"kind": "tours", "deleted": len(ids)}


@route("GET", "/transfers")
def get_transfers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "transfers", "page": page}


@route("GET", "/transfers/archive")
def get_transfers_archive(body):
    return 200, {"kind": "transfers", "archived": True}


@route("POST", "/transfers/archive")
def post_transfers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "transfers", "archived": done}


@route("DELETE", "/transfers")
def delete_transfers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "transfers", "deleted": len(ids)}


@route("GET", "/units")
def get_units(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "units", "page": page}


@route("GET", "/units/archive")
def get_units_archive(body):
    return 200, {"kind": "units", "archived": True}


@route("POST", "/units/archive")
def post_units_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "units", "archived": done}


@route("DELETE", "/units")
def delete_units(body):
    ids = body.get("ids", [])
    return 200, {"kind": "units", "deleted": len(ids)}


@route("GET", "/users")
def get_users(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "users", "page": page}


@route("GET", "/users/archive")
def get_users_archive(body):
    return 200, {"kind": "users", "archived": True}


@route("POST", "/users/archive")
def post_users_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "users", "archived": done}


@route("DELETE", "/users")
def delete_users(body):
    ids = body.get("ids", [])
    return 200, {"kind": "users", "deleted": len(ids)}


@route("GET", "/vendors")
def get_vendors(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "vendors", "page": page}


@route("GET", "/vendors/archive")
def get_vendors_archive(body):
    return 200, {"kind": "vendors", "archived": True}


@route("POST", "/vendors/archive")
def post_vendors_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "vendors", "archived": done}


@route("DELETE", "/vendors")
def delete_vendors(body):
    ids = body.get("ids", [])
    return 200, {"kind": "vendors", "deleted": len(ids)}


@route("GET", "/visits")
def get_visits(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "visits", "page": page}


@route("GET", "/visits/archive")
def get_visits_archive(body):
    return 200, {"kind": "visits", "archived": True}


@route("POST", "/visits/archive")
def post_visits_archive(body):
    ids = body.get("ids", [])
    if not ids:
        return 400, {"error": "ids"}
    done = sorted(set(ids))
    return 202, {"kind": "visits", "archived": done}


@route("DELETE", "/visits")
def delete_visits(body):
    ids = body.get("ids", [])
    return 200, {"kind": "visits", "deleted": len(ids)}


@route("GET", "/vouchers")
def get_vouchers(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "vouchers", "page": page}


@route("GET", "/vouchers/archive")
def get_vouchers_archive(body):
    return 200, {"kind": "vouchers", "archived": True}


@route("POST", "/vouchers/archive")
def post_vouchers_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "vouchers", "archived": done}


@route("DELETE", "/vouchers")
def delete_vouchers(body):
    ids = body.get("ids", [])
    return 200, {"kind": "vouchers", "deleted": len(ids)}


@route("GET", "/wallets")
def get_wallets(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "wallets", "page": page}


@route("GET", "/wallets/archive")
def get_wallets_archive(body):
    return 200, {"kind": "wallets", "archived": True}


@route("POST", "/wallets/archive")
def post_wallets_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "wallets", "archived": done}


@route("DELETE", "/wallets")
def delete_wallets(body):
    ids = body.get("ids", [])
    return 200, {"kind": "wallets", "deleted": len(ids)}


@route("GET", "/warranties")
def get_warranties(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "warranties", "page": page}


@route("GET", "/warranties/archive")
def get_warranties_archive(body):
    return 200, {"kind": "warranties", "archived": True}


@route("POST", "/warranties/archive")
def post_warranties_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "warranties", "archived": done}


@route("DELETE", "/warranties")
def delete_warranties(body):
    ids = body.get("ids", [])
    return 200, {"kind": "warranties", "deleted": len(ids)}


@route("GET", "/zones")
def get_zones(body):
    page = int(body.get("page", 1))
    if page < 1:
        return 400, {"error": "page"}
    return 200, {"kind": "zones", "page": page}


@route("GET", "/zones/archive")
def get_zones_archive(body):
    return 200, {"kind": "zones", "archived": True}


@route("POST", "/zones/archive")
def post_zones_archive(body):
    ids = body.get("ids", [])
    done = sorted(set(ids))
    return 200, {"kind": "zones", "archived": done}


@route("DELETE", "/zones")
def delete_zones(body):
    ids = body.get("ids", [])
    return 200, {"kind": "zones", "deleted": len(ids)}
