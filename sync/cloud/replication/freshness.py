"""Decide from timestamps alone whether the realtime channel proves that the local log is up to date.

It does if the channel was joined and ready before the last round began, no later notice is unanswered, and the server
gave a sign of life a moment ago. A notice names the head of the server's log; one that names no more than this device
has is the echo of its own push. (After a server was restored, heads are lower for a while; the next poll finds that.)
"""

from typing import Final, Literal

FRESH_SECONDS: Final = 8.0  # after a sign of life; busy heartbeats come every four seconds
RELIED_ON_SECONDS: Final = 60.0  # after the last call of `is_fresh`; a conversation is under way

ChannelState = Literal["off", "connecting", "joined"]


class ChannelFreshness:
    """The state of the channel. Times are seconds; `wall` is a clock that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self.state: ChannelState = "off"
        self._change_count = 0  # changes that only a later round can answer
        self._answered_count = 0
        self._announced_head: int | None = None  # the highest one, if all unanswered changes have named a head
        self._reached_seq = 0  # by the last round
        self._ready = False
        self._last_activity: tuple[float, float] | None = None  # monotonic and wall
        self._last_asked: float | None = None

    @property
    def is_joined(self) -> bool:
        return self.state == "joined"

    @property
    def has_unanswered(self) -> bool:
        """Whether there was a change that no round has answered."""
        return self._answered_count < self._change_count

    def set_state(self, state: ChannelState) -> bool:
        """Set the state of the channel. Return whether it changed."""
        changed, self.state = state != self.state, state
        if changed:
            self._ready, self._last_activity, self._reached_seq = False, None, 0
            self._change_count, self._announced_head = self._change_count + 1, None
        return changed

    def mark_ready(self) -> None:
        """The server sends all changes from now on: a round that begins now misses none."""
        self._ready = True
        self._change_count, self._announced_head = self._change_count + 1, None

    def note_server_change(self, head: int | None) -> None:
        """Note that the server's log has grown, to `head` if the notice names it."""
        if head is not None and head <= self._reached_seq:
            return
        heads_only = not self.has_unanswered or self._announced_head is not None
        self._change_count += 1
        self._announced_head = max(head, self._announced_head or 0) if head is not None and heads_only else None

    def note_activity(self, monotonic: float, wall: float) -> None:
        self._last_activity = (monotonic, wall)

    def begin_round(self) -> int:
        """Return a token for `end_round`."""
        return self._change_count

    def end_round(self, started_at: int, reached_seq: int) -> None:
        """A round has pulled up to `reached_seq`. It answers earlier changes, and later ones up to there."""
        self._reached_seq = reached_seq
        reached = self._announced_head is not None and self._announced_head <= reached_seq
        self._answered_count = self._change_count if reached else max(self._answered_count, started_at)

    def is_fresh(self, monotonic: float, wall: float) -> bool:
        """Whether the local log is known to be up to date."""
        self._last_asked = monotonic
        if not (self.is_joined and self._ready and self._last_activity is not None) or self.has_unanswered:
            return False
        return max(monotonic - self._last_activity[0], abs(wall - self._last_activity[1])) <= FRESH_SECONDS

    def is_relied_on(self, monotonic: float) -> bool:
        """Whether `is_fresh` was called lately: then frequent heartbeats are worth it."""
        return self._last_asked is not None and monotonic - self._last_asked <= RELIED_ON_SECONDS
