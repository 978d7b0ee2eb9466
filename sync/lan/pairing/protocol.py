"""A pairing as messages in, messages out. Pure: time and randomness are arguments.

Both sides make a common key from the code (SPAKE2), bound to the certificate of the device that shows the code. Whoever
does not have the code can test one guess in a connection and learns nothing else. See docs/decisions/035-pairing.md.
"""

import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from spake2 import SPAKE2_A, SPAKE2_B, SPAKEError
from spake2.ed25519_basic import NotOnCurve

from sync.lan.pairing.pairing_messages import PAIRING_VERSION, PairCard, PairMessage, PairRefused, PairShare
from sync.lan.pairing.words import words_of
from sync.lan.protocol.frames import ProtocolError, ShortText

LIFETIME_SECONDS: Final = 120.0
MAX_TRIES: Final = 5  # wrong codes
MAX_CONNECTIONS: Final = 40  # that begin with one code; each costs 10 ms of processor time
_CONTEXT: Final = b"xiaobai-memory pairing 1 "
_NONCE: Final = bytes(12)  # each key seals one message
_WORD_BYTES: Final = 4

RandomBytes = Callable[[int], bytes]


class PairingCause(StrEnum):
    """Why a pairing failed. The words are part of the protocol."""

    WRONG_CODE = "wrong_code"
    EXPIRED = "code_expired"
    USED = "code_used"
    CANCELLED = "code_cancelled"  # on the device that showed it
    TRIES = "too_many_tries"
    OTHER_ACCOUNT = "other_account"
    SAME_DEVICE = "same_device"  # both have one device id, or one key: a copied data directory
    REVOKED = "revoked"
    VERSION = "other_version"
    LOST = "connection_lost"  # before the other device had the answer


