"""The methods table and its parameters."""

import sys
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec.structs import replace

from bridge.api.method_table import Context, LazyMethod, Method, MethodTable, NoParams, Params
from bridge.methods.registry import METHOD_TABLE
from sync.errors import InvalidInput


class LoadParams(Params, frozen=True):
    wait_ms: Annotated[int, msgspec.Meta(ge=0)] = 150
    scope: Literal["user", "device"] = "user"
    weights: dict[str, float] = msgspec.field(default_factory=dict)


class DayParams(Params, frozen=True):
    """Parameters with a form."""

    day: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}$", examples=["2026-01"])] | None = None
    kinds: tuple[Literal["fact", "entry"], ...] = ()


class UpdateParams(Params, frozen=True):
    user_message: str


async def load(context: Context[str], params: LoadParams) -> str:
    context.report_progress("t", 1)
    return f"{context.app} {params.wait_ms}"


async def nothing(_context: Context[str], _params: Params) -> None: ...


LOAD = Method("memory/load", LoadParams, load, "Loads.")
UPDATE = Method("memory/update", UpdateParams, nothing, "Updates.")
DAY = Method("daily/show", DayParams, nothing, "Shows.")
PING = Method("ping", NoParams, nothing, "Answers.")


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        (LOAD, {"waitMs": "150"}, "waitMs"),
        (LOAD, {"waitMs": -1}, "waitMs"),
        (LOAD, {"waitMs": 1.5}, "waitMs"),
        (LOAD, {"wait_ms": 1}, "wait_ms"),
        (LOAD, {"scope": "all"}, "scope"),
        (LOAD, {"unknown": 1}, "unknown"),
        (LOAD, {"weights": {"a": "b"}}, "weights[...]"),
        (UPDATE, {}, "userMessage"),
        (UPDATE, None, "userMessage"),
        (UPDATE, {"userMessage": None}, "userMessage"),
        (PING, {"x": 1}, "x"),
    ],
)
def test_a_bad_parameter_is_named_as_the_caller_wrote_it(
    method: Method[str, Params], params: object, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        method.decode_params(params)
    assert caught.value.field == field
    assert field.split("[", maxsplit=1)[0] in caught.value.message


@pytest.mark.parametrize(
    ("method", "params", "hint"),
    [
        (LOAD, {"scope": "all"}, "Give one of device, user; nothing was done."),
        (DAY, {"kinds": ["fakt"]}, "Give one of entry, fact; nothing was done."),
        (DAY, {"day": "yesterday"}, "Give it as 2026-01; nothing was done."),
        (DAY, {"day": 5}, InvalidInput.default_hint),
    ],
)
def test_the_hint_says_what_is_accepted(method: Method[str, Params], params: object, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        method.decode_params(params)
    assert caught.value.hint == hint


def test_positional_parameters_are_refused_but_an_empty_list_is_none() -> None:
    with pytest.raises(InvalidInput):
        LOAD.decode_params([150])
    assert LOAD.decode_params([]) == LoadParams()


def test_a_long_value_is_not_repeated_in_the_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        LOAD.decode_params({"scope": "x" * 10_000})
    assert len(caught.value.message) < 400


async def test_the_command_line_calls_through_the_same_table() -> None:
    told: list[tuple[str, object]] = []
    context = Context("app", lambda method, params=None: told.append((method, params)))
    assert await MethodTable([LOAD]).call("memory/load", context, {"waitMs": 5}) == "app 5"
    assert told == [("$/progress", {"token": "t", "value": 1})]
    assert context.remaining() is None


def test_a_duplicate_name_is_a_defect() -> None:
    with pytest.raises(ValueError, match="ping"):
        MethodTable([PING, PING])


async def test_a_lazy_row_is_imported_at_its_first_call() -> None:
    module = "bridge.methods.log.watermarks"
    sys.modules.pop(module, None)
    row = LazyMethod("watermarks/get", f"{module}:get_watermark")
    table: MethodTable[object] = MethodTable([row])
    assert list(table) == ["watermarks/get"]
    assert module not in sys.modules
    method = await table.resolve("watermarks/get")
    assert module in sys.modules
    assert method.params_type is sys.modules[module].Get
    assert table["watermarks/get"] is method


def test_every_row_of_the_registry_resolves() -> None:
    assert all(METHOD_TABLE[name].name == name for name in METHOD_TABLE)


def test_a_wrapper_is_applied_to_every_method() -> None:
    rows: list[Method[str, Any]] = [LOAD, PING]
    table = MethodTable(rows).wrapped(lambda method: replace(method, timeout=1.0))
    assert [method.timeout for method in table.values()] == [1.0, 1.0]
