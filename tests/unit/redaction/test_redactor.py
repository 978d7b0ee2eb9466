"""The redactor: proofs, payloads, spans, the user's patterns, and failing closed."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sync.errors import InvalidInput, RedactionFailed, SettingsError
from sync.redaction import Clean, CleanPayload, Redactor, SecretSpan, redactor

REDACTOR = Redactor()


def test_clean_text_is_text() -> None:
    cleaned = REDACTOR.clean("打 13812345678 找我")

    assert cleaned == "打 [手机号] 找我"
    assert isinstance(cleaned, Clean)
    assert type(cleaned.strip()) is str


@pytest.mark.parametrize(
    "forge",
    [
        lambda: Clean("x", object()),
        lambda: Clean("x"),  # type: ignore[call-arg]
        lambda: CleanPayload({}, None),
        lambda: pickle.dumps(REDACTOR.clean("x")),
        lambda: pickle.dumps(REDACTOR.clean_payload({})),
    ],
)
def test_a_proof_cannot_be_made_elsewhere(forge: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        forge()


def test_a_proof_can_be_copied() -> None:
    cleaned, payload = REDACTOR.clean("x"), REDACTOR.clean_payload({"a": [1]})

    assert copy.deepcopy(cleaned) is cleaned
    assert copy.deepcopy(payload) is payload


def test_spans_are_in_characters_of_the_original() -> None:
    text = "①号：+86\u200b138\u00a01234\u00a05678，㏂"

    (span,) = REDACTOR.find_spans(text)

    assert span == SecretSpan(3, 20, "手机号")
    assert text[span.start : span.end] == "+86\u200b138\u00a01234\u00a05678"


def test_a_character_that_unfolds_into_several_is_replaced_whole() -> None:
    text = "密13000000000¼" + "LT" + "AI5tE0aknahXKiknJ5DoHt"

    assert REDACTOR.clean(REDACTOR.clean(text)) == REDACTOR.clean(text)


def test_a_placeholder_in_the_text_stays_as_it_is() -> None:
    text = "password: [密码]，电话[手机号]，［邮箱］"

    assert REDACTOR.clean(text) == text
    assert REDACTOR.find_spans(text) == []


def test_overlapping_finds_become_one() -> None:
    assert REDACTOR.clean("密码是13812345678@qq.com") == "密码是[密码]"


def test_every_string_of_a_payload_is_clean_at_any_depth() -> None:
    payload = REDACTOR.clean_payload(
        {"text": "13812345678", "list": [{"a": ("a@b.com", 1.5, None, True)}], "13912345678": {"password": "swordfish"}}
    )

    assert payload.value == {
        "text": "[手机号]",
        "list": [{"a": ["[邮箱]", 1.5, None, True]}],
        "[手机号]": {"password": "[密码]"},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"phone": 13812345679}, {"phone": "[手机号]"}),
        ({"手机": 13812345679}, {"手机": "[手机号]"}),
        ({"rows": [["phone", 13812345679]]}, {"rows": [["phone", "[手机号]"]]}),
        ({"x": 13812345679}, {"x": "[手机号]"}),
        ({"contact": 13812345679.0}, {"contact": "[手机号]"}),
        ({"user": {"id": [1, 13812345679]}}, {"user": {"id": [1, "[手机号]"]}}),
        ({"n": 110101199003077854}, {"n": "[身份证号]"}),
        ({"password": 1234.5, "code": 482913}, {"password": "[密码]", "code": 482913}),
    ],
)
def test_a_number_of_a_person_is_replaced_as_a_number_too(value: dict[str, Any], expected: dict[str, Any]) -> None:
    payload = REDACTOR.clean_payload(value)

    assert payload.value == expected
    assert msgspec.json.decode(msgspec.json.encode(payload.value)) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("size", "file_bytes", "createdTime", "mtime", "token_count", "offset", "price", "updatedAt", "last_modified"),
        *("heapUsed", "rss", "disk_free", "rows", "nanos", "end", "market_cap", "seed", "message_id", "orderId"),
        *("文件大小", "耗时", "时间戳", "金额", "行数", "订单号"),
    ],
)
def test_a_number_that_measures_stays(name: str) -> None:
    assert REDACTOR.clean_payload({name: 13812345678}).value == {name: 13812345678}


@pytest.mark.parametrize("name", ["order_phone", "sessionMobile", "chat_tel", "收货电话", "contact", "id", "from"])
def test_a_name_that_tells_of_a_person_is_no_measure(name: str) -> None:
    assert REDACTOR.clean_payload({name: 13812345678}).value == {name: "[手机号]"}


def test_two_keys_that_become_one_placeholder_both_stay() -> None:
    payload = REDACTOR.clean_payload({"13812345678": 1, "13912345678": 2})

    assert payload.value == {"[手机号]": 1, "[手机号] (2)": 2}
    assert REDACTOR.clean_payload(payload.value) == payload


def test_the_key_of_a_value_tells_what_it_is() -> None:
    payload = REDACTOR.clean_payload({"api_key": "abcdefgh", "phone": 13812345678, "pin": 4321, "size": 13812345678})

    assert payload.value == {"api_key": "[密钥]", "phone": "[手机号]", "pin": "[密码]", "size": 13812345678}


PEM = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA1234567890abcdefghij", "-----END RSA PRIVATE KEY-----"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"args": ["--password", "Hunter2!xyz"]}, {"args": ["--password", "[密码]"]}),
        ({"args": ["-v", 1, "--token", "abc123def456"]}, {"args": ["-v", 1, "--token", "[令牌]"]}),
        ({"argv": ["mysql", "-u", "root", "-pHunter2!xyz"]}, {"argv": ["mysql", "-u", "root", "-p[密码]"]}),
        ({"argv": [["mysql", "-pHunter2!xyz"]]}, {"argv": [["mysql", "-p[密码]"]]}),
        ({"argv": ["curl", "-u", "bob:Hunter2!xyz", "x.cn"]}, {"argv": ["curl", "-u", "bob:[密码]", "x.cn"]}),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "Hunter2!xyz"}]},
            {"env": [{"name": "DB_PASSWORD", "value": "[密码]"}]},
        ),
        (
            {"env": [{"value": "Hunter2!xyz", "key": "DB_PASSWORD"}]},
            {"env": [{"value": "[密码]", "key": "DB_PASSWORD"}]},
        ),
        ({"Env": [{"Name": "PIN", "Value": 4321}]}, {"Env": [{"Name": "PIN", "Value": "[密码]"}]}),
        ({"password": {"value": "Hunter2!xyz"}}, {"password": {"value": "[密码]"}}),
        ({"密码": {"old": "abc12345", "new": ["def67890"]}}, {"密码": {"old": "[密码]", "new": ["[密码]"]}}),
        ({"headers": {"Authorization": "abcdef123456xyz"}}, {"headers": {"Authorization": "[令牌]"}}),
        (
            {"headers": {"proxy-authorization": "Token abc123def456"}},
            {"headers": {"proxy-authorization": "Token [令牌]"}},
        ),
        ({"headers": [["X-Api-Key", "abcdef123456xyz"]]}, {"headers": [["X-Api-Key", "[密钥]"]]}),
        (
            {"headers": [["Host", "x"], ("Authorization", "abcdef123456xyz")]},
            {"headers": [["Host", "x"], ["Authorization", "[令牌]"]]},
        ),
        ({"lines": ["这是私钥", *PEM, "收好"]}, {"lines": ["这是私钥", "[密钥]", "[密钥]", "[密钥]", "收好"]}),
    ],
)
def test_the_context_of_a_string_shows_what_it_is(value: dict[str, Any], expected: dict[str, Any]) -> None:
    payload = REDACTOR.clean_payload(value)

    assert payload.value == expected
    assert REDACTOR.clean_payload(payload.value) == payload


@pytest.mark.parametrize(
    "value",
    [
        {"args": ["--password-file", "x"]},
        {"args": ["--password-file", "run/secrets/db1"], "n": ["--retry", "138", "1234", "5678"]},
        {"args": ["-v", "密码忘了怎么办", "长度至少 12 位"]},
        {"tags": ["token", "sha256-hash", "password", "gpt-4o-mini", "api_key"]},
        {"facts": ["- 用户忘了密码", "- abc12345 是订单号", "项目用 private 仓库", "v1.2.3"]},
        {"token_count": {"value": 12345678}, "size": {"value": 13812345678}, "tokens": {"value": 123456789}},
        {"metrics": [{"name": "tokens", "value": 12345678}, {"name": "cache_key", "value": "abc12345"}]},
        {"password": {"type": "string", "minLength": 12, "description": "at least 12 characters", "value": "required"}},
        {"next_page_token": {"value": "abc123def456"}, "page": [{"name": "nextPageToken", "value": "abc123def456"}]},
        {"points": [["a", 1], ["b", 2]], "words": [["密码", "忘了"], ["token", "是什么"]]},
        {"headers": {"Authorization": "Bearer <token>", "X-Authorization": "none"}},
        {"lines": ["什么是 -----BEGIN PRIVATE KEY----- 这一行？", "它是私钥的开头"]},
    ],
)
def test_what_is_only_beside_the_name_of_a_secret_stays(value: dict[str, Any]) -> None:
    assert REDACTOR.clean_payload(value).value == value


def test_a_long_list_is_read_once_more_and_no_more() -> None:
    arguments = [*(f"--option{number}" for number in range(4_000)), "--password", "Hunter2!xyz"]

    assert REDACTOR.clean_payload({"args": arguments}).value["args"] == [*arguments[:-1], "[密码]"]


def test_numbers_that_count_stay() -> None:
    value = {"max_tokens": 128000, "created_at": 1_700_000_000_000, "status_code": 40411, "x": -1.5, "ok": True}

    assert REDACTOR.clean_payload(value).value == value


def test_a_payload_does_not_change_with_its_copies() -> None:
    source: dict[str, Any] = {"a": {"b": ["x"]}}
    payload = REDACTOR.clean_payload(source)
    source["a"]["b"].append("13812345678")
    payload.value["a"]["b"].append("13812345678")

    assert payload.value == {"a": {"b": ["x"]}}
    with pytest.raises(AttributeError):
        payload.other = 1
    assert "x" not in repr(payload)


def test_nul_is_taken_out_before_anything_is_looked_for() -> None:
    assert REDACTOR.clean_payload({"a\x00b": "138\x0012345678\x00"}).value == {"ab": "[手机号]"}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": {"b": math.nan}}, "a.b"),
        ({"a": [1, math.inf]}, "a.1"),
        ({"a": "\ud800"}, "a"),
        ({"13812345678": {"x": b"y"}}, "[手机号].x"),
        ({"a": {1: 2}}, "a"),
        ({"a": {1, 2}}, "a"),
        ({"a": 2**64}, "a"),
        ([1], "payload"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        REDACTOR.clean_payload(value)

    assert caught.value.field == field


def test_a_payload_as_deep_as_a_well_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"d": deep}

    with pytest.raises(InvalidInput, match="nested deeper"):
        REDACTOR.clean_payload(deep)


def test_the_users_own_patterns_are_replaced_too() -> None:
    own = Redactor(extra_patterns=[r"项目-[0-9]{4}", r"工号\s*(\d+)"])

    assert own.clean("项目-2026，工号 8812 的人，13812345678") == "[自定义]，工号 [自定义] 的人，[手机号]"


def test_a_pattern_that_matches_everything_settles() -> None:
    own = Redactor(extra_patterns=[".+", "x*"])

    assert own.clean("甲\n乙 13812345678 丙") == "[自定义]\n[自定义]"


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "(a)\\1"])
def test_a_bad_pattern_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Redactor(extra_patterns=["ok", pattern])

    assert repr(pattern) in caught.value.message


def test_the_switch_is_about_local_capture_only() -> None:
    local = Redactor(extra_patterns=["甲乙"], enabled=False)

    assert local.clean("甲乙 13812345678") == "甲乙 13812345678"
    assert local.clean_payload({"a": "13812345678\x00"}).value == {"a": "13812345678"}
    assert local.for_egress().clean("甲乙 13812345678") == "[自定义] [手机号]"
    assert REDACTOR.for_egress() is REDACTOR


def test_a_rule_that_raises_lets_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> list[SecretSpan]:
        raise ValueError(text)

    monkeypatch.setattr(redactor, "DETECTORS", (*redactor.DETECTORS, broken))

    for attempt in (REDACTOR.clean, REDACTOR.find_spans, lambda text: REDACTOR.clean_payload({"a": text})):
        with pytest.raises(RedactionFailed) as caught:
            attempt("秘密 13812345678")
        assert "13812345678" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("text", ["一半\ud83d", None, 7, b"13812345678"])
def test_what_cannot_be_examined_does_not_pass(text: Any) -> None:
    with pytest.raises(RedactionFailed):
        REDACTOR.clean(text)


def test_a_text_that_does_not_settle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(text: str) -> list[SecretSpan]:
        place = next((place for place, char in enumerate(text) if char in "abc"), -1)
        return [SecretSpan(place, place + 1, "密钥")] if place >= 0 else []

    monkeypatch.setattr(redactor, "DETECTORS", (one_more,))

    assert REDACTOR.clean("abc") == "[密钥][密钥][密钥]"
    with pytest.raises(RedactionFailed):
        REDACTOR.clean("abc" * 100)


def test_what_came_out_clean_is_remembered_and_what_went_in_is_not() -> None:
    remembering = Redactor()
    for number in range(2_000):
        assert remembering.clean(f"打 138{number:08} 找我 {number}") == f"打 [手机号] 找我 {number}"
        assert remembering.clean(f"打 138{number:08} 找我 {number}") == f"打 [手机号] 找我 {number}"
    assert len(remembering._clean_cache) <= redactor._MAX_CACHED
    assert all("[手机号]" in text for text in remembering._clean_cache)
