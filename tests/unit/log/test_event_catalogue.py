"""The event catalogue holds every type that the product emits, and docs/events.md shows it."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

from sync.log import event_types
from sync.log.event_catalogue import CATALOGUE, DEVICE_LOCAL_TYPES, EVENT_TYPES, INTERNAL_TYPES
from sync.log.model import EventScope, scope_of
from sync.log.payload_schemas import PAYLOAD_SCHEMAS, is_known_type
from tests.event_catalogue import DOCUMENT, render_document
from tests.support import REPOSITORY

CATALOGUE_FILES: Final = {REPOSITORY / "sync" / "log" / name for name in ("event_types.py", "event_catalogue.py")}
# Where the type of a draft is not a constant: it was read from an event, or comes from one of these functions.
VARIABLE_TYPES: Final = {"foreign.type", "event.type", "change.event_type", "event_type", "kind"}
# Words that are also names in JSON, in the wire types of document diffs, and of the server's errors.
OTHER_MEANINGS: Final = {"message", "entry_added", "entry_edited", "entry_removed", "device_revoked"}
# Words of other programs' files that are also types.
FOREIGN_WORDS: Final = {
    ("sync/archive/agent_transcripts.py", "session_meta"),
    ("sync/archive/chat_exports.py", "tool_call"),
}


@cache
def product_modules() -> list[tuple[Path, ast.Module]]:
    paths = [path for package in ("sync", "bridge") for path in (REPOSITORY / package).rglob("*.py")]
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths if path not in CATALOGUE_FILES]


def test_what_ends_or_changes_something_or_stays_on_the_device_is_no_program_s_to_append() -> None:
    changing = {name for name in EVENT_TYPES if name.startswith(("device_", "payload_", "lesson_", "session_skipped"))}
    assert changing | DEVICE_LOCAL_TYPES < INTERNAL_TYPES
    appended = {name for name, one in EVENT_TYPES.items() if "other programs" in one.emitted_by}
    assert appended.isdisjoint(INTERNAL_TYPES)


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == render_document(), "run `python -m tests.event_catalogue`"


def test_every_constant_of_the_module_is_in_the_catalogue_once() -> None:
    constants = {
        value
        for name, value in vars(event_types).items()
        if name.isupper() and not name.startswith("_") and not name.endswith("_SUFFIX") and isinstance(value, str)
    }
    names = [one.name for group in CATALOGUE.values() for one in group]
    assert len(names) == len(set(names))
    assert set(names) == constants


def test_every_emitted_type_is_a_constant_of_the_catalogue() -> None:
    emitted = [
        ast.unparse(argument)
        for _, tree in product_modules()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "EventDraft"
        for argument in [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "type")]
    ]
    named = {text.removesuffix("[0]") for text in emitted} - VARIABLE_TYPES
    assert len(emitted) > len(VARIABLE_TYPES)
    assert [name for name in named if not hasattr(event_types, name)] == []


def test_no_other_module_spells_an_event_type() -> None:
    spelled = {
        (str(path.relative_to(REPOSITORY)), node.value)
        for path, tree in product_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in EVENT_TYPES.keys() - OTHER_MEANINGS
    }
    assert spelled == FOREIGN_WORDS


def test_emitters_are_modules_that_use_the_type() -> None:
    constants = {value: name for name, value in vars(event_types).items() if isinstance(value, str)}
    for one in EVENT_TYPES.values():
        for emitter in (name for name in one.emitted_by if " " not in name):
            source = (REPOSITORY / "sync" / f"{emitter.replace('.', '/')}.py").read_text(encoding="utf-8")
            named = constants[one.name] in source or (one.name == "session_finalized" and "SESSION_END_TYPES" in source)
            assert named, f"{emitter} does not emit {one.name}"


def test_every_checked_payload_belongs_to_a_known_type() -> None:
    assert set(PAYLOAD_SCHEMAS) <= set(EVENT_TYPES)
    assert is_known_type("message")
    assert not is_known_type("nonsense")


def test_only_device_local_types_stay_on_the_device() -> None:
    assert {name for name in EVENT_TYPES if scope_of(name) is EventScope.LOCAL} == DEVICE_LOCAL_TYPES
    assert scope_of("a type of another program") is EventScope.CLOUD
