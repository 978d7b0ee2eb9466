"""Pairings as messages that the test carries: wrong codes, a man in the middle, replays, several at once."""

import base64
import hashlib
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync.lan.pairing.pairing_messages import PairCard, PairMessage, PairShare, decode_message, encode_message
from sync.lan.pairing.protocol import (
    LIFETIME_SECONDS,
    MAX_TRIES,
    DeviceCard,
    EnteringSide,
    OwnDevice,
    PairedDevice,
    PairingCause,
    PairingRefused,
    ShowingSide,
    ShownCode,
)
from sync.lan.protocol.frames import ProtocolError
from tests.proof import examples

code = st.from_regex(r"[0-9]{8}", fullmatch=True)
seed = st.integers(0, 2**32)


def certificate_of(public_key: str) -> bytes:
    return hashlib.sha256(public_key.encode()).digest()


def own(name: str, **more: str) -> OwnDevice:
    card = DeviceCard(f"key of {name}", f"device-{name}", f"name of {name}", f"secret of {name}", **more)
    return OwnDevice(card, certificate_of)


def random_bytes(seed: object) -> Callable[[int], bytes]:
    return random.Random(str(seed)).randbytes


SHOWING, ENTERING = own("a"), own("b")


class Pairing:
    """A device that shows a code, and one that enters one. What each said is kept as bytes."""

    def __init__(
        self,
        shown: ShownCode,
        entered: str,
        seed: object,
        *,
        showing: OwnDevice = SHOWING,
        entering: OwnDevice = ENTERING,
        certificate: bytes | None = None,
    ) -> None:
        presented = certificate or certificate_of(showing.card.public_key)
        self.server = ShowingSide(shown, showing, random_bytes((seed, "showing")))
        self.client = EnteringSide(entered, presented, entering, random_bytes((seed, "entering")))
        self.said: list[bytes] = []
        self.at_client: PairedDevice | None = None
        self.at_server: PairedDevice | None = None

    def run(self, now: float = 0.0, *, change: Callable[[int, bytes], bytes] = lambda _, body: body) -> None:
        """Carry all messages; `change` may replace the n-th."""
        (message,) = self.client.start()
        for step in range(0, 4, 2):
            answers, self.at_server = self.server.on_message(self._carry(step, message, change), now)
            sent, self.at_client = self.client.on_message(self._carry(step + 1, answers[0], change))
            message = sent[0] if sent else message

    def _carry(self, step: int, message: PairMessage, change: Callable[[int, bytes], bytes]) -> PairMessage:
        self.said.append(encode_message(message))
        return decode_message(change(step, self.said[-1]))


@given(code, seed)
@settings(max_examples=examples(20))
def test_the_code_pairs_and_both_see_the_same_words(digits: str, seed: int) -> None:
    pairing = Pairing(ShownCode(digits, 0.0), digits, seed)
    pairing.run()
    assert pairing.at_client is not None
    assert pairing.at_server is not None
    assert (pairing.at_client.card, pairing.at_server.card) == (SHOWING.card, ENTERING.card)
    assert pairing.at_client.words == pairing.at_server.words
    assert len(pairing.at_client.words) == 4


@given(code, code, seed)
@settings(max_examples=examples(20))
def test_a_wrong_code_reveals_nothing_and_costs_one_try(digits: str, wrong: str, seed: int) -> None:
    if digits == wrong:
        return
    shown = ShownCode(digits, 0.0)
    pairing = Pairing(shown, wrong, seed)
    with pytest.raises(PairingRefused) as refused:
        pairing.run()
    assert refused.value.cause is PairingCause.WRONG_CODE
    assert (shown.tries_left, shown.is_used) == (MAX_TRIES - 1, False)
    everything = b"".join(pairing.said) + encode_message(refused.value.message or PairCard(""))
    for secret in (digits, wrong, "name of", "device-", "secret of", "key of"):
        assert secret.encode() not in everything


@given(code, seed)
@settings(max_examples=examples(10))
def test_a_man_in_the_middle_without_the_code_fails_on_both_sides(digits: str, seed: int) -> None:
    """He presents his own certificate to the device that enters, and carries all messages."""
    shown = ShownCode(digits, 0.0)
    with pytest.raises(PairingRefused) as refused:
        Pairing(shown, digits, seed, certificate=certificate_of("the key of the man in the middle")).run()
    assert refused.value.cause is PairingCause.WRONG_CODE
    assert not shown.is_used


@given(code, code, seed)
@settings(max_examples=examples(10))
def test_a_man_in_the_middle_who_guesses_has_one_guess_on_each_side(digits: str, guess: str, seed: int) -> None:
    if digits == guess:
        return
    shown, fake = ShownCode(digits, 0.0), ShownCode(guess, 0.0)
    man = own("m")
    with pytest.raises(PairingRefused):
        Pairing(fake, digits, seed, showing=man).run()
    with pytest.raises(PairingRefused):
        Pairing(shown, guess, seed, entering=man).run()
    assert (fake.tries_left, shown.tries_left) == (MAX_TRIES - 1, MAX_TRIES - 1)


