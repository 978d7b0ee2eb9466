"""When the realtime channel proves that the local log is up to date."""

from sync.cloud.replication.freshness import FRESH_SECONDS, RELIED_ON_SECONDS, ChannelFreshness

NOW = 1000.0


def finish_round(standing: ChannelFreshness, level: int) -> None:
    standing.end_round(standing.begin_round(), level)


def fresh_channel(*, level: int = 7) -> ChannelFreshness:
    """Joined, ready, caught up, and with a recent sign of life."""
    standing = ChannelFreshness()
    standing.set_state("connecting")
    standing.set_state("joined")
    standing.mark_ready()
    standing.note_activity(NOW, NOW)
    finish_round(standing, level)
    return standing


def is_fresh(standing: ChannelFreshness, *, monotonic: float = NOW, wall: float = NOW) -> bool:
    return standing.is_fresh(monotonic, wall)


def test_a_channel_that_stood_before_the_last_round_vouches() -> None:
    assert is_fresh(fresh_channel())


def test_nothing_vouches_without_a_channel() -> None:
    standing = ChannelFreshness()
    standing.note_activity(NOW, NOW)
    finish_round(standing, 7)
    assert not is_fresh(standing)


def test_a_channel_that_never_says_that_it_is_fed_does_not_vouch() -> None:
    standing = ChannelFreshness()
    standing.set_state("joined")
    standing.note_activity(NOW, NOW)
    finish_round(standing, 7)
    assert not is_fresh(standing)


def test_a_round_that_began_before_the_channel_was_fed_proves_nothing() -> None:
    standing = ChannelFreshness()
    standing.set_state("joined")
    standing.note_activity(NOW, NOW)
    began = standing.begin_round()
    standing.mark_ready()
    standing.end_round(began, 7)
    assert not is_fresh(standing)
    finish_round(standing, 7)
    assert is_fresh(standing)


def test_a_poke_takes_it_back_until_a_round_has_answered() -> None:
    standing = fresh_channel(level=7)
    standing.note_server_change(8)
    assert standing.has_unanswered
    assert not is_fresh(standing)
    finish_round(standing, 8)
    assert is_fresh(standing)


def test_a_poke_without_a_number_counts_as_news() -> None:
    standing = fresh_channel(level=7)
    standing.note_server_change(None)
    assert not is_fresh(standing)
    finish_round(standing, 7)
    assert is_fresh(standing)


def test_the_echo_of_our_own_push_is_no_news() -> None:
    standing = fresh_channel(level=7)
    standing.note_server_change(7)
    assert not standing.has_unanswered
    assert is_fresh(standing)


def test_a_poke_during_a_round_is_answered_by_it_only_if_it_got_that_far() -> None:
    standing = fresh_channel(level=7)
    began = standing.begin_round()
    standing.note_server_change(8)
    standing.note_server_change(9)
    standing.end_round(began, 9)
    assert not standing.has_unanswered
    began = standing.begin_round()
    standing.note_server_change(11)
    standing.note_server_change(10)
    standing.end_round(began, 10)
    assert standing.has_unanswered, "11 has not been seen"


def test_a_poke_without_a_number_during_a_round_is_not_answered_by_it() -> None:
    for first, then in ((None, 8), (8, None)):
        standing = fresh_channel(level=7)
        began = standing.begin_round()
        standing.note_server_change(first)
        standing.note_server_change(then)
        standing.end_round(began, 9)
        assert standing.has_unanswered


def test_a_poke_does_not_hide_that_the_channel_was_replaced_during_the_round() -> None:
    standing = fresh_channel(level=7)
    began = standing.begin_round()
    standing.mark_ready()
    standing.note_server_change(8)
    standing.end_round(began, 9)
    assert standing.has_unanswered


def test_a_lost_channel_vouches_for_nothing_until_the_next_has_been_followed_by_a_round() -> None:
    standing = fresh_channel()
    assert standing.set_state("connecting")
    assert not is_fresh(standing)
    assert standing.set_state("joined")
    assert not standing.set_state("joined")
    standing.mark_ready()
    standing.note_activity(NOW, NOW)
    assert not is_fresh(standing)
    finish_round(standing, 7)
    assert is_fresh(standing)


def test_without_a_recent_sign_of_life_nothing_is_vouched_for() -> None:
    standing = fresh_channel()
    late = NOW + FRESH_SECONDS + 0.1
    assert not is_fresh(standing, monotonic=late, wall=late)
    standing.note_activity(late, late)
    assert is_fresh(standing, monotonic=late, wall=late)


def test_a_machine_that_slept_does_not_vouch_though_its_monotonic_clock_stood_still() -> None:
    assert not is_fresh(fresh_channel(), wall=NOW + 3600.0)


def test_it_is_relied_on_for_a_while_after_a_question() -> None:
    standing = fresh_channel()
    assert not standing.is_relied_on(NOW)
    is_fresh(standing)
    assert standing.is_relied_on(NOW + RELIED_ON_SECONDS)
    assert not standing.is_relied_on(NOW + RELIED_ON_SECONDS + 1)
