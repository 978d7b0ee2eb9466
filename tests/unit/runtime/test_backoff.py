"""The wait doubles from base to limit, for any number of failures, and jitter only shortens it."""

from hypothesis import given
from hypothesis import strategies as st

from sync.runtime.backoff import Backoff


def test_the_wait_doubles_until_it_reaches_the_limit() -> None:
    backoff = Backoff(base=0.5, limit=30.0)
    assert [backoff.seconds(failures) for failures in range(9)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_days_without_a_network_do_not_overflow() -> None:
    """2.0**1024 is an OverflowError: the loop reaches so many failures in two days."""
    assert Backoff(base=1.0, limit=30.0).seconds(5_000) == 30.0


@given(failures=st.integers(-5, 10**6), jitter=st.floats(0, 1), fraction=st.floats(0, 1))
def test_jitter_takes_away_at_most_its_part(failures: int, jitter: float, fraction: float) -> None:
    whole = Backoff(base=1.0, limit=30.0).seconds(failures)
    wait = Backoff(base=1.0, limit=30.0, jitter=jitter).seconds(failures, fraction)
    assert whole * (1 - jitter) - 1e-9 <= wait <= whole