@given(code, seed, st.integers(0, 3), st.integers(0, 10_000), st.integers(1, 255))
@settings(max_examples=examples(40))
def test_a_changed_message_never_pairs_with_another_device(
    digits: str, seed: int, step: int, place: int, change: int
) -> None:
    def changed(at: int, body: bytes) -> bytes:
        if at != step:
            return body
        place_in = place % len(body)
        return body[:place_in] + bytes([body[place_in] ^ change]) + body[place_in + 1 :]

    pairing = Pairing(ShownCode(digits, 0.0), digits, seed)
    with suppress(PairingRefused, ProtocolError):
        pairing.run(change=changed)
    for paired, card in ((pairing.at_client, SHOWING.card), (pairing.at_server, ENTERING.card)):
        assert paired is None or paired.card == card


@given(code, seed)
@settings(max_examples=examples(10))
def test_recorded_messages_of_a_pairing_are_worth_nothing_later(digits: str, seed: int) -> None:
    before = Pairing(ShownCode(digits, 0.0), digits, seed)
    before.run()
    again = ShownCode(digits, 0.0)  # the same code by chance
    server = ShowingSide(again, SHOWING, random_bytes((seed, "later")))
    server.on_message(decode_message(before.said[0]), 0.0)
    with pytest.raises(PairingRefused) as refused:
        server.on_message(decode_message(before.said[2]), 0.0)
    assert refused.value.cause is PairingCause.WRONG_CODE
    with pytest.raises(PairingRefused):  # and its answers, to a device that enters the code again
        Pairing(again, digits, (seed, "again")).run(change=lambda at, body: before.said[at] if at % 2 else body)


def attempt(shown: ShownCode, entered: str, seed: object, now: float = 0.0) -> PairingCause | None:
    try:
        Pairing(shown, entered, seed).run(now)
    except PairingRefused as error:
        return error.cause
    return None


def test_a_code_is_good_once() -> None:
    shown = ShownCode("12345678", 0.0)
    assert attempt(shown, "12345678", 1) is None
    assert attempt(shown, "12345678", 2) is PairingCause.USED


def test_after_five_wrong_codes_the_right_one_is_refused() -> None:
    shown = ShownCode("12345678", 0.0)
    wrong = [attempt(shown, f"0000000{number}", number) for number in range(MAX_TRIES)]
    assert wrong == [PairingCause.WRONG_CODE] * MAX_TRIES == [PairingCause.WRONG_CODE] * 5
    assert attempt(shown, "12345678", 9) is PairingCause.TRIES


def test_guesses_in_parallel_connections_are_counted_together() -> None:
    shown = ShownCode("12345678", 0.0)
    pairings = [Pairing(shown, f"0000000{number}", number) for number in range(8)]
    cards = []
    for pairing in pairings:
        (answer,), _ = pairing.server.on_message(pairing.client.start()[0], 0.0)
        (card,), _ = pairing.client.on_message(answer)
        cards.append(card)
    causes = []
    for pairing, card in zip(pairings, cards, strict=True):
        with pytest.raises(PairingRefused) as refused:
            pairing.server.on_message(card, 0.0)
        causes.append(refused.value.cause)
    assert causes == [PairingCause.WRONG_CODE] * MAX_TRIES + [PairingCause.TRIES] * 3


def test_of_two_devices_that_enter_the_code_at_once_the_first_is_paired() -> None:
    shown = ShownCode("12345678", 0.0)
    first, second = Pairing(shown, "12345678", 1), Pairing(shown, "12345678", 2, entering=own("c"))
    cards = []
    for pairing in (first, second):
        (answer,), _ = pairing.server.on_message(pairing.client.start()[0], 0.0)
        (card,), _ = pairing.client.on_message(answer)
        cards.append(card)
    _, paired = second.server.on_message(cards[1], 0.0)
    assert paired is not None
    assert paired.card.device_id == "device-c"
    with pytest.raises(PairingRefused) as refused:
        first.server.on_message(cards[0], 0.0)
    assert refused.value.cause is PairingCause.USED


@pytest.mark.parametrize(("now", "cause"), [(LIFETIME_SECONDS - 0.1, None), (LIFETIME_SECONDS, PairingCause.EXPIRED)])
def test_a_code_is_good_for_two_minutes(now: float, cause: PairingCause | None) -> None:
    assert LIFETIME_SECONDS == 120
    assert attempt(ShownCode("12345678", 0.0), "12345678", 1, now) is cause


