"""The JSON that other programs rely on: pinned value for value, and as its published types say."""

import inspect
import json
from typing import Any, Final, is_typeddict

import msgspec
import pytest

from sync.accounts.devices import DevicesJson
from sync.archive.model import ExportedJson
from sync.cloud.auth_port import AccountJson
from sync.cloud.status import RoundJson
from sync.contract import archive, daily, document, events, forgetting, health, notes, redaction, retention, status
from tests.contract.golden_json import FILE, as_text, samples

RESULTS: Final = {  # results of the product that are their own wire type
    "account_to_json": AccountJson,
    "devices_to_json": DevicesJson,
    "archive.export_to_json": ExportedJson,
    "sync_round_to_json": RoundJson,
}
PLAIN: Final = (document, events, health, status)


def functions() -> dict[str, Any]:
    """By name; those of the optional services are named with their module."""
    return {
        (name if module in PLAIN else f"{module.__name__.rpartition('.')[2]}.{name}"): found
        for module in (*PLAIN, archive, daily, forgetting, notes, redaction, retention)
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if found.__module__ == module.__name__ and is_typeddict(published(found))
    }


def published(function: Any) -> Any:
    """The type that a function says it answers."""
    returned = function.__annotations__.get("return")
    return getattr(inspect.getmodule(function), returned) if isinstance(returned, str) else returned


def test_every_function_has_a_sample() -> None:
    assert set(samples()) == {*functions(), *RESULTS}


@pytest.mark.parametrize("name", sorted(samples()))
def test_the_json_is_what_it_was(name: str) -> None:
    """To accept an intended change: python -m tests.contract.golden_json."""
    golden = json.loads(FILE.read_text("utf-8"))
    assert json.loads(msgspec.json.encode(samples()[name])) == golden[name]


def test_the_golden_file_holds_nothing_else() -> None:
    assert FILE.read_text("utf-8") == as_text()


@pytest.mark.parametrize("name", sorted(samples()))
def test_it_is_what_its_published_type_says(name: str) -> None:
    answered: Any = RESULTS.get(name) or published(functions()[name])
    for sample in json.loads(msgspec.json.encode(samples()[name])):
        assert json.loads(msgspec.json.encode(msgspec.convert(sample, answered, strict=True))) == sample
        if name not in RESULTS:
            assert set(sample) <= answered.__required_keys__ | answered.__optional_keys__
