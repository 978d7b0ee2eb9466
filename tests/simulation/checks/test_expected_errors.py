"""Which errors a history excuses."""

import pytest

from tests.simulation.checks.expected_errors import QuietTail, is_explained
from tests.simulation.workload.plan import KINDS


@pytest.mark.parametrize("act", ["update key-3", "settle", "note", "load 800", "search w1x", "forget w1x", "archive"])
@pytest.mark.parametrize("kind", ["cloud_unavailable", "login_required", "device_revoked", "invalid_input"])
def test_what_a_person_does_on_his_machine_never_fails_because_of_the_cloud(act: str, kind: str) -> None:
    assert not is_explained(act, kind, KINDS, calm=QuietTail.NOT_YET, is_guest=True)


def test_a_disk_excuses_what_it_does_and_for_as_long_as_it_does() -> None:
    assert is_explained("update key-3", "storage_full", {"full"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_full", {"clock"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_read_only", {"full"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_full", KINDS, calm=QuietTail.BEGUN, is_guest=False)


def test_a_line_excuses_no_silence_once_it_is_mended_but_a_device_that_was_shut_out_stays_so() -> None:
    assert is_explained("sync", "cloud_unavailable", {"loss"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert is_explained("sync", "cloud_unavailable", {"loss"}, calm=QuietTail.BEGUN, is_guest=False)
    assert not is_explained("sync", "cloud_unavailable", KINDS, calm=QuietTail.COMPLETE, is_guest=False)
    assert is_explained("sync", "device_revoked", {"revoke"}, calm=QuietTail.COMPLETE, is_guest=False)
    assert not is_explained("sync", "device_revoked", {"loss"}, calm=QuietTail.COMPLETE, is_guest=False)


def test_nobody_who_is_not_logged_in_can_sync() -> None:
    assert is_explained("sync", "login_required", (), calm=QuietTail.COMPLETE, is_guest=True)
    assert not is_explained("sync", "login_required", (), calm=QuietTail.COMPLETE, is_guest=False)
