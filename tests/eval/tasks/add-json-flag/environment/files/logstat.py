"""Counts lines, bytes and levels of log files."""
import argparse
import sys
from collections import Counter


class Stats:
    def __init__(self):
        self.lines = 0
        self.bytes = 0
        self.levels = Counter()

    def add(self, other):
        self.lines += other.lines
        self.bytes += other.bytes
        self.levels += other.levels

    def text(self):
        levels = "".join(f", {level} {count}" for level, count in sorted(self.levels.items()))
        return f"{self.lines} lines, {self.bytes} bytes{levels}"


def count(file, only=None):
    """Counts the lines of a file that is open in binary mode. The level is the first word."""
    stats = Stats()
    for line in file:
        level = line.decode("utf-8", "replace").split(" ")[0].strip()
        if only is not None and level != only:
            continue
        stats.lines += 1
        stats.bytes += len(line)
        if level.isupper():
            stats.levels[level] += 1
    return stats


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="logstat", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a log file; - is the standard input")
    parser.add_argument("--level", help="count only lines of this level")
    given = parser.parse_args(arguments)
    code = 0
    total = Stats()
    names = given.files or ["-"]
    for name in names:
        try:
            if name == "-":
                stats = count(sys.stdin.buffer, given.level)
            else:
                with open(name, "rb") as file:
                    stats = count(file, given.level)
        except OSError as error:
            print(f"logstat: {name}: {error.strerror}", file=sys.stderr)
            code = 1
            continue
        total.add(stats)
        print(f"{name}: {stats.text()}")
    if len(names) > 1:
        print(f"total: {total.text()}")
    return code


if __name__ == "__main__":
    sys.exit(main())
