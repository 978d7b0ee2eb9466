"""When realtime vouches for what we hold: only where silence would have been broken."""

from sync.cloud.standing import RELIED_ON_FOR, VOUCHES_FOR, Standing

NOW = 1000.0


def round_to(standing: Standing, level: int) -> None:
    standing.round_ended(standing.round_begins(), level)


def vouching(*, level: int = 7) -> Standing:
    """Joined, fed, level with the server, alive."""
    standing = Standing()
    standing.enter("connecting")
    standing.enter("joined")
    standing.made_ready()
    standing.heard(NOW, NOW)
    round_to(standing, level)
    return standing


def vouches(standing: Standing, *, monotonic: float = NOW, wall: float = NOW) -> bool:
    return standing.vouches(monotonic, wall)


def test_a_channel_that_stood_before_the_last_round_vouches() -> None:
    assert vouches(vouching())


def test_nothing_vouches_without_a_channel() -> None:
    standing = Standing()
    standing.heard(NOW, NOW)
    round_to(standing, 7)
    assert not vouches(standing)


def test_a_channel_that_never_says_that_it_is_fed_does_not_vouch() -> None:
    standing = Standing()
    standing.enter("joined")
    standing.heard(NOW, NOW)
    round_to(standing, 7)
    assert not vouches(standing)


def test_a_round_that_began_before_the_channel_was_fed_proves_nothing() -> None:
    standing = Standing()
    standing.enter("joined")
    standing.heard(NOW, NOW)
    began = standing.round_begins()
    standing.made_ready()
    standing.round_ended(began, 7)
    assert not vouches(standing)
    round_to(standing, 7)
    assert vouches(standing)


def test_a_poke_takes_it_back_until_a_round_has_answered() -> None:
    standing = vouching(level=7)
    standing.poked(8)
    assert standing.outstanding
    assert not vouches(standing)
    round_to(standing, 8)
    assert vouches(standing)


def test_a_poke_without_a_number_counts_as_news() -> None:
    standing = vouching(level=7)
    standing.poked(None)
    assert not vouches(standing)
    round_to(standing, 7)
    assert vouches(standing)


def test_the_echo_of_our_own_push_is_no_news() -> None:
    standing = vouching(level=7)
    standing.poked(7)
    assert not standing.outstanding
    assert vouches(standing)


def test_a_poke_during_a_round_is_answered_by_it_only_if_it_got_that_far() -> None:
    standing = vouching(level=7)
    began = standing.round_begins()
    standing.poked(8)
    standing.poked(9)
    standing.round_ended(began, 9)
    assert not standing.outstanding
    began = standing.round_begins()
    standing.poked(11)
    standing.poked(10)
    standing.round_ended(began, 10)
    assert standing.outstanding, "11 has not been seen"


def test_a_poke_without_a_number_during_a_round_is_not_answered_by_it() -> None:
    for first, then in ((None, 8), (8, None)):
        standing = vouching(level=7)
        began = standing.round_begins()
        standing.poked(first)
        standing.poked(then)
        standing.round_ended(began, 9)
        assert standing.outstanding


def test_a_poke_does_not_hide_that_the_channel_began_anew_during_the_round() -> None:
    standing = vouching(level=7)
    began = standing.round_begins()
    standing.made_ready()
    standing.poked(8)
    standing.round_ended(began, 9)
    assert standing.outstanding


def test_a_lost_channel_vouches_for_nothing_until_the_next_has_been_followed_by_a_round() -> None:
    standing = vouching()
    assert standing.enter("connecting")
    assert not vouches(standing)
    assert standing.enter("joined")
    assert not standing.enter("joined")
    standing.made_ready()
    standing.heard(NOW, NOW)
    assert not vouches(standing)
    round_to(standing, 7)
    assert vouches(standing)


def test_without_a_recent_sign_of_life_nothing_is_vouched_for() -> None:
    standing = vouching()
    late = NOW + VOUCHES_FOR + 0.1
    assert not vouches(standing, monotonic=late, wall=late)
    standing.heard(late, late)
    assert vouches(standing, monotonic=late, wall=late)


def test_a_machine_that_slept_does_not_vouch_though_its_monotonic_clock_stood_still() -> None:
    assert not vouches(vouching(), wall=NOW + 3600.0)


def test_it_is_relied_on_for_a_while_after_somebody_asked() -> None:
    standing = vouching()
    assert not standing.relied_on(NOW)
    vouches(standing)
    assert standing.relied_on(NOW + RELIED_ON_FOR)
    assert not standing.relied_on(NOW + RELIED_ON_FOR + 1)
