"""What leaves: answers, answers of batches, notifications, requests to the client; framed as the peer wants them.

Notifications are hints: before the first message (the framing is unknown), and while the client does not read, only the
newest of each method is kept and sent later, so they take no memory without bound.
"""

import logging
from typing import Final

from bridge.api.errors import rpc_error
from bridge.rpc import messages
from bridge.rpc.call_state import BatchState
from bridge.rpc.framing import FrameDecoder, encode_frame
from bridge.rpc.transport import HIGH_WATER, Transport
from sync.errors import location_of

# bytes of one answer array, which is held here until its last answer is there
MAX_BATCH_ANSWER_BYTES: Final = 16 * 1024 * 1024

_log: Final = logging.getLogger("xiaobai.rpc")

_TOO_LARGE: Final = rpc_error(
    "answer_too_large", "the answers of this batch are too large for one frame", "Send this call by itself."
)


class ResponseWriter:
    """The speaking half of a connection."""

    def __init__(self, transport: Transport, frame_decoder: FrameDecoder) -> None:
        self._transport = transport
        self._frame_decoder = frame_decoder  # knows the framing as soon as the peer has spoken
        self._batched_bytes = 0  # bytes of answers that wait for the rest of their batch
        self._pending_notifications: dict[str, bytes] = {}
        self.connection_lost = False  # the client no longer reads

    @property
    def held_bytes(self) -> int:
        """Bytes kept for the peer."""
        return self._batched_bytes + self._transport.unwritten

    def can_write(self) -> bool:
        return self.connection_lost or self._transport.unwritten <= HIGH_WATER

    def notify(self, method: str, params: object = None, /) -> None:
        """Send a notification, now or when there is room. Never blocks, never fails."""
        try:
            payload = messages.encode_notification(method, params)
        except (TypeError, ValueError) as error:
            _log.error("notification %s is not JSON: %s", method, location_of(error))
            return
        self._pending_notifications.pop(method, None)
        self._pending_notifications[method] = payload
        self.flush_notifications()

    def send_request(self, id_: str, method: str, params: object) -> bool:
        """Send a request to the client; False if it does not read now. Raises TypeError if it is not JSON."""
        if self.connection_lost or self._frame_decoder.framing is None or not self.can_write():
            return False
        self._write(messages.encode_request(id_, method, params))
        return True

    def flush_notifications(self) -> None:
        """Send the waiting notifications while there is room."""
        while self._pending_notifications and self._frame_decoder.framing is not None and self.can_write():
            self._write(self._pending_notifications.pop(next(iter(self._pending_notifications))))

    def answer(self, id_: bytes, message: bytes, batch: BatchState | None) -> None:
        """Say it, or keep it until the batch it belongs to is complete."""
        if batch is None:
            self._write(message)
            return
        if batch.answer_bytes + len(message) > MAX_BATCH_ANSWER_BYTES:
            message = messages.encode_error(id_, _TOO_LARGE)
        batch.answers.append(message)
        batch.answer_bytes += len(message)
        batch.unanswered -= 1
        self._batched_bytes += len(message)
        if not batch.unanswered:
            self._batched_bytes -= batch.answer_bytes
            self._write(messages.encode_batch(batch.answers))

    def _write(self, payload: bytes) -> None:
        if not self.connection_lost:
            self._transport.write(encode_frame(payload, self._frame_decoder.framing))
