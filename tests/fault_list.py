"""Write docs/faults.md from tests/faults.toml: `python -m tests.fault_list`.

The TOML file names each test exactly; the document links to the files that hold them.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.support import REPOSITORY

DATA: Final = REPOSITORY / "tests" / "faults.toml"
DOCUMENT: Final = REPOSITORY / "docs" / "faults.md"
PYTHON_TESTS: Final = REPOSITORY / "tests"
NODE_TESTS: Final = REPOSITORY / "electron-snippets" / "test"
INTRODUCTION: Final = """\
# Faults

What can go wrong, what the program then does, and the tests that show it. A number in brackets counts the tests of a
file.

Generated from `tests/faults.toml` by `python -m tests.fault_list`; do not edit. `tests/repository/test_fault_list.py`
checks that every test named there exists and that a fault without a test has a reason.
"""


@dataclass(frozen=True)
class Fault:
    """One row. `tests` are `path::name` below tests/, or below electron-snippets/test/ for a `.js` file."""

    area: str
    fault: str
    outcome: str
    tests: tuple[str, ...] = ()
    untested: str = ""  # the reason, if no test shows it


def read_faults(path: Path = DATA) -> list[Fault]:
    rows = tomllib.loads(path.read_text("utf-8"))["faults"]
    return [Fault(**{**row, "tests": tuple(row.get("tests", ()))}) for row in rows]


def file_of(test: str) -> Path:
    """The file of a test named as in the list."""
    path = test.partition("::")[0]
    return (NODE_TESTS if path.endswith(".js") else PYTHON_TESTS) / path


def render(faults: list[Fault]) -> str:
    """The document, a table for each area."""
    lines = [INTRODUCTION]
    for area, rows in groupby(faults, key=lambda fault: fault.area):
        lines += [f"## {area}\n", "| What goes wrong | What happens | Tests |", "|---|---|---|"]
        lines += [f"| {row.fault} | {row.outcome} | {'; '.join(_links(row))} |" for row in rows] + [""]
    return "\n".join(lines)


def _links(fault: Fault) -> Iterator[str]:
    for file, count in Counter(map(file_of, fault.tests)).items():
        words = file.stem.removeprefix("test_").removesuffix(".test").replace("_", " ")
        target = Path("..") / file.relative_to(REPOSITORY)
        yield f"[{words}]({target.as_posix()})" + (f" ({count})" if count > 1 else "")
    if fault.untested:
        yield f"not tested: {fault.untested}"


if __name__ == "__main__":
    DOCUMENT.write_text(render(read_faults()), "utf-8")