class PairingRefused(Exception):
    """The pairing has failed; `cause` says why. `message` is for the other side, if it does not know yet."""

    def __init__(self, cause: PairingCause, message: PairRefused | None = None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.message = message


class DeviceCard(msgspec.Struct, frozen=True):
    """What a device tells the other one of itself. `account_id` is empty for a guest.

    `discovery_id`: the secret that the marks of its announcements are made of.
    """

    public_key: ShortText
    device_id: ShortText
    name: ShortText
    discovery_id: ShortText
    account_id: ShortText = ""
    account_label: ShortText = ""


@dataclass(frozen=True, slots=True)
class PairedDevice:
    """A completed pairing. Both screens show the same `words`."""

    card: DeviceCard
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnDevice:
    """This device for a pairing. `revoked`: device ids and keys that stay refused."""

    card: DeviceCard
    certificate_of: Callable[[str], bytes]  # SHA-256 of the certificate of a public key; ValueError for no key
    revoked: frozenset[str] = frozenset()

    def refusal_of(self, other: DeviceCard) -> PairingCause | None:
        """Why the device of a card cannot be paired with this one."""
        own = self.card
        if other.device_id == own.device_id or other.public_key == own.public_key:
            return PairingCause.SAME_DEVICE
        if not self.revoked.isdisjoint((other.device_id, other.public_key)):
            return PairingCause.REVOKED
        if own.account_id and other.account_id and own.account_id != other.account_id:
            return PairingCause.OTHER_ACCOUNT
        return None


class ShownCode:
    """A code while it is shown: good once, for two minutes and five wrong tries. `now` is monotonic seconds."""

    def __init__(self, code: str, now: float) -> None:
        self.code = code
        self.ends_at = now + LIFETIME_SECONDS
        self.tries_left = MAX_TRIES
        self.is_used = False
        self._connections = 0

    def refusal(self, now: float) -> PairingCause | None:
        """Why the code is no longer good; None while it is."""
        if self.is_used:
            return PairingCause.USED
        if self.tries_left <= 0 or self._connections > MAX_CONNECTIONS:
            return PairingCause.TRIES
        return PairingCause.EXPIRED if now >= self.ends_at else None

    def count_connection(self) -> None:
        self._connections += 1


class ShowingSide:
    """One connection to the device that shows the code."""

    def __init__(self, shown: ShownCode, own: OwnDevice, random_bytes: RandomBytes) -> None:
        self._shown_code = shown
        self._own = own
        self._own_certificate = own.certificate_of(own.card.public_key)
        self._exchange = SPAKE2_B(shown.code.encode(), idB=self._own_certificate, entropy_f=random_bytes)
        self._keys: _Keys | None = None
        self.has_used_code = False  # in this connection

    def on_message(self, message: PairMessage, now: float) -> tuple[list[PairMessage], PairedDevice | None]:
        """The answer, and the paired device with the last one. Raises PairingRefused, ProtocolError."""
        if isinstance(message, PairRefused):
            raise PairingRefused(_cause_of(message))
        if (cause := self._shown_code.refusal(now)) is not None:
            raise _refused(cause)
        if isinstance(message, PairShare) and self._keys is None:
            return self._on_share(message), None
        if isinstance(message, PairCard) and self._keys is not None:
            return self._on_card(message, self._keys)
        raise ProtocolError("a message of a pairing came out of order")

    def _on_share(self, message: PairShare) -> list[PairMessage]:
        if message.version != PAIRING_VERSION:
            raise _refused(PairingCause.VERSION)
        self._shown_code.count_connection()
        own_share = self._exchange.start()
        self._keys = _Keys(_finish(self._exchange, message.share), own_share, self._own_certificate)
        return [PairShare(PAIRING_VERSION, base64.b64encode(own_share).decode())]

    def _on_card(self, message: PairCard, keys: "_Keys") -> tuple[list[PairMessage], PairedDevice]:
        card = keys.open(b"entering", message.sealed)
        if card is None:
            self._shown_code.tries_left -= 1
            raise _refused(PairingCause.WRONG_CODE)
        self._shown_code.is_used = self.has_used_code = True
        theirs = _certificate_of(self._own, card)
        if (cause := self._own.refusal_of(card)) is not None:
            raise _refused(cause)
        words = keys.words(self._own_certificate, theirs)
        return [PairCard(keys.seal(b"showing", self._own.card))], PairedDevice(card, words)


class EnteringSide:
    """The connection of the device on which the code is entered. `certificate`: SHA-256 of what the other presented."""

    def __init__(self, code: str, certificate: bytes, own: OwnDevice, random_bytes: RandomBytes) -> None:
        self._own = own
        self._certificate = certificate
        self._exchange = SPAKE2_A(code.encode(), idB=certificate, entropy_f=random_bytes)
        self._keys: _Keys | None = None

    def start(self) -> list[PairMessage]:
        return [PairShare(PAIRING_VERSION, base64.b64encode(self._exchange.start()).decode())]

    def on_message(self, message: PairMessage) -> tuple[list[PairMessage], PairedDevice | None]:
        """What to send, and the paired device at the end. Raises PairingRefused, ProtocolError."""
        if isinstance(message, PairRefused):
            raise PairingRefused(_cause_of(message))
        if isinstance(message, PairShare) and self._keys is None:
            if message.version != PAIRING_VERSION:
                raise _refused(PairingCause.VERSION)
            self._keys = _Keys(_finish(self._exchange, message.share), _decode(message.share), self._certificate)
            return [PairCard(self._keys.seal(b"entering", self._own.card))], None
        if isinstance(message, PairCard) and self._keys is not None:
            return [], self._on_card(message, self._keys)
        raise ProtocolError("a message of a pairing came out of order")

    def _on_card(self, message: PairCard, keys: "_Keys") -> PairedDevice:
        card = keys.open(b"showing", message.sealed)
        if card is None:
            raise _refused(PairingCause.WRONG_CODE)
        if _certificate_of(self._own, card) != self._certificate:
            raise ProtocolError("a device sent another key than that of its certificate")
        if (cause := self._own.refusal_of(card)) is not None:
            raise _refused(cause)
        own_certificate = self._own.certificate_of(self._own.card.public_key)
        return PairedDevice(card, keys.words(self._certificate, own_certificate))


class _Keys:
    """What both sides derive from the common key. The transcript: the shown device's share and certificate.

    SPAKE2's key itself depends on the code, both shares and that certificate.
    """

    def __init__(self, common: bytes, share: bytes, certificate: bytes) -> None:
        self._common = common
        self._transcript = certificate + share

    def seal(self, side: bytes, card: DeviceCard) -> str:
        cipher = ChaCha20Poly1305(self._derive(side))
        return base64.b64encode(cipher.encrypt(_NONCE, msgspec.json.encode(card), self._transcript)).decode()

    def open(self, side: bytes, sealed: str) -> DeviceCard | None:
        """The card; None if it was not sealed under this key. Raises ProtocolError for a card that is none."""
        try:
            plain = ChaCha20Poly1305(self._derive(side)).decrypt(_NONCE, _decode(sealed), self._transcript)
        except InvalidTag:
            return None
        try:
            return msgspec.json.decode(plain, type=DeviceCard)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError("a device's card cannot be read") from error

    def words(self, *certificates: bytes) -> tuple[str, ...]:
        """The words for both screens: the same only if the code, both shares and both certificates are."""
        return words_of(hmac.digest(self._common, _CONTEXT + b"words" + b"".join(certificates), "sha256")[:_WORD_BYTES])

    def _derive(self, purpose: bytes) -> bytes:
        return hmac.digest(self._common, _CONTEXT + purpose, "sha256")


def _certificate_of(own: OwnDevice, card: DeviceCard) -> bytes:
    """Of the key in a card. Raises ProtocolError for a card without a key or an id."""
    if not card.device_id or not card.device_id.isprintable():
        raise ProtocolError("a device's card has no id")
    try:
        return own.certificate_of(card.public_key)
    except ValueError as error:
        raise ProtocolError("a device's card has no key") from error


def _finish(exchange: "SPAKE2_A | SPAKE2_B", share: str) -> bytes:
    try:
        return bytes(exchange.finish(_decode(share)))
    except (SPAKEError, NotOnCurve, ValueError, AssertionError) as error:
        raise ProtocolError("a share of the key exchange is none") from error


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ProtocolError("a message of a pairing is no base64") from error


def _refused(cause: PairingCause) -> PairingRefused:
    return PairingRefused(cause, PairRefused(cause))


def _cause_of(message: PairRefused) -> PairingCause:
    return next((cause for cause in PairingCause if cause == message.cause), PairingCause.WRONG_CODE)
