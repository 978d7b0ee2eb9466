"""The OpenRPC document names every type once, with a name that generated clients can declare."""

from typing import TypedDict

import pytest

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Method, MethodTable, NoParams
from bridge.api.openrpc import openrpc_document
from bridge.methods.registry import METHOD_TABLE
from sync.contract.events import RefusalJson


async def _first(context: Context[AppProvider], params: NoParams) -> RefusalJson:
    raise NotImplementedError


def _second() -> Method[AppProvider, NoParams]:
    class RefusalJson(TypedDict):
        other: str

    async def call(context: Context[AppProvider], params: NoParams) -> object:
        raise NotImplementedError

    call.__annotations__["return"] = RefusalJson
    return Method("b", NoParams, call, "b")


def test_every_described_type_has_a_plain_name() -> None:
    assert all(name.isidentifier() for name in openrpc_document(METHOD_TABLE)["components"]["schemas"])


def test_two_types_with_the_same_class_name_are_refused() -> None:
    rows: MethodTable[AppProvider] = MethodTable([Method("a", NoParams, _first, "a"), _second()])
    with pytest.raises(ValueError, match=r"same class name: .*RefusalJson"):
        openrpc_document(rows)
