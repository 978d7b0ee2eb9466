"""The floor below every call: a bare asyncio loop that answers each line with the same bytes."""

import asyncio
import sys


async def main() -> None:
    """Answer every line on stdin with the line given as the argument."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    answer = sys.argv[1].encode() + b"\n" if len(sys.argv) > 1 else None
    async for line in reader:
        writer.write(answer or line)
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
