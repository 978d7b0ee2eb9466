"""Which errors the faults of a run explain."""

import pytest

from tests.simulation.checks.expected_errors import QuietTail, is_explained
from tests.simulation.workload.plan import KINDS


@pytest.mark.parametrize(
    "action", ["update key-3", "settle", "note", "load 800", "search w1x", "forget w1x", "archive"]
)
@pytest.mark.parametrize("kind", ["cloud_unavailable", "login_required", "device_revoked", "invalid_input"])
def test_local_actions_never_fail_because_of_the_cloud(action: str, kind: str) -> None:
    assert not is_explained(action, kind, KINDS, calm=QuietTail.NOT_YET, is_guest=True)


def test_a_disk_fault_explains_its_errors_while_it_lasts() -> None:
    assert is_explained("update key-3", "storage_full", {"full"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_full", {"clock"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_read_only", {"full"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("update key-3", "storage_full", KINDS, calm=QuietTail.BEGUN, is_guest=False)


def test_a_network_fault_explains_nothing_after_it_ends_but_a_revoked_device_stays_revoked() -> None:
    assert is_explained("sync", "cloud_unavailable", {"loss"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert is_explained("sync", "cloud_unavailable", {"loss"}, calm=QuietTail.BEGUN, is_guest=False)
    assert not is_explained("sync", "cloud_unavailable", KINDS, calm=QuietTail.COMPLETE, is_guest=False)
    assert is_explained("sync", "device_revoked", {"revoke"}, calm=QuietTail.COMPLETE, is_guest=False)
    assert not is_explained("sync", "device_revoked", {"loss"}, calm=QuietTail.COMPLETE, is_guest=False)


def test_only_a_copied_database_ends_a_connection_of_two_devices() -> None:
    assert is_explained("lan", "device_forked", {"clone"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("lan", "device_forked", {"loss"}, calm=QuietTail.NOT_YET, is_guest=False)
    assert not is_explained("lan", "cloud_unavailable", KINDS, calm=QuietTail.NOT_YET, is_guest=False)


def test_a_guest_cannot_sync() -> None:
    assert is_explained("sync", "login_required", (), calm=QuietTail.COMPLETE, is_guest=True)
    assert not is_explained("sync", "login_required", (), calm=QuietTail.COMPLETE, is_guest=False)
