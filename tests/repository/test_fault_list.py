"""tests/faults.toml names tests: each of them exists, and a fault without a test has a reason."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.fault_list import DOCUMENT, Fault, file_of, read_faults, render


def complaints(faults: list[Fault]) -> Iterator[str]:
    """What is wrong with the list, one sentence each."""
    for fault in faults:
        if not fault.tests and not fault.untested.strip():
            yield f"neither test nor reason: {fault.fault}"
        for cell in (fault.area, fault.fault, fault.outcome):
            if not cell.strip() or "|" in cell or "\n" in cell:
                yield f"not a cell of a table: {cell!r}"
        yield from (f"no such test: {name}" for name in fault.tests if not exists(name))


def exists(name: str) -> bool:
    path = file_of(name)
    return name.partition("::")[2] in (titles_in(path) if path.suffix == ".js" else names_in(path))


@cache
def names_in(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, without running it."""
    if not path.is_file():
        return frozenset()
    return frozenset(walk(ast.parse(path.read_text("utf-8")).body, ""))


def walk(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from walk(node.body, f"{prefix}{node.name}::")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield f"{prefix}{node.name}"


@cache
def titles_in(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"^ *test\('([^']+)'", path.read_text("utf-8"), flags=re.MULTILINE))


def test_the_list_names_only_tests_that_exist_and_gives_a_reason_if_there_is_none() -> None:
    assert list(complaints(read_faults())) == []


def test_the_document_is_generated_from_the_list() -> None:
    assert DOCUMENT.read_text("utf-8") == render(read_faults()), "python -m tests.fault_list"


THIS = "repository/test_fault_list.py"


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (Fault("area", "x", "y", (f"{THIS}::test_nothing",)), "no such test"),
        (Fault("area", "x", "y", ("unit/no_such_file.py::test_nothing",)), "no such test"),
        (Fault("area", "x", "y", ("client.test.js::no such title",)), "no such test"),
        (Fault("area", "x", "y"), "neither test nor reason"),
        (Fault("area", "x", "y", untested=" "), "neither test nor reason"),
        (Fault("area", "x", "", untested="why"), "not a cell"),
        (Fault("area", "x | z", "y", untested="why"), "not a cell"),
    ],
)
def test_a_bad_row_is_found(fault: Fault, complaint: str) -> None:
    (found,) = complaints([fault])
    assert complaint in found


@pytest.mark.parametrize(
    "fault",
    [
        Fault("area", "x", "y", (f"{THIS}::test_a_bad_row_is_found",)),
        Fault(
            "area",
            "x",
            "y",
            ("acceptance/reliability/test_durability.py::TestKilled::test_the_lock_of_a_killed_sidecar_is_free",),
        ),
        Fault("area", "x", "y", ("client.test.js::many calls at once get their own answers",)),
        Fault("area", "x", "y", untested="there is no such thing here"),
    ],
)
def test_a_good_row_is_accepted(fault: Fault) -> None:
    assert list(complaints([fault])) == []
