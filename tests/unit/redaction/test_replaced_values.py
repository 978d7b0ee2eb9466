"""A value that redaction replaced in one field of an event goes from all its fields."""

from typing import Any

import pytest

from sync.log.ingest import DraftBuilder
from sync.redaction import Redactor
from tests.support import REDACTOR

SAID = "服务器密码是 hunter2xyz"


@pytest.mark.parametrize(
    ("beside", "remaining"),
    [
        ({"tags": ["服务器", "hunter2xyz"]}, {"tags": ["服务器", "[密码]"]}),
        ({"title": "hunter2xyz"}, {"title": "[密码]"}),
        ({"facts": ["登录用 hunter2xyz。"]}, {"facts": ["登录用 [密码]。"]}),
        ({"deep": {"list": [{"any": "a/hunter2xyz/b"}]}}, {"deep": {"list": [{"any": "a/[密码]/b"}]}}),
        ({"hunter2xyz": 1}, {"[密码]": 1}),
        ({"tag": "HUNTER2XYZ"}, {"tag": "[密码]"}),  # keywords are in small letters
        ({"tag": "ｈｕｎｔｅｒ２ｘｙｚ"}, {"tag": "[密码]"}),
        ({"tag": "hunter2xyzzy"}, {"tag": "hunter2xyzzy"}),  # another word
    ],
)
def test_a_replaced_value_goes_from_every_field(beside: dict[str, Any], remaining: dict[str, Any]) -> None:
    for payload in ({"text": SAID, **beside}, {**beside, "text": SAID}):
        cleaned = REDACTOR.clean_payload(payload).value
        assert cleaned == {"text": "服务器密码是 [密码]", **remaining}
        assert REDACTOR.clean_payload(cleaned).value == cleaned


def test_a_named_value_of_json_goes_from_the_other_fields() -> None:
    payload = {"password": "sesame", "note": "open sesame, then enter", "pin": 884812, "n": 884812}
    assert REDACTOR.clean_payload(payload).value == {
        "password": "[密码]", "note": "open [密码], then enter", "pin": "[密码]", "n": "[密码]",
    }  # fmt: skip


def test_a_short_value_goes_only_as_an_item_of_its_own() -> None:
    payload = {"cvv": "737", "tags": ["737", "boeing 737"], "text": "the 737 took off at 7:37", "n": 737}
    assert REDACTOR.clean_payload(payload).value == {
        "cvv": "[密码]", "tags": ["[密码]", "boeing 737"], "text": "the 737 took off at 7:37", "n": 737,
    }  # fmt: skip


def test_a_word_of_a_fixed_list_stays_although_it_is_the_password() -> None:
    payload = {"role": "assistant", "content": "password=assistant"}
    assert REDACTOR.clean_payload(payload).value == {"role": "assistant", "content": "password=[密码]"}


def test_the_extra_fields_and_the_path_of_an_event_lose_it_too() -> None:
    event = {
        "type": "session_meta", "payload": {"title": SAID}, "project_path": "/home/me/hunter2xyz",
        "of_program": "hunter2xyz",
    }  # fmt: skip
    draft = DraftBuilder(REDACTOR, store_messages=True).build(event)
    assert draft.project_path == "/home/me/[密码]"
    assert draft.extra is not None
    assert draft.extra.value == {"of_program": "[密码]"}


def test_the_turns_of_a_conversation_are_cleaned_together() -> None:
    turns = [(False, "记一下 hunter2xyz"), (True, "好的"), (False, SAID), (True, "记住了：hunter2xyz")]
    assert REDACTOR.clean_turns(turns) == ["记一下 [密码]", "好的", "服务器密码是 [密码]", "记住了：[密码]"]
    assert Redactor(enabled=False).clean_turns(turns) == [text for _, text in turns]


def test_many_values_of_one_event_all_go() -> None:
    names = [f"hunter{number}xyz" for number in range(300)]
    payload = {"text": "\n".join(f"password: {name}" for name in names), "tags": names}
    assert "xyz" not in str(REDACTOR.clean_payload(payload).value)
