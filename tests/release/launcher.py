"""The npm launcher: `launcher.py COMMAND execve|spawn` checks that it passes arguments, exit codes, input, output and signals."""

import os
import signal
import subprocess
import sys

COMMAND, MEANS = sys.argv[1:]

ran = subprocess.run([COMMAND, "schema", "no such name"], capture_output=True, text=True, timeout=60)
assert ran.returncode == 2 and '"no such name"' in ran.stderr and not ran.stdout, ran
assert "Warning" not in ran.stderr, ran

for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
    serving = subprocess.Popen([COMMAND, "serve", "--http", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    first = serving.stdout.readline()
    assert first, f"no output, exit code {serving.wait(10)}"
    is_nuncio = os.readlink(f"/proc/{serving.pid}/exe").endswith("/bin/nuncio")
    assert is_nuncio == (MEANS == "execve"), (MEANS, os.readlink(f"/proc/{serving.pid}/exe"))
    serving.send_signal(number)
    rest = serving.communicate(timeout=30)[0]
    # The same as nuncio's own.
    assert serving.returncode in (0, -number), (number, serving.returncode, first, rest)
