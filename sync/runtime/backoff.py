"""Exponential backoff with jitter: how long to wait after failures in a row."""

from typing import Final

import msgspec

MAX_DOUBLINGS: Final = 64  # beyond every limit; a float overflows at 1,024


class Backoff(msgspec.Struct, frozen=True):
    """Wait `base` seconds after the first failure, twice as long after each further one, and at most `limit`.

    `jitter` is the random part of each wait: 0 for none, 1 for anything between nothing and the whole wait.
    """

    base: float
    limit: float
    jitter: float = 0.0

    def seconds(self, failures: int, random_fraction: float = 1.0) -> float:
        """The wait after so many failures in a row; `random_fraction` is between 0 and 1."""
        if failures < 1:
            return 0.0
        whole = min(self.limit, self.base * 2.0 ** min(failures - 1, MAX_DOUBLINGS))
        return whole * (1.0 - self.jitter * (1.0 - random_fraction))
