"""docs/faults.md names tests: each of them exists, and a fault without a test has a reason."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support import REPOSITORY

LIST: Final = REPOSITORY / "docs" / "faults.md"
NAMED: Final = re.compile(r"`([^`]+\.(?:py|js)::[^`]+)`")
REASON: Final = re.compile(r"not yet: \w{2,}")
PYTHON, NODE = REPOSITORY / "tests", REPOSITORY / "electron-snippets" / "test"


def complaints(document: str) -> Iterator[str]:
    """What is wrong with a list of faults, one sentence each."""
    rows = [line.strip().strip("|").split("|") for line in document.splitlines() if line.startswith("| ")][1:]
    if not rows:
        yield "no row was found"
    for row in rows:
        if len(row) != 3 or not all(cell.strip() for cell in row):
            yield f"not three cells: {row}"
            continue
        fault, _, shown = (cell.strip() for cell in row)
        named = NAMED.findall(shown)
        if not named and not REASON.search(shown):
            yield f"neither test nor reason: {fault}"
        if "::" in NAMED.sub("", shown):
            yield f"not understood: {NAMED.sub('', shown)}"
        yield from (f"no such test: {name}" for name in named if not exists(name))


def exists(name: str) -> bool:
    path, _, test = name.partition("::")
    return test in (titles_in(NODE / path) if path.endswith(".js") else named_in(PYTHON / path))


@cache
def named_in(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, without running it."""
    if not path.is_file():
        return frozenset()
    return frozenset(walked(ast.parse(path.read_text("utf-8")).body, ""))


def walked(body: list[ast.stmt], before: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from walked(node.body, f"{before}{node.name}::")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield f"{before}{node.name}"


@cache
def titles_in(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"^ *test\('([^']+)'", path.read_text("utf-8"), flags=re.MULTILINE))


def test_the_list_names_only_tests_that_exist_and_says_why_where_there_is_none() -> None:
    assert list(complaints(LIST.read_text("utf-8"))) == []


HEAD = "| fault | what the program does | shown by |\n|---|---|---|\n"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("| x | y | `unit/test_faults_list.py::test_nothing` |", "no such test"),
        ("| x | y | `unit/no_such_file.py::test_nothing` |", "no such test"),
        ("| x | y | `client.test.js::no such title` |", "no such test"),
        ("| x | y | somebody looked at it |", "neither test nor reason"),
        ("| x | y | not yet: |", "neither test nor reason"),
        ("| x | y | unit/db/test_engine.py::test_unquoted, not yet: later |", "not understood"),
        ("| x | y | |", "not three cells"),
        ("| x | y |", "not three cells"),
        ("", "no row was found"),
    ],
)
def test_a_list_that_has_rotted_is_found(row: str, complaint: str) -> None:
    (found,) = complaints(HEAD + row)
    assert complaint in found


@pytest.mark.parametrize(
    "shown",
    [
        "`unit/test_faults_list.py::test_a_list_that_has_rotted_is_found`",
        (
            "`acceptance/reliability/test_durability.py::TestKilled::test_the_lock_of_a_killed_sidecar_is_free`; "
            "not yet: the rest"
        ),
        "`client.test.js::many calls at once get their own answers`",
        "not yet: there is no such thing here",
    ],
)
def test_a_sound_row_is_accepted(shown: str) -> None:
    assert list(complaints(f"{HEAD}| x | y | {shown} |")) == []
