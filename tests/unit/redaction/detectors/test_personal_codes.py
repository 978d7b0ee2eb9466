"""Personal data with checksums, in the forms people write it. All numbers are computed."""

import random
from collections.abc import Callable
from itertools import product

import pytest

from sync.redaction import Redactor
from sync.redaction.rules.checksums import (
    is_bank_card_number,
    is_company_code,
    is_identity_number,
    is_mobile_number,
    luhn,
)

REDACTOR = Redactor()
FULL_WIDTH = str.maketrans("0123456789Xx@.", "０１２３４５６７８９Ｘｘ＠．")
NUMERALS = str.maketrans("0123456789", "零一二三四五六七八九")


def mobile(seed: int) -> str:
    rng = random.Random(seed)
    return "1" + rng.choice("3456789") + "".join(rng.choices("0123456789", k=9))


def identity(seed: int) -> str:
    rng = random.Random(seed)
    body = rng.choice(["110101", "310115", "440305", "510107"])
    body += f"{rng.randint(1950, 2008)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}{rng.randint(0, 999):03}"
    return next(body + check for check in "0123456789X" if is_identity_number(body + check))


def card(seed: int, length: int = 19) -> str:
    rng = random.Random(seed)
    body = rng.choice(["622588", "621661", "623058"]) + "".join(rng.choices("0123456789", k=length - 7))
    return next(body + check for check in "0123456789" if luhn(body + check))


def company(seed: int) -> str:
    rng = random.Random(seed)
    body = rng.choice(["91310115", "91440300", "12310115"]) + "".join(
        rng.choices("0123456789ABCDEFGHJKLMNPQRTUWXY", k=9)
    )
    return next(body + check for check in "0123456789ABCDEFGHJKLMNPQRTUWXY" if is_company_code(body + check))


def grouped(number: str, separator: str, *lengths: int) -> str:
    parts, at = [], 0
    for length in lengths:
        parts.append(number[at : at + length])
        at += length
    return separator.join([*parts, number[at:]] if at < len(number) else parts)


PHONE_FORMS: dict[str, Callable[[str], str]] = {
    "bare": lambda n: n,
    "dashes": lambda n: grouped(n, "-", 3, 4, 4),
    "blanks": lambda n: grouped(n, " ", 3, 4, 4),
    "dots": lambda n: grouped(n, ".", 3, 4, 4),
    "slashes": lambda n: grouped(n, "/", 3, 4, 4),
    "underscores": lambda n: grouped(n, "_", 3, 4, 4),
    "no-break": lambda n: grouped(n, "\u00a0", 3, 4, 4),
    "335": lambda n: grouped(n, " ", 3, 3, 5),
    "+86": lambda n: "+86" + n,
    "+86 blank": lambda n: "+86 " + n,
    "+86 dashes": lambda n: "+86-" + grouped(n, "-", 3, 4, 4),
    "(+86)": lambda n: "(+86)" + n,
    "(+86) blanks": lambda n: "(+86) " + grouped(n, " ", 3, 4, 4),
    "（+86）": lambda n: "（+86）" + n,
    "0086": lambda n: "0086" + n,
    "86": lambda n: "86-" + n,
    "full width": lambda n: n.translate(FULL_WIDTH),
    "zero width": lambda n: n[:3] + "\u200b" + n[3:7] + "\u200d" + n[7:],
    "numerals": lambda n: n.translate(NUMERALS),
    "幺": lambda n: n.translate(NUMERALS).replace("一", "幺"),
    "keycaps": lambda n: "".join(digit + "\ufe0f\u20e3" for digit in n),
    "dash of print": lambda n: grouped(n, "–", 3, 4, 4),
}
SENTENCES = (
    "电话：{}。",
    "我的是{}记一下",
    "My number is {}, thanks",
    "**{}**",
    '{{"k": "{}"}}',
    "u?x={}&y=1",
    "张三，{}，李四",
)


