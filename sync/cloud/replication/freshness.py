"""Whether realtime vouches for what we hold: a decision about times and numbers, made without asking anybody.

Silence means "nothing new" only where it would have been broken: the channel stood and was fed from the database before
our last round began, no poke since then is unanswered, and somebody at the other end was alive a moment ago. A
half-open connection, a machine that slept, a project whose Realtime never says that it listens: none of them vouches.

A poke names a head; one that names no more than we hold is the echo of our own push. (A server that an administrator
sets back under a standing channel says lower numbers for a while: the next poll finds that, no poke does.)
"""

from typing import Final, Literal

FRESH_SECONDS: Final = 8.0  # seconds after a sign of life; a busy heart beats every four

RELIED_ON_SECONDS: Final = 60.0  # seconds after somebody asked; a conversation goes on

ChannelState = Literal["off", "connecting", "joined"]


class ChannelFreshness:
    """How the channel stands. Times are seconds, `wall` of a clock that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self.state: ChannelState = "off"
        self._change_count = 0  # how often something was heard that only a later round can answer
        self._answered_count = 0
        self._announced_head: int | None = (
            None  # the highest one named since, where pokes with a head are all that happened
        )
        self._reached_seq = 0  # where the last round brought us
        self._ready = False
        self._last_activity: tuple[float, float] | None = None  # monotonic and wall
        self._last_asked: float | None = None

    @property
    def is_joined(self) -> bool:
        return self.state == "joined"

    @property
    def has_unanswered(self) -> bool:
        """Whether something was heard that no round has answered."""
        return self._answered_count < self._change_count

    def set_state(self, state: ChannelState) -> bool:
        """Note the state of the channel; whether it is another one than before."""
        changed, self.state = state != self.state, state
        if changed:
            self._ready, self._last_activity, self._reached_seq = False, None, 0
            self._change_count, self._announced_head = self._change_count + 1, None
        return changed

    def mark_ready(self) -> None:
        """From now on the channel is fed: a round that begins now misses nothing."""
        self._ready = True
        self._change_count, self._announced_head = self._change_count + 1, None

    def note_server_change(self, head: int | None) -> None:
        """`head`: how far the server's log reaches, where the poke says so."""
        if head is not None and head <= self._reached_seq:
            return
        heads_only = not self.has_unanswered or self._announced_head is not None
        self._change_count += 1
        self._announced_head = max(head, self._announced_head or 0) if head is not None and heads_only else None

    def note_activity(self, monotonic: float, wall: float) -> None:
        self._last_activity = (monotonic, wall)

    def begin_round(self) -> int:
        """To be given back to `round_ended`."""
        return self._change_count

    def end_round(self, started_at: int, reached_seq: int) -> None:
        """A round brought us to `level`: it answers what was heard before it, and pokes during it that name no more."""
        self._reached_seq = reached_seq
        reached = self._announced_head is not None and self._announced_head <= reached_seq
        self._answered_count = self._change_count if reached else max(self._answered_count, started_at)

    def is_fresh(self, monotonic: float, wall: float) -> bool:
        self._last_asked = monotonic
        if not (self.is_joined and self._ready and self._last_activity is not None) or self.has_unanswered:
            return False
        return max(monotonic - self._last_activity[0], abs(wall - self._last_activity[1])) <= FRESH_SECONDS

    def is_relied_on(self, monotonic: float) -> bool:
        """Whether somebody has lately asked whether we vouch: then a sign of life is worth a message."""
        return self._last_asked is not None and monotonic - self._last_asked <= RELIED_ON_SECONDS
