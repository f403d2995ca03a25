from crm.people import fetch_org, fetch_usr, fetch_usr_log

__all__ = ["fetch_org", "fetch_usr", "fetch_usr_log"]
