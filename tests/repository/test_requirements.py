"""docs/requirements.md names tests that exist and deviations that it explains."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?!Requirement|---|\|)(.+?) \| (.+) \|$", re.MULTILINE)


def test_every_requirement_names_a_test_that_exists_or_a_deviation() -> None:
    text, _, deviations = (ROOT / "docs" / "requirements.md").read_text("utf-8").partition("## Deviations")
    explained = set(re.findall(r"^\| (D\d+) \|", deviations, re.MULTILINE))
    files = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tests = {name for file in files for name in re.findall(r"^ *(?:async )?def (test_\w+)", file, re.MULTILINE)}
    rows = ROW.findall(text)
    assert len(rows) == 174
    shown = [(requirement, re.split(r"`?, `?|`", cell.strip("`"))) for requirement, cell in rows]
    assert [(name, where) for where, names in shown for name in names if name not in tests | explained] == []
    assert explained == {name for _, names in shown for name in names if name.startswith("D")}
