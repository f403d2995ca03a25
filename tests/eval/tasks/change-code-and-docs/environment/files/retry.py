"""Calls functions again if they fail. docs/options.md explains the options."""
import time


def pauses(attempts=3, wait=0.5, factor=1):
    """Returns the pauses between calls, in seconds."""
    return [wait * factor**number for number in range(attempts - 1)]


def retry(function, attempts=3, wait=0.5, factor=1, catch=Exception, sleep=time.sleep):
    """Returns what the function returns, or raises its last exception."""
    for pause in pauses(attempts, wait, factor):
        try:
            return function()
        except catch:
            sleep(pause)
    return function()
