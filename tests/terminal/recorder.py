"""A command on a pseudo terminal, whose output is recorded with the sizes of the terminal."""

import base64
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

# Maximum time in seconds of one wait, and until a key is pressed again.
WAIT = 60
AGAIN = 1
FRAME_END = b"\x1b[?2026l"


class Recorder:
    """A command on a pseudo terminal."""

    def __init__(self, command, cwd, environment, rows, columns):
        self.output = bytearray()
        # Bytes, sizes and snapshots in their order.
        self.parts = []
        self.first_size = self.rows, self.columns = rows, columns
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            # The command must not start before the terminal has its size.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], command, environment)

    def read(self, seconds, size=1 << 12):
        """Reads once. Returns None if there was no output in time, False at its end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        try:
            data = os.read(self.fd, size)
        except OSError:
            # EIO: no process has the terminal open.
            return False
        if data:
            self.output += data
            self.parts.append(data)
        return bool(data)

    def until(self, words, start=0, seconds=WAIT, size=1 << 12, after_read=lambda: None):
        """Reads until the output after `start` bytes contains the words, or matches them. Returns
        their end."""
        pattern = words if isinstance(words, re.Pattern) else re.compile(re.escape(words))
        deadline = time.monotonic() + seconds
        while not (found := pattern.search(self.output, start)):
            left = deadline - time.monotonic()
            if left <= 0 or self.read(left, size) is False:
                raise AssertionError(f"no {words!r} in {bytes(self.output[-1500:])!r}")
            after_read()
        return found.end()

    def keys(self, text):
        os.write(self.fd, text.encode())

    def key_until(self, key, words, start):
        """Presses a key until the output after `start` bytes contains the words: crossterm 0.29
        reads a key that arrives together with a new size only when the next key arrives."""
        for _ in range(WAIT // AGAIN):
            self.keys(key)
            try:
                return self.until(words, start, AGAIN)
            except AssertionError as error:
                last = error
        raise last

    def resize(self, rows, columns):
        """Changes the size, where the cursor is at the start of a row or a frame ends: xterm.js
        cuts off the line of the cursor when the terminal gets narrower, whoever wrote it. The output
        behind that place is drawn in the new size, as is output that a terminal has not yet read.
        Returns false without such a place in the last part."""
        last = self.parts[-1] if self.parts and isinstance(self.parts[-1], bytes) else b""
        at = max(last.rfind(mark) + len(mark) if mark in last else 0 for mark in (b"\r\n", FRAME_END))
        if at > 0:
            self.parts[-1:] = [last[:at]]
            self.resize_now(rows, columns)
            self.parts.append(last[at:])
        return at > 0

    def resize_now(self, rows, columns):
        """Changes the size behind the output so far."""
        self.parts.append({"rows": rows, "columns": columns})
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def snapshot(self):
        self.parts.append({"snapshot": True})

    def recording(self):
        """Returns the recording for xterm.mjs."""
        parts = [
            {"bytes": base64.b64encode(part).decode()} if isinstance(part, bytes) else part
            for part in self.parts
        ]
        rows, columns = self.first_size
        return {"rows": rows, "columns": columns, "parts": parts}

    def end(self):
        """Reads to the end of the output. Returns the exit code."""
        deadline = time.monotonic() + WAIT
        while (read := self.read(max(0, deadline - time.monotonic()))) is not False:
            if read is None:
                raise AssertionError("the command does not end")
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
