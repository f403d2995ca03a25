"""Runs `nuncio serve` behind a proxy that cuts event streams: `python3 lossy_server.py NUNCIO serve …`. Prints the proxy's URL as nuncio
prints its own. The first streams are reset after the sizes of CUTS, mostly inside a frame; later ones are complete. Writes the number of
cut streams to the file that $LOSSY_SERVER_CUTS names, and exits as nuncio does."""

import asyncio
import os
import re
import signal
import sys

CUTS = [300, 700, 1100, 500, 900]


class Proxy:
    def __init__(self, port):
        self.port, self.made = port, 0

    async def serve(self, reader, writer):
        """Forwards one connection, on which a client may send several requests."""
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.port)
        cut = {"after": None}

        async def requests():
            while data := await reader.read(65536):
                if re.match(rb"GET /v1/sessions/[^/ ]+/events[? ]", data) and self.made < len(CUTS):
                    cut["after"] = CUTS[self.made]
                    self.made += 1
                upstream_writer.write(data)
                await upstream_writer.drain()

        async def answers():
            while data := await upstream_reader.read(65536):
                after = cut["after"]
                if after is not None and len(data) >= after:
                    writer.write(data[:after])
                    await writer.drain()
                    return
                if after is not None:
                    cut["after"] = after - len(data)
                writer.write(data)
                await writer.drain()

        sides = [asyncio.create_task(requests()), asyncio.create_task(answers())]
        try:
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for side in sides:
                side.cancel()
            await asyncio.gather(*sides, return_exceptions=True)
            upstream_writer.close()
            writer.close()


async def main(command):
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.terminate)
    line = (await server.stdout.readline()).decode()
    proxy = Proxy(int(line.rsplit(":", 1)[1]))
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        print(f"nuncio listens on http://127.0.0.1:{port}", flush=True)
        code = await server.wait()
    with open(os.environ["LOSSY_SERVER_CUTS"], "w") as file:
        file.write(str(proxy.made))
    return code


code = asyncio.run(main(sys.argv[1:]))
# Python 3.12 waits for open connections when it closes a listener; here they are of no use any more.
os._exit(code)
