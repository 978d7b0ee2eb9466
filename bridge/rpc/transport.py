"""The transport protocol: what a transport must do, and what it may expect of its handler.

Everything here happens on the event loop's thread. No method blocks; only `flush` waits.
"""

from typing import Final, Protocol

HIGH_WATER: Final = 4 * 1024 * 1024  # bytes held for one client, both ways, above which its next request is not read
LOW_WATER: Final = 256 * 1024  # bytes unwritten below which reading goes on


class TransportHandler(Protocol):
    """The receiver of a wire's events."""

    def data_received(self, chunk: bytes) -> None:
        """Bytes came. Not called while reading is paused."""
        ...

    def eof_received(self) -> None:
        """No byte will come any more; answers may still be read."""
        ...

    def resume_writing(self) -> None:
        """The unwritten bytes fell to `LOW_WATER` or below."""
        ...

    def connection_lost(self) -> None:
        """The peer reads no more answers; later writes are ignored."""
        ...


class Transport(Protocol):
    """A two-way stream of bytes."""

    @property
    def unwritten(self) -> int:
        """Bytes given to `write` that the peer has not taken."""
        ...

    def start(self, handler: TransportHandler) -> None:
        """Begin to deliver. Once."""
        ...

    def set_reading(self, *, enabled: bool) -> None:
        """Deliver further chunks, or leave them where they are so that the peer has to wait."""
        ...

    def write(self, data: bytes) -> None:
        """Hand over bytes in order; kept while the peer does not take them."""
        ...

    async def flush(self) -> None:
        """Wait until the peer has taken everything or is lost."""
        ...

    def close(self) -> None:
        """Stop delivering and let go of what the wire holds."""
        ...
