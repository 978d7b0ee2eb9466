import pytest

from sync.errors import InvalidInput
from sync.lan.pairing.code import Invitation, invitation_uri, new_code, parse_invitation, readable_code


@pytest.mark.parametrize(
    "text", ["01234567", "0123 4567", " 0123-4567 ", "０１２３　４５６７", "0 1 2 3 4 5 6 7"], ids=ascii
)  # fmt: skip
def test_a_code_is_read_as_people_write_it(text: str) -> None:
    assert parse_invitation(text) == Invitation("01234567")


@pytest.mark.parametrize("text", ["", "1234567", "123456789", "1234567x", "xiaobai-memory:pair?at=h:1", "²1234567"])
def test_what_is_no_code_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_invitation(text)
    assert refused.value.field == "code"
    assert not text or text not in str(refused.value)


def test_a_new_code_has_eight_digits_whatever_the_random_bytes_are() -> None:
    for byte in (0, 1, 255):
        code = new_code(lambda count, byte=byte: bytes([byte]) * count)  # type: ignore[misc]
        assert len(code) == 8
        assert code.isdecimal()
        assert parse_invitation(readable_code(code)).code == code


def test_the_text_of_a_qr_code_brings_code_and_addresses_back() -> None:
    invitation = Invitation("00000007", (("192.168.1.5", 40_123), ("fe80::1", 7)))
    assert parse_invitation(invitation_uri(invitation)) == invitation


@pytest.mark.parametrize("at", ["", "host", "host:", "host:0", "host:65536", ":7", "host:x"])
def test_an_address_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(InvalidInput):
        parse_invitation(f"xiaobai-memory:pair?code=12345678&at={at}")
