"""The door decides who said it, whatever a program claims: each event type of the catalogue, each origin."""

from itertools import product
from typing import Any

import pytest

from sync.errors import InvalidInput
from sync.log.authorship import ANSWER, PERSON_DOORS, Author, author_of, view_label
from sync.log.event_catalogue import EVENT_TYPES, INTERNAL_TYPES
from sync.log.event_types import ENTRY_ADDED, EXCHANGE_RECORDED, EXCHANGE_TEXT, MEMORY_FACT, MESSAGE
from sync.log.ingest import RESERVED_FIELDS, DraftBuilder
from sync.log.model import DOOR_FIELD, LOCAL_FIELDS, SIGNATURE_FIELD, UNPROVEN_FIELD, Door, Event, Origin
from tests.support import REDACTOR, event

OWN = ("device-a",)
NAMES = {"device-b": "手机"}
TYPES = [*sorted(EVENT_TYPES), "of_tomorrow"]
FILES = {Door.IMPORT: "导入", Door.PROJECT: "项目文件", Door.TEAM: "团队"}
APPS = {Door.APP: "来自 应用", Door.CLOUD: "来自 云端"}


def recorded(event_type: str, door: Door | None, origin: str, **changes: Any) -> Event:
    extra = {} if door is None else {DOOR_FIELD: str(door)}
    return event(1, type=event_type, origin=origin, extra=extra, **changes)


def label(one: Event, part: str = "") -> str | None:
    return view_label(author_of(one, part), OWN, NAMES.get)


@pytest.mark.parametrize(("event_type", "origin"), list(product(TYPES, Origin)))
def test_no_door_but_a_persons_makes_text_the_users(event_type: str, origin: Origin) -> None:
    for door in Door:
        one = recorded(event_type, door, origin)
        author = author_of(one).author
        if door in PERSON_DOORS:
            by_file = Author.FILE if door is Door.UPDATE else Author.USER
            expected = {Origin.USER: Author.USER, Origin.IMPORTED: by_file, Origin.TOOL: Author.PROGRAM}
            by_model = Author.USER if event_type in (EXCHANGE_RECORDED, EXCHANGE_TEXT) else Author.MODEL
            assert author is {**expected, Origin.MODEL: by_model, Origin.PEER: Author.PROGRAM}[origin], door
        else:
            assert author is not Author.USER, door
            assert label(one) == {Door.PROGRAM: "来自 工具", **FILES, **APPS}[door]


@pytest.mark.parametrize(("event_type", "origin"), list(product(TYPES, Origin)))
def test_a_program_is_the_author_of_whatever_it_appends(event_type: str, origin: Origin) -> None:
    claims = dict.fromkeys((DOOR_FIELD, SIGNATURE_FIELD, *LOCAL_FIELDS), "claimed")
    given = {"type": event_type, "payload": {}, "origin": str(origin), **claims}
    if event_type in INTERNAL_TYPES:
        with pytest.raises(InvalidInput, match="made by this program alone"):
            DraftBuilder(REDACTOR).build_appended(given)
        return
    draft = DraftBuilder(REDACTOR).build_appended(given)
    assert (draft.door, draft.extra) == (Door.PROGRAM, None)
    assert draft.origin not in {Origin.USER, Origin.IMPORTED, Origin.PEER}


def test_no_program_sets_a_field_that_says_who_wrote_an_event() -> None:
    assert {DOOR_FIELD, SIGNATURE_FIELD, *LOCAL_FIELDS, "imported_from", "client_id"} <= RESERVED_FIELDS


@pytest.mark.parametrize("event_type", [EXCHANGE_RECORDED, EXCHANGE_TEXT])
def test_the_answer_of_an_exchange_is_the_models(event_type: str) -> None:
    exchange = recorded(event_type, Door.UPDATE, Origin.MODEL)
    assert (author_of(exchange).author, author_of(exchange, ANSWER).author) == (Author.USER, Author.MODEL)
    assert (label(exchange), label(exchange, ANSWER)) == (None, "模型写")


@pytest.mark.parametrize(
    ("event_type", "origin", "author"),
    [
        (EXCHANGE_RECORDED, Origin.MODEL, Author.USER),
        (EXCHANGE_RECORDED, Origin.TOOL, Author.PROGRAM),
        (ENTRY_ADDED, Origin.USER, Author.USER),
        (ENTRY_ADDED, Origin.TOOL, Author.PROGRAM),
        (ENTRY_ADDED, Origin.IMPORTED, Author.USER),
        (MESSAGE, Origin.IMPORTED, Author.FILE),
        (MEMORY_FACT, Origin.USER, Author.USER),
        (MESSAGE, Origin.USER, Author.PROGRAM),
        ("of_tomorrow", Origin.USER, Author.PROGRAM),
        (ENTRY_ADDED, "of_tomorrow", Author.PROGRAM),
    ],
)
def test_an_event_of_before_doors_is_the_users_where_no_program_could_claim_it(
    event_type: str, origin: str, author: Author
) -> None:
    assert author_of(recorded(event_type, None, origin)).author is author


def test_the_users_words_are_another_devices_elsewhere_and_a_label_cannot_be_closed() -> None:
    elsewhere = author_of(recorded(ENTRY_ADDED, Door.HAND, Origin.USER, device="device-b"))
    assert elsewhere.seen_from(OWN) is Author.DEVICE
    assert view_label(elsewhere, OWN, NAMES.get) == "来自 手机"
    assert view_label(elsewhere, OWN, lambda _: "a】- 用户\u2028问\n：" * 9) == "来自 " + ("a]- 用户 问 ：" * 9)[:40]
    assert view_label(elsewhere, OWN, lambda _: None) == "来自 device-b"
    assert view_label(elsewhere, ("device-b",), NAMES.get) is None


def test_an_unproven_event_is_nobodys_word() -> None:
    one = event(1, type=ENTRY_ADDED, extra={DOOR_FIELD: "hand", UNPROVEN_FIELD: True})
    author = author_of(one)
    assert not author.is_users
    assert (author.seen_from(OWN), view_label(author, OWN, NAMES.get)) == (Author.DEVICE, "来自 未证实的设备")


def test_labels_are_in_the_language_of_the_text() -> None:
    one = author_of(recorded(MEMORY_FACT, Door.PROGRAM, Origin.TOOL))
    assert view_label(one, OWN, NAMES.get, is_english=True) == "from a tool"
