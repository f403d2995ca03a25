"""Reads a trace of strace(1): system calls of one process between two times."""

import re
from collections import Counter

LINE = re.compile(r"(\d+) +(\d+\.\d+) (?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
# Calls whose number depends on which thread runs first, and on the allocator.
WAITS = {"futex", "epoll_wait", "epoll_pwait", "epoll_pwait2", "sched_yield", "restart_syscall", "clock_nanosleep", "rt_sigprocmask",
         "mprotect", "madvise", "mmap", "munmap", "brk", "exit", "set_robust_list", "rseq", "prctl", "sigaltstack", "sched_getaffinity", "gettid"}
LOOKUPS = {"open", "openat", "openat2", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"}
# A page of the log is written after a header of 24 bytes, whose second word is not 0 in the last page of a transaction.
HEADER = re.compile(r'\d+, "(?:\\x..){4}((?:\\x..){4})(?:\\x..){16}", 24, ')
UNFINISHED = "<unfinished ...>"


def counts(path, process, begin, end):
    """Returns the calls of a process and of those it started: (own counters, counters of children)."""
    own, started = Counter(), Counter()
    pending, threads = {}, {process}
    with open(path, errors="replace") as lines:
        for line in lines:
            found = LINE.match(line)
            if not found:
                continue
            thread, time, resumed, name, rest = int(found[1]), float(found[2]), found[3], found[4], found[5]
            if resumed:
                if resumed in ("clone", "clone3"):
                    add_thread(threads, pending.pop(thread, "") + rest, thread)
                continue
            if name in ("clone", "clone3"):
                pending[thread] = rest
                if UNFINISHED not in rest:
                    add_thread(threads, rest, thread)
            if not begin <= time <= end:
                continue
            if thread in threads:
                count(own, name, rest)
            else:
                started[name] += 1
    return own, started


def add_thread(threads, call, creator):
    created = re.search(r"\) = (\d+)", call)
    if created and creator in threads and "CLONE_THREAD" in call:
        threads.add(int(created[1]))


def count(counters, name, rest):
    if name in WAITS or is_wake_up(name, rest):
        return
    counters["calls"] += 1
    # A file that is already open is described, not looked up.
    if name in LOOKUPS and "AT_EMPTY_PATH" not in rest:
        counters["lookups"] += 1
    if name in ("fsync", "fdatasync"):
        counters["fsyncs"] += 1
    if name == "pwrite64" and (header := HEADER.match(rest)):
        counters["pages"] += 1
        counters["transactions"] += header[1] != r"\x00" * 4


def is_wake_up(name, rest):
    """Returns true for a word of an eventfd, and a byte of a pipe between threads."""
    return name in ("write", "read") and re.search(r', (?:8|512)\)? *(?:=|<unf)|, "\\x01(\\x00){7}"', rest) is not None
