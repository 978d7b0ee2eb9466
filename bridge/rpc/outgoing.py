"""What leaves: answers, answers of batches, notifications; framed as the peer wants them.

Decision that lives here
    * Notifications are hints. While nobody has spoken yet (the framing is unknown) or the client does not read, the
      newest per method is kept and said later, so they cannot grow us either.
"""

import logging
from typing import Final

from bridge.methods.failures import failure
from bridge.rpc import messages
from bridge.rpc.frames import Frames, encode_frame
from bridge.rpc.job import Batch
from bridge.rpc.wire import HIGH_WATER, Wire
from sync.errors import place_of

# bytes of one answer array, which is held here until its last answer is there
BATCH_ANSWER_LIMIT: Final = 16 * 1024 * 1024

_log: Final = logging.getLogger("xiaobai.rpc")

_TOO_LARGE: Final = failure(
    "answer_too_large", "the answers of this batch are too large for one frame", "Send this call by itself."
)


class Outgoing:
    """The speaking half of a connection."""

    def __init__(self, wire: Wire, frames: Frames) -> None:
        self._wire = wire
        self._frames = frames  # knows the framing as soon as the peer has spoken
        self._collected = 0  # bytes of answers that wait for the rest of their batch
        self._unsaid: dict[str, bytes] = {}
        self.lost = False  # nobody reads any more

    @property
    def held(self) -> int:
        """Bytes kept for the peer."""
        return self._collected + self._wire.unwritten

    def has_room(self) -> bool:
        return self.lost or self._wire.unwritten <= HIGH_WATER

    def notify(self, method: str, params: object = None, /) -> None:
        """Tell the client something, now or when there is room. Never blocks, never fails."""
        try:
            payload = messages.encode_notification(method, params)
        except (TypeError, ValueError) as error:
            _log.error("notification %s is not JSON: %s", method, place_of(error))
            return
        self._unsaid.pop(method, None)
        self._unsaid[method] = payload
        self.say_unsaid()

    def say_unsaid(self) -> None:
        """Say the notifications that had to wait, as far as there is room."""
        while self._unsaid and self._frames.framing is not None and self.has_room():
            self._write(self._unsaid.pop(next(iter(self._unsaid))))

    def answer(self, id_: bytes, message: bytes, batch: Batch | None) -> None:
        """Say it, or keep it until the batch it belongs to is complete."""
        if batch is None:
            self._write(message)
            return
        if batch.size + len(message) > BATCH_ANSWER_LIMIT:
            message = messages.encode_failure(id_, _TOO_LARGE)
        batch.answers.append(message)
        batch.size += len(message)
        batch.missing -= 1
        self._collected += len(message)
        if not batch.missing:
            self._collected -= batch.size
            self._write(messages.encode_batch(batch.answers))

    def _write(self, payload: bytes) -> None:
        if not self.lost:
            self._wire.write(encode_frame(payload, self._frames.framing))
