"""What holds for every text: cleaning twice is cleaning once, nothing else changes, nothing planted remains."""

import json
import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sync.redaction import Redactor
from sync.redaction.model import KINDS, placeholder
from sync.redaction.normalised_text import normalise
from sync.redaction.pattern import Pattern, compile_pattern
from sync.redaction.rules.checksums import is_identity_number
from tests.unit.redaction.detectors.test_personal_codes import PHONE_FORMS, card, company, identity, mobile
from tests.unit.redaction.detectors.test_tokens import SHAPES, make_token

REDACTOR = Redactor()
SEEDS = st.integers(0, 10_000)

# Text near the rules: digits with separators, names, operators, quotes, escapes, brackets, beside any text at all.
PIECES = st.one_of(
    st.text(max_size=8),
    st.text("0123456789 -.+()Xx", max_size=24),
    st.sampled_from(
        [
            "密码",
            "密钥是",
            "token",
            "password: ",
            "api_key=",
            "验证码",
            "Bearer ",
            "://a:",
            "@",
            "\\n",
            "-----BEGIN PRIVATE KEY-----",
        ]
    ),
    st.sampled_from([placeholder(kind) for kind in KINDS]),
    st.sampled_from(
        [
            *(
                "护照号：E12345678",
                "京A12345",
                "微信号 abc_12345",
                "+852 9123 4567",
                "北京市朝阳区建国路88号",
                "CVV 123",
            ),
            *(
                "| 用户 | 密码 |\n| a | ",
                "问：密码多少\n答：",
                "mysql -u a -p",
                "host:5432:db:me:",
                "admin/",
                " 12/27 123",
            ),
            *("kind: Secret\n a: aGVsbG8=", '" + "', "ghp_a1B2", "p\u0430ssword=", "%3D", "mima shi ", "heroku key: "),
        ]
    ),
    st.sampled_from(
        ["[", "]", "：", "，", "\u200b", "\ufe0f", '"', "'", "\n", "是", "=", ".", "/", "_", "\x00", "\ue000", "%3D"]
    ),
    SEEDS.map(mobile),
    SEEDS.map(identity),
    SEEDS.map(card),
    SEEDS.map(company),
    st.builds(make_token, st.sampled_from(sorted(SHAPES)), SEEDS),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
PLAIN = st.text(st.sampled_from("今天我们去吃饭，好吗？天气很不错。 这里没有什么\nabcde"), max_size=60)
SECRETS = st.one_of(
    st.builds(lambda form, seed: PHONE_FORMS[form](mobile(seed)), st.sampled_from(sorted(PHONE_FORMS)), SEEDS),
    SEEDS.map(identity),
    SEEDS.map(card),
    SEEDS.map(company),
    st.builds(make_token, st.sampled_from(sorted(SHAPES)), SEEDS),
    SEEDS.map(lambda seed: f"user{seed}@example.com"),
)
JSON = st.recursive(
    st.one_of(
        TEXTS,
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


@given(TEXTS)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = REDACTOR.clean(text)

    assert REDACTOR.clean(once) == once
    assert REDACTOR.find_spans(once) == []


@given(TEXTS)
def test_spans_are_in_order_disjoint_and_within_the_text(text: str) -> None:
    edges = [edge for span in REDACTOR.find_spans(text) for edge in (span.start, span.end)]

    assert edges == sorted(edges)
    assert all(span.start < span.end for span in REDACTOR.find_spans(text))
    assert not edges or (edges[0] >= 0 and edges[-1] <= len(text))


@given(TEXTS)
def test_what_is_not_in_a_span_stays_character_for_character(text: str) -> None:
    rebuilt, done = "", 0
    for span in REDACTOR.find_spans(text):
        rebuilt += text[done : span.start] + placeholder(span.kind)
        done = span.end

    assert REDACTOR.clean(text) == rebuilt + text[done:]


@given(PLAIN)
def test_text_without_anything_in_it_comes_back_unchanged(text: str) -> None:
    assert REDACTOR.clean(text) == text


@given(PLAIN, SECRETS, PLAIN)
def test_a_planted_secret_leaves_no_trace(before: str, secret: str, after: str) -> None:
    cleaned = REDACTOR.clean(f"{before}，{secret}。{after}")

    assert secret not in cleaned
    assert not any(char.isdecimal() for char in cleaned)
    assert cleaned.startswith(before)
    assert cleaned.endswith(after)


@given(SECRETS, st.integers(0, 4), st.sampled_from(["value", "key", "item"]))
def test_a_secret_in_a_payload_leaves_no_trace_at_any_depth(secret: str, depth: int, place: str) -> None:
    value: Any = {"value": {"x": secret}, "key": {secret: "x"}, "item": [secret]}[place]
    for _ in range(depth):
        value = {"n": [value]}

    written = json.dumps(REDACTOR.clean_payload({"root": value}).value, ensure_ascii=False)

    assert secret not in written


@given(st.dictionaries(TEXTS, JSON, max_size=3))
def test_a_clean_payload_is_json_and_stays_as_it_is(value: dict[str, Any]) -> None:
    payload = REDACTOR.clean_payload(value)

    assert json.loads(json.dumps(payload.value, allow_nan=False)) == payload.value
    assert json_types(payload.value)
    assert REDACTOR.clean_payload(payload.value) == payload


def json_types(value: Any) -> bool:
    """Is every part of `value` of a type that JSON has, and none of a subclass?"""
    if type(value) is dict:
        return all(type(key) is str and json_types(inner) for key, inner in value.items())
    if type(value) is list:
        return all(map(json_types, value))
    return value is None or type(value) in (bool, int, float, str)


NUMBERS = st.one_of(
    SEEDS.map(lambda seed: int(mobile(seed))),
    SEEDS.map(lambda seed: float(mobile(seed))),
    SEEDS.map(lambda seed: int(card(seed, 16))),
    SEEDS.map(lambda seed: 110101199001010000 + seed).filter(lambda number: is_identity_number(str(number))),
)
PLACES = st.sampled_from(["x", "phone", "手机", "contact", "id", "n", "value", "卡号", "password", "name"])
NUMBERED = st.recursive(
    st.one_of(NUMBERS, st.sampled_from(["phone", "-p", "--token"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(PLACES, inner, max_size=3)),
    max_leaves=6,
)


@given(st.dictionaries(PLACES, NUMBERED, max_size=3))
def test_a_number_of_a_person_leaves_no_trace_and_its_payload_is_plain_json(value: dict[str, Any]) -> None:
    cleaned = REDACTOR.clean_payload(value).value

    assert json_types(cleaned)
    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
    assert not any(map(str.isdecimal, json.dumps(cleaned, ensure_ascii=False)))
    assert REDACTOR.clean_payload(cleaned).value == cleaned


NAMES = st.sampled_from(
    [
        "name",
        "Value",
        "value",
        "key",
        "password",
        "令牌",
        "Authorization",
        "new",
        "x",
        "passport",
        "微信号",
        "地址",
        "phone",
    ]
)
ARGUMENTS = st.one_of(
    TEXTS, st.sampled_from(["--password", "-p", "mysql", "curl", "-u", "a:b1c2d3", "--token", "Bearer"])
)
SHAPED = st.recursive(
    st.one_of(ARGUMENTS, st.integers(0, 10**12)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, SHAPED, max_size=3))
def test_a_clean_payload_stays_as_it_is_whatever_its_strings_say_together(value: dict[str, Any]) -> None:
    payload = REDACTOR.clean_payload(value)

    assert REDACTOR.clean_payload(payload.value) == payload


@given(TEXTS)
def test_the_view_maps_every_character_back(text: str) -> None:
    view = normalise(text)

    assert len(view.text) == len(view.starts) == len(view.ends)
    assert all(start < end <= len(text) for start, end in zip(view.starts, view.ends, strict=True))
    assert list(view.starts) == sorted(view.starts)


@given(st.text("ϒΥY\u03f0κk：，（）１ａa中问⁻−-"))
def test_a_character_is_normalised_as_if_it_were_alone(text: str) -> None:
    assert normalise(text).text == "".join(normalise(char).text for char in text)


def test_work_grows_with_the_text_and_no_faster() -> None:
    """Counted, not timed: ten times the text is ten times the finds, and hostile texts settle in one piece."""
    rng = random.Random(1)
    line = f"我的电话是{mobile(1)}，密码：abc{rng.randint(100, 999)}，邮箱 a@b.com\n"

    assert len(REDACTOR.find_spans(line * 1000)) == 10 * len(REDACTOR.find_spans(line * 100)) == 3000
    for hostile in (
        "1 " * 50_000,
        "a@" * 50_000,
        "-----BEGIN PRIVATE KEY-----" * 4_000,
        "password" * 10_000,
        "密码：" * 30_000,
        "mysql -p" * 4_000,
        "问：密码\n答：" * 4_000,
        "| 密码 |\n" * 4_000,
        "'ghp_a1' + " * 4_000,
        "北京市朝阳区建国路" * 4_000,
    ):
        REDACTOR.clean(hostile)


PATTERNS = st.sampled_from(
    [
        r"\d+",
        r"(\w+)=(\w*)",
        r"(密码|密钥)?[:：是]+\s*(\S+)",
        r"(?i)\btoken\b|，(.)",
        r"(.)(.)?(\d)?",
        r"\d*",
        r"[^\x00-\x7f]+",
    ]
)


@given(TEXTS, PATTERNS)
def test_a_match_has_the_character_positions_that_the_library_reports(text: str, source: str) -> None:
    theirs = [
        tuple(match.span(group) for group in range(match.re.groups + 1))
        for match in compile_pattern(source).finditer(text)
    ]
    assert list(Pattern(source).find_all(text)) == theirs
    assert Pattern(source).fullmatch(text) == (compile_pattern(source).fullmatch(text) is not None)
    first = compile_pattern(source).match(text)
    here = Pattern(source).match(text)
    assert here == (None if first is None else tuple(first.span(group) for group in range(first.re.groups + 1)))
