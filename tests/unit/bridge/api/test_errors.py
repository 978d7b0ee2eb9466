"""The one table of failures."""

from collections.abc import Iterator

import msgspec
import pytest

from bridge.api import errors as failures
from sync import errors
from sync.errors import CloudUnavailable, InvalidInput, StorageFull, XiaobaiError, location_of


def family(root: type[XiaobaiError]) -> Iterator[type[XiaobaiError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from family(child)


@pytest.mark.parametrize("kind", sorted({error.kind for error in family(XiaobaiError)}))
def test_every_kind_of_the_tree_has_a_code_of_its_own(kind: str) -> None:
    assert kind in failures.ERROR_CODES


def test_a_code_belongs_to_one_kind_except_that_both_input_kinds_are_invalid_params() -> None:
    codes = [code for kind, code in failures.ERROR_CODES.items() if kind != "too_large"]
    assert len(codes) == len(set(codes))
    reserved = {-32001, -32002, -32096, -32097, -32098, -32099}
    assert not reserved & set(codes)


def test_a_known_error_tells_kind_hint_and_whether_waiting_helps() -> None:
    told = failures.rpc_error_of(StorageFull("no space left"))
    assert msgspec.json.decode(msgspec.json.encode(told)) == {
        "code": -32021,
        "message": "no space left",
        "data": {"kind": "storage_full", "hint": StorageFull.default_hint, "retryable": True},
    }


def test_bad_input_names_the_field_and_a_busy_server_the_seconds() -> None:
    assert failures.rpc_error_of(InvalidInput("too old", field="since")).data.field == "since"
    assert failures.rpc_error_of(CloudUnavailable("503", retry_after=2.5)).data.retry_after == 2.5


def test_an_unexpected_error_tells_its_class_and_nothing_of_its_text() -> None:
    told = failures.rpc_error_of(RuntimeError("13812345678"))
    assert told.code == failures.INTERNAL_ERROR
    assert "RuntimeError" in told.message
    assert b"13812345678" not in msgspec.json.encode(told)


def test_an_error_of_ours_is_found_inside_groups() -> None:
    group = ExceptionGroup("outer", [ValueError("x"), ExceptionGroup("inner", [StorageFull("full")])])
    assert failures.rpc_error_of(group).data.kind == "storage_full"


def test_a_new_kind_takes_the_code_of_its_ancestor() -> None:
    class Odd(StorageFull):
        kind = "odd"

    told = failures.rpc_error_of(Odd("odd"))
    assert (told.code, told.data.kind) == (failures.ERROR_CODES["storage_full"], "odd")


@pytest.mark.parametrize(("error", "code"), [(InvalidInput("x"), 2), (StorageFull("x"), 1), (RuntimeError("x"), 1)])
def test_exit_codes(error: Exception, code: int) -> None:
    assert failures.exit_code_of(error) == code


def test_people_read_what_happened_and_what_to_do() -> None:
    assert failures.terminal_lines(StorageFull("no space left")) == [
        "error: no space left",
        f"hint: {StorageFull.default_hint}",
    ]


def test_the_place_of_an_error_is_named_without_its_text() -> None:
    with pytest.raises(ValueError, match="secret") as caught:
        int("secret")
    place = location_of(caught.value)
    assert "test_errors.py" in place
    assert "secret" not in place
