"""The OpenRPC document names every type once, with a name that generated clients can declare."""

from typing import TypedDict

import pytest

from bridge.methods.door import Door
from bridge.methods.openrpc import document
from bridge.methods.registry import TABLE
from bridge.methods.table import Context, Method, NoParams, Table
from sync.published import RefusalJson


async def _first(context: Context[Door], params: NoParams) -> RefusalJson:
    raise NotImplementedError


def _second() -> Method[Door, NoParams]:
    class RefusalJson(TypedDict):
        other: str

    async def call(context: Context[Door], params: NoParams) -> object:
        raise NotImplementedError

    call.__annotations__["return"] = RefusalJson
    return Method("b", NoParams, call, "b")


def test_every_described_type_has_a_plain_name() -> None:
    assert all(name.isidentifier() for name in document(TABLE)["components"]["schemas"])


def test_two_types_with_the_same_class_name_are_refused() -> None:
    rows: Table[Door] = Table([Method("a", NoParams, _first, "a"), _second()])
    with pytest.raises(ValueError, match=r"same class name: .*RefusalJson"):
        document(rows)
