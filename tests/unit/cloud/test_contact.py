"""Phone numbers as people write them, and their masked form."""

import pytest

from sync.cloud.contact import account_label, parse_contact, parse_login_code
from sync.errors import InvalidInput


@pytest.mark.parametrize(
    "written",
    [
        "13800138000",
        "138 0013 8000",
        "138-0013-8000",
        "  138\t0013\t8000 ",
        "+8613800138000",
        "+86 138 0013 8000",
        "+86-138-0013-8000",
        "(+86) 138 0013 8000",
        "8613800138000",
        "86 138 0013 8000",
        "008613800138000",
        "0086 138 0013 8000",
        "１３８００１３８０００",
        "＋８６　１３８　００１３　８０００",
        "138–0013—8000",
        "138‑0013‑8000",
        "138\u00a00013\u00a08000",
        "\u202d+86 138 0013 8000\u202c",
        "138\u200b00138000",
    ],
)
def test_a_chinese_mobile_number_is_one_number_however_it_is_written(written: str) -> None:
    assert parse_contact(phone=written).value == "+8613800138000"


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("+1 (415) 555-2671", "+14155552671"),
        ("00 44 20 7946 0958", "+442079460958"),
        ("+852 5123 4567", "+85251234567"),
        ("+49.151.12345678", "+4915112345678"),
        ("+1 234 567 8901", "+12345678901"),
    ],
)
def test_a_number_of_another_country_keeps_it(written: str, number: str) -> None:
    assert parse_contact(phone=written).value == number


@pytest.mark.parametrize(
    "written",
    [
        "",
        "+",
        "00",
        "1380013800",  # a digit too few for China, and no country
        "138001380001",
        "23800138000",
        "02062341234",
        "4155552671",
        "+86 1380013800",
        "+86 138001380001",
        "+86 23800138000",
        "+0 123 4567",
        "+123456",
        "+1234567890123456",
        "++8613800138000",
        "138+00138000",
        "138001380o0",
        "一三八零零一三八零零零",
        "person@example.com",
        "13800138000; drop table",
        "٠١٢٣٤٥٦٧٨٩٠",  # digits of another script, which NFKC keeps
    ],
)
def test_what_is_no_number_is_refused_by_its_field_and_not_repeated(written: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_contact(phone=written)
    assert caught.value.field == "phone"
    assert len(written) < 3 or written not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("person@example.com", "person@example.com"),
        ("  person@example.com\n", "person@example.com"),
        ("person＠example.com", "person@example.com"),
        ("first.last+tag@sub.example.co", "first.last+tag@sub.example.co"),
    ],
)
def test_an_address_is_taken_as_typed_but_for_what_an_input_method_does(written: str, address: str) -> None:
    assert parse_contact(email=written).value == address


@pytest.mark.parametrize(
    "written", ["", "person", "@example.com", "a@b@c.de", "a b@c.de", "a@host", f"{'a' * 250}@b.de"]
)
def test_what_is_no_address_is_refused_by_its_field(written: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_contact(email=written)
    assert caught.value.field == "email"


@pytest.mark.parametrize("given", [{}, {"phone": "13800138000", "email": "a@b.de"}])
def test_neither_and_both_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        parse_contact(**given)


@pytest.mark.parametrize(
    ("phone", "shown"),
    [
        ("13800138000", "138****8000"),
        ("+14155552671", "+14****2671"),
        ("+85251234567", "+85****4567"),
        ("+12345678", "+12****78"),
        ("+1234567", "+12****7"),
    ],
)
def test_of_a_number_the_middle_is_never_shown(phone: str, shown: str) -> None:
    contact = parse_contact(phone=phone)
    assert (contact.masked, contact.label) == (shown, shown)
    assert phone not in repr(contact) + str(contact)


def test_an_address_is_masked_where_a_code_was_sent_and_whole_as_the_account_s_name() -> None:
    contact = parse_contact(email="person@example.com")
    assert (contact.masked, contact.label) == ("p***@example.com", "person@example.com")
    assert "person" not in repr(contact)


def test_the_account_of_the_server_is_named_by_address_then_masked_number_then_id() -> None:
    assert account_label("id", email="a@b.de", phone="8613800138000") == "a@b.de"
    assert account_label("id", email="", phone="8613800138000") == "138****8000"
    assert account_label("id", email=None, phone=None) == "id"


@pytest.mark.parametrize("written", ["123456", " 123 456 ", "123-456", "１２３４５６"])
def test_a_code_is_its_digits(written: str) -> None:
    assert parse_login_code(written) == "123456"


@pytest.mark.parametrize("written", ["", "12345", "12345678901", "12345a", "一二三四五六"])
def test_what_is_no_code_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_login_code(written)
    assert caught.value.field == "code"
