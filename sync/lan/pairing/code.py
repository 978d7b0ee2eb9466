"""The code of a pairing as people and cameras read it. Pure.

A code is eight digits. The text of a QR code also has the addresses of the device that shows it.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from sync.errors import InvalidInput

CODE_DIGITS: Final = 8
RANDOM_BYTES: Final = 16  # so many that the remainder of a division favours no code
URI_SCHEME: Final = "xiaobai-memory"
MAX_URI_ADDRESSES: Final = 4  # a larger QR code does not fit into a small terminal
MAX_PORT: Final = 65_535
_SEPARATORS: Final = " -_.\u3000"
_HINT: Final = "Enter the eight digits that the other device shows, or the text of its QR code."


@dataclass(frozen=True, slots=True)
class Invitation:
    """A code, and the (host, port) at which the device that shows it may be reached; none if it has to be found."""

    code: str
    addresses: tuple[tuple[str, int], ...] = ()


def new_code(random_bytes: Callable[[int], bytes]) -> str:
    """A random code."""
    return f"{int.from_bytes(random_bytes(RANDOM_BYTES), 'big') % 10**CODE_DIGITS:0{CODE_DIGITS}d}"


def readable_code(code: str) -> str:
    """The code in two groups of digits."""
    return f"{code[: CODE_DIGITS // 2]} {code[CODE_DIGITS // 2 :]}"


def invitation_uri(invitation: Invitation) -> str:
    """The text of the QR code: `xiaobai-memory:pair?code=…&at=host:port`."""
    at = "".join(f"&at={quote(host, safe=':')}:{port}" for host, port in invitation.addresses[:MAX_URI_ADDRESSES])
    return f"{URI_SCHEME}:pair?code={invitation.code}{at}"


def parse_invitation(text: str) -> Invitation:
    """What a person typed or a camera read. Digits of any script count. Raises InvalidInput, without the text."""
    if text.strip().startswith(f"{URI_SCHEME}:"):
        return _parse_uri(text.strip())
    return Invitation(_parse_code(text))


def _parse_code(text: str) -> str:
    signs = [sign for sign in text.strip() if sign not in _SEPARATORS]
    digits = [unicodedata.decimal(sign, None) for sign in signs]
    if len(digits) != CODE_DIGITS or None in digits:
        raise InvalidInput("this is no pairing code", field="code", hint=_HINT)
    return "".join(str(digit) for digit in digits)


def _parse_uri(text: str) -> Invitation:
    try:
        query = urlsplit(text).query
        fields = parse_qs(query, keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_URI_ADDRESSES + 1)
        addresses = tuple(_parse_address(at) for at in fields.get("at", ()))
        (code,) = fields["code"]
    except (ValueError, KeyError):
        raise InvalidInput("this is no text of a pairing's QR code", field="code", hint=_HINT) from None
    return Invitation(_parse_code(code), addresses)


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise ValueError("no address")
    return host, int(port)
