"""INDEX.md and notes: what an edit does not name keeps its bytes, and what is written is read again."""

from hypothesis import given
from hypothesis import strategies as st

from sync.notes.index_format import index_of, parse_index
from sync.notes.model import INDEX_COLUMNS
from sync.notes.note_format import parse_note, with_bullet, with_meta

LINES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=30)
TEXTS = st.lists(LINES, max_size=12).map("\n".join)
WORDS = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=12)
CELLS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), max_size=12).map(
    lambda cell: cell.replace("\\", "")
)
ROWS = st.dictionaries(WORDS, st.dictionaries(st.sampled_from(INDEX_COLUMNS[1:]), CELLS), min_size=1, max_size=5)
NOTE = """# 标题

## Meta

- **Id**: MEM-1
- **Status**: active

## When to load

- 部署时

## One-liner (for injection)

先备份。
"""


@given(ROWS)
def test_rows_are_read_as_they_were_written(rows: dict[str, dict[str, str]]) -> None:
    index = index_of({"Id": note_id, **values} for note_id, values in rows.items())
    again = parse_index(index.render())
    assert again is not None
    assert again.render() == index.render()
    for note_id, values in rows.items():
        found = again.rows[note_id]
        assert {name: found[name] for name in values} == values


@given(TEXTS, ROWS, TEXTS, WORDS)
def test_a_changed_row_leaves_every_other_byte(
    head: str, rows: dict[str, dict[str, str]], tail: str, title: str
) -> None:
    table = index_of({"Id": note_id, **values} for note_id, values in rows.items()).render()
    text = f"{head.replace('|', '')}\n\n{table}\n{tail.replace('|', '')}"
    index = parse_index(text)
    assert index is not None
    assert index.render() == text
    changed_id = next(iter(rows))
    changed = index.with_row({"Id": changed_id, "Title": title}).render()
    different = [(one, two) for one, two in zip(text.split("\n"), changed.split("\n"), strict=True) if one != two]
    assert len(different) <= 1
    assert all(one.startswith(f"| {changed_id} ") for one, _ in different)


@given(TEXTS, WORDS)
def test_an_edit_of_meta_keeps_the_rest_of_a_note(extra: str, status: str) -> None:
    text = f"{NOTE}\n## Pointers\n\n{extra}"
    edited = with_meta(text, {"Status": status})
    assert edited == text.replace("- **Status**: active", f"- **Status**: {status}", 1)
    assert parse_note(edited).meta["Status"] == status


@given(WORDS)
def test_a_line_is_added_once(line: str) -> None:
    added = with_bullet(NOTE, "When to load", line)
    assert line in parse_note(added).when_to_load
    assert with_bullet(added, "When to load", line) == added
    assert with_meta(with_bullet(NOTE, "Pointers", line), {}).startswith(NOTE)


@given(TEXTS)
def test_any_text_can_be_read_and_edited(text: str) -> None:
    note = parse_note(text)
    assert note.text == text
    assert (
        parse_note(with_meta(text, {"Status": "archive"})).meta["Status"] == "archive" or "```" in text or "~~~" in text
    )
