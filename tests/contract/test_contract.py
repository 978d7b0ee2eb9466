"""The JSON that other programs rely on: pinned value for value, and as its published types say."""

import inspect
import json
from typing import Any

import msgspec
import pytest

from sync import contract
from sync.contract import archive, redaction
from tests.contract.golden_values import FILE, as_text, samples


def functions() -> dict[str, Any]:
    """By name; those of a room with the room before it."""
    return {
        (name if module is contract else f"{module.__name__.rpartition('.')[2]}.{name}"): found
        for module in (contract, archive, redaction)
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if found.__module__ == module.__name__ and not name.startswith("_")
    }


def test_every_function_has_a_sample() -> None:
    assert set(samples()) == set(functions())


@pytest.mark.parametrize("name", sorted(samples()))
def test_the_json_is_what_it_was(name: str) -> None:
    """Where a change is meant: python -m tests.contract.golden_values."""
    golden = json.loads(FILE.read_text("utf-8"))
    assert json.loads(json.dumps(samples()[name])) == golden[name]


def test_the_golden_file_holds_nothing_else() -> None:
    assert FILE.read_text("utf-8") == as_text()


@pytest.mark.parametrize("name", sorted(samples()))
def test_it_is_what_its_published_type_says(name: str) -> None:
    function = functions()[name]
    published = getattr(inspect.getmodule(function), function.__annotations__["return"])
    for sample in samples()[name]:
        assert msgspec.convert(sample, published, strict=True) == sample
        assert set(sample) <= published.__required_keys__ | published.__optional_keys__
