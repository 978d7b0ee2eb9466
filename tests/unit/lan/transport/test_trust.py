"""Who may connect."""

import pytest

from sync.lan.transport.trust import RefusalCause, trust_list

OWN, B, C, D = "ed25519:own", "ed25519:b", "ed25519:c", "ed25519:d"
LIST = trust_list(OWN, {OWN: "device-a", B: "device-b", C: "device-c"}, {"device-c": None, "device-d": D})


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (B, None),
        (OWN, RefusalCause.COPY),
        (C, RefusalCause.REVOKED),
        (D, RefusalCause.REVOKED),
        ("ed25519:x", RefusalCause.STRANGER),
        (None, RefusalCause.STRANGER),
    ],
)
def test_only_a_listed_device_that_is_not_revoked_may_connect(key: str | None, cause: RefusalCause | None) -> None:
    assert LIST.refusal_of(key) is cause


def test_a_revoked_key_is_revoked_even_where_it_is_still_listed() -> None:
    assert trust_list(OWN, {B: "device-b"}, {"device-b": B}).trusted == {}


def test_known_keys_pass_the_handshake_so_that_a_refusal_names_its_device() -> None:
    assert LIST.known_keys == {OWN, B, C, D}
    assert LIST.device_of(D) == "device-d"
    assert LIST.device_of("ed25519:x") == ""
