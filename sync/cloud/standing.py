"""Whether realtime vouches for what we hold: a decision about times and numbers, made without asking anybody.

Silence means "nothing new" only where it would have been broken: the channel stood and was fed from the database before
our last round began, no poke since then is unanswered, and somebody at the other end was alive a moment ago. A
half-open connection, a machine that slept, a project whose Realtime never says that it listens: none of them vouches.

A poke names a head; one that names no more than we hold is the echo of our own push. (A server that an administrator
sets back under a standing channel says lower numbers for a while: the next poll finds that, no poke does.)
"""

from typing import Final, Literal

VOUCHES_FOR: Final = 8.0  # seconds after a sign of life; a busy heart beats every four

RELIED_ON_FOR: Final = 60.0  # seconds after somebody asked; a conversation goes on

ChannelState = Literal["off", "connecting", "joined"]


class Standing:
    """How the channel stands. Times are seconds, `wall` of a clock that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self.state: ChannelState = "off"
        self._happened = 0  # how often something was heard that only a later round can answer
        self._answered = 0
        self._head: int | None = None  # the highest one named since, where pokes with a head are all that happened
        self._level = 0  # where the last round brought us
        self._ready = False
        self._alive: tuple[float, float] | None = None  # monotonic and wall
        self._relied: float | None = None

    @property
    def joined(self) -> bool:
        return self.state == "joined"

    @property
    def outstanding(self) -> bool:
        """Whether something was heard that no round has answered."""
        return self._answered < self._happened

    def enter(self, state: ChannelState) -> bool:
        """Note the state of the channel; whether it is another one than before."""
        changed, self.state = state != self.state, state
        if changed:
            self._ready, self._alive, self._level = False, None, 0
            self._happened, self._head = self._happened + 1, None
        return changed

    def made_ready(self) -> None:
        """From now on the channel is fed: a round that begins now misses nothing."""
        self._ready = True
        self._happened, self._head = self._happened + 1, None

    def poked(self, head: int | None) -> None:
        """`head`: how far the server's log reaches, where the poke says so."""
        if head is not None and head <= self._level:
            return
        heads_only = not self.outstanding or self._head is not None
        self._happened += 1
        self._head = max(head, self._head or 0) if head is not None and heads_only else None

    def heard(self, monotonic: float, wall: float) -> None:
        self._alive = (monotonic, wall)

    def round_begins(self) -> int:
        """To be given back to `round_ended`."""
        return self._happened

    def round_ended(self, began: int, level: int) -> None:
        """A round brought us to `level`: it answers what was heard before it, and pokes during it that name no more."""
        self._level = level
        reached = self._head is not None and self._head <= level
        self._answered = self._happened if reached else max(self._answered, began)

    def vouches(self, monotonic: float, wall: float) -> bool:
        self._relied = monotonic
        if not (self.joined and self._ready and self._alive is not None) or self.outstanding:
            return False
        return max(monotonic - self._alive[0], abs(wall - self._alive[1])) <= VOUCHES_FOR

    def relied_on(self, monotonic: float) -> bool:
        """Whether somebody has lately asked whether we vouch: then a sign of life is worth a message."""
        return self._relied is not None and monotonic - self._relied <= RELIED_ON_FOR
