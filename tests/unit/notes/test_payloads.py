"""Payloads: all faults at once, or all payloads."""

import re

import pytest

from sync.errors import InvalidInput
from sync.notes.payloads import parse_payloads, payload_of, payload_to_json

GOOD = {
    "scene": "选择数据库时",
    "principles": ["用 PostgreSQL", "用 MySQL"],
    "choice": "用 PostgreSQL",
    "source": "choice",
    "confidence": "high",
}


def test_a_payload_has_defaults_and_comes_back_the_same() -> None:
    (payload,) = parse_payloads([{**GOOD, "scores": {"D1": 2, "D2": 1, "D3": 0, "D4": 1, "D5": 2}}])
    assert (payload.apply, payload.evidence, payload.rejected) == ("project", "", ("用 MySQL",))
    assert payload_of(payload_to_json(payload)) == payload


def test_every_fault_of_every_payload_is_named_at_once() -> None:
    bad = {"scene": " ", "principles": "x", "source": "mail", "mood": 1, "scores": {"D1": 3, "D6": 1}}
    with pytest.raises(InvalidInput) as caught:
        parse_payloads([GOOD, bad, 7])
    places = re.findall(r"payloads\[\d\][\w.\[\]]*", caught.value.message)
    assert set(places) >= {
        *(f"payloads[1].{name}" for name in ("mood", "scene", "choice", "principles", "source", "confidence")),
        *(f"payloads[1].scores.{name}" for name in ("D6", "D1", "D2", "D3", "D4", "D5")),
        "payloads[2]",
    }
    assert "payloads[0]" not in caught.value.message
    assert caught.value.field == "payloads[1].mood"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"choice": "用 SQLite"}, "choice"),
        ({"apply": "world"}, "apply"),
        ({"principles": ["a", 3]}, "principles[1]"),
        ({"evidence": 5}, "evidence"),
        ({"scene": "长" * 2_001}, "scene"),
    ],
)
def test_a_single_fault_names_its_place(change: dict[str, object], place: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"payloads[0].{place}")):
        parse_payloads([{**GOOD, **change}])


def test_only_an_array_is_taken() -> None:
    with pytest.raises(InvalidInput):
        parse_payloads(GOOD)
    assert parse_payloads([]) == []


def test_a_payload_that_no_event_can_hold_is_refused() -> None:
    texts = [f"{at}" + "长" * 1_990 for at in range(10)]
    with pytest.raises(InvalidInput, match=r"payloads\[1\] is \d+ bytes"):
        parse_payloads([GOOD, {**GOOD, "principles": texts, "choice": texts[0]}])