@pytest.mark.parametrize("form", PHONE_FORMS)
def test_a_mobile_number_is_found_in_every_form(form: str) -> None:
    for seed, sentence in product(range(5), SENTENCES):
        written = PHONE_FORMS[form](mobile(seed))
        assert REDACTOR.clean(sentence.format(written)) == sentence.format("[手机号]")


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_identity_number_is_found_in_every_form(sentence: str) -> None:
    for seed in range(10):
        number = identity(seed)
        for written in (
            number,
            number.lower(),
            number.translate(FULL_WIDTH),
            grouped(number, " ", 6, 8, 4),
            grouped(number, "-", 6, 8, 4),
            grouped(number, " ", 6, 4, 4, 4),
        ):
            assert REDACTOR.clean(sentence.format(written)) == sentence.format("[身份证号]")


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("length", [16, 19])
def test_a_bank_card_is_found_in_every_form(length: int, sentence: str) -> None:
    for seed in range(10):
        number = card(seed, length)
        for written in (
            number,
            number.translate(FULL_WIDTH),
            grouped(number, " ", 4, 4, 4, 4),
            grouped(number, "-", 4, 4, 4, 4),
        ):
            assert REDACTOR.clean(sentence.format(written)) == sentence.format("[银行卡号]")


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_company_code_is_found_in_both_cases(sentence: str) -> None:
    for seed in range(10):
        code = company(seed)
        for written in (code, code.lower(), f"{code[:2]} {code[2:8]} {code[8:]}"):
            assert REDACTOR.clean(sentence.format(written)) == sentence.format("[统一社会信用代码]")


@pytest.mark.parametrize(
    "address",
    [
        "li_si@example.com",
        "WANG@QQ.COM",
        "user+tag@mail.example.com.cn",
        "a.b-c@x-y.org",
        "zhang＠163.com",
        "z１@ｑｑ.com",
    ],
)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_address_is_found(address: str, sentence: str) -> None:
    assert REDACTOR.clean(sentence.format(address)) == sentence.format("[邮箱]")


def test_a_spoken_address_is_found() -> None:
    assert REDACTOR.clean("写信到 zhang (at) example (dot) com 吧") == "写信到 [邮箱] 吧"
    assert REDACTOR.clean("写信到zhang_san @ example.com吧") == "写信到[邮箱]吧"
    assert REDACTOR.clean("meet me @ example.com") == "meet me @ example.com"


def test_neighbours_are_two_numbers_and_both_go() -> None:
    first, second = mobile(1), mobile(2)

    assert REDACTOR.clean(f"{first} {second}") == "[手机号] [手机号]"
    assert REDACTOR.clean(f"{first}/{second},{first}") == "[手机号]/[手机号],[手机号]"
    assert REDACTOR.clean(f"1. {first}\n2. {second}") == "1. [手机号]\n2. [手机号]"
    assert REDACTOR.clean(f"李四{first.translate(NUMERALS)}") == "李四[手机号]"
    assert REDACTOR.clean(f"2026 {first}") == "2026 [手机号]"
    assert REDACTOR.clean(f"tel{first}，user_{second}") == "tel[手机号]，user_[手机号]"


def test_a_word_before_a_number_counts_when_the_check_digit_is_wrong() -> None:
    wrong = identity(3)[:-1] + ("1" if identity(3)[-1] != "1" else "2")

    assert REDACTOR.clean(f"编号 {wrong}") == f"编号 {wrong}"
    assert REDACTOR.clean(f"身份证号：{wrong}") == "身份证号：[身份证号]"
    assert REDACTOR.clean("身份证是 110101900307123") == "身份证是 [身份证号]"
    assert REDACTOR.clean("卡号：6222021234567890123") == "卡号：[银行卡号]"
    assert REDACTOR.clean("电话 0571-88888888") == "电话 [电话号码]"


def test_the_checksums_know_published_examples() -> None:
    assert is_identity_number("11010519491231002X")  # GB 11643-1999, annex A
    assert not is_identity_number("110105194912310021")
    assert not is_identity_number("110105194913310029")
    assert is_company_code("91350100M000100Y43")  # GB 32100-2015, example
    assert not is_company_code("91350100M000100Y44")
    assert luhn("79927398713")  # ISO/IEC 7812-1 as in every textbook
    assert not luhn("79927398710")
    assert not is_mobile_number("12345678901")
    assert not is_mobile_number("11111111111")
    assert not is_bank_card_number("4" * 16)


@pytest.mark.parametrize(
    "text",
    [
        "13812345678 bytes",
        "共 13812345678 字节",
        "took 13812345678 ns",
        "size: 13812345678",
        '{"size": 13812345678, "rows":13812345679}',
        "文件大小：13812345678",
        "oid sha256:ab\nsize 13812345678\n",
        "-rw-r--r-- 1 root root 13812345678 Nov 24 01:49 model.gguf",
    ],
)
def test_eleven_digits_that_measure_stay(text: str) -> None:
    assert REDACTOR.clean(text) == text


@pytest.mark.parametrize("text", ["联系时间 {}", "{} B座", "{} 行吗", "call any time {}", "phone: {}", "- rwx {}"])
def test_a_number_without_a_unit_or_a_measure_is_a_phone(text: str) -> None:
    assert REDACTOR.clean(text.format("13812345678")) == text.format("[手机号]")