def test_a_code_that_expires_between_two_messages_is_refused() -> None:
    pairing = Pairing(ShownCode("12345678", 0.0), "12345678", 1)
    (answer,), _ = pairing.server.on_message(pairing.client.start()[0], 0.0)
    (card,), _ = pairing.client.on_message(answer)
    with pytest.raises(PairingRefused) as refused:
        pairing.server.on_message(card, LIFETIME_SECONDS)
    assert refused.value.cause is PairingCause.EXPIRED


def test_connections_that_only_begin_are_bounded() -> None:
    shown = ShownCode("12345678", 0.0)
    causes = []
    for number in range(60):
        pairing = Pairing(shown, "12345678", number)
        try:
            pairing.server.on_message(pairing.client.start()[0], 0.0)
        except PairingRefused as error:
            causes.append(error.cause)
    assert 0 < len(causes) < 60
    assert set(causes) == {PairingCause.TRIES}


@pytest.mark.parametrize(
    ("a", "b", "cause"),
    [
        ({"account_id": "u"}, {"account_id": "v"}, PairingCause.OTHER_ACCOUNT),
        ({"account_id": "u"}, {"account_id": "u"}, None),
        ({"account_id": "u"}, {}, None),
        ({}, {"account_id": "u"}, None),
    ],
)
def test_two_accounts_are_never_paired_and_a_guest_may_join_one(
    a: dict[str, str], b: dict[str, str], cause: PairingCause | None
) -> None:
    shown = ShownCode("12345678", 0.0)
    pairing = Pairing(shown, "12345678", 1, showing=own("a", **a), entering=own("b", **b))
    if cause is None:
        pairing.run()
        return
    with pytest.raises(PairingRefused) as refused:
        pairing.run()
    assert refused.value.cause is cause
    assert shown.is_used


def test_a_device_is_not_paired_with_its_own_copy() -> None:
    with pytest.raises(PairingRefused) as refused:
        Pairing(ShownCode("12345678", 0.0), "12345678", 1, entering=SHOWING).run()
    assert refused.value.cause is PairingCause.SAME_DEVICE


@pytest.mark.parametrize("revoked", ["device-b", "key of b"])
def test_a_revoked_device_stays_revoked(revoked: str) -> None:
    showing = replace(SHOWING, revoked=frozenset({revoked}))
    with pytest.raises(PairingRefused) as refused:
        Pairing(ShownCode("12345678", 0.0), "12345678", 1, showing=showing).run()
    assert refused.value.cause is PairingCause.REVOKED


@pytest.mark.parametrize("device_id", ["", "\x1b]0;x\x07"])
def test_a_card_without_an_id_that_can_be_shown_is_refused(device_id: str) -> None:
    hostile = OwnDevice(msgspec.structs.replace(ENTERING.card, device_id=device_id), certificate_of)
    with pytest.raises(ProtocolError):
        Pairing(ShownCode("12345678", 0.0), "12345678", 1, entering=hostile).run()


def test_a_card_with_another_key_than_the_certificate_is_refused() -> None:
    """The device that shows the code has it, and presents another device's key in its card."""
    lying = own("x")
    server = ShowingSide(ShownCode("12345678", 0.0), lying, random_bytes(1))
    server._own = replace(lying, card=SHOWING.card)
    client = EnteringSide("12345678", certificate_of(lying.card.public_key), ENTERING, random_bytes(2))
    (answer,), _ = server.on_message(client.start()[0], 0.0)
    (card,), _ = client.on_message(answer)
    (last,), _ = server.on_message(card, 0.0)
    with pytest.raises(ProtocolError):
        client.on_message(last)


@given(st.binary(max_size=40), seed)
@settings(max_examples=examples(20))
def test_a_share_that_is_none_is_a_protocol_error(share: bytes, seed: int) -> None:
    server = ShowingSide(ShownCode("12345678", 0.0), SHOWING, random_bytes(seed))
    with pytest.raises(ProtocolError):
        server.on_message(PairShare(1, base64.b64encode(share).decode()), 0.0)


def test_another_version_is_refused_by_name() -> None:
    server = ShowingSide(ShownCode("12345678", 0.0), SHOWING, random_bytes(1))
    (share,) = EnteringSide("12345678", b"", ENTERING, random_bytes(2)).start()
    assert isinstance(share, PairShare)
    with pytest.raises(PairingRefused) as refused:
        server.on_message(msgspec.structs.replace(share, version=2), 0.0)
    assert refused.value.cause is PairingCause.VERSION


def test_messages_out_of_order_are_a_protocol_error() -> None:
    server = ShowingSide(ShownCode("12345678", 0.0), SHOWING, random_bytes(1))
    client = EnteringSide("12345678", certificate_of(SHOWING.card.public_key), ENTERING, random_bytes(2))
    (share,) = client.start()
    with pytest.raises(ProtocolError):
        server.on_message(PairCard("QUI="), 0.0)
    server.on_message(share, 0.0)
    with pytest.raises(ProtocolError):
        server.on_message(share, 0.0)
    with pytest.raises(ProtocolError):
        client.on_message(PairCard("QUI="))
