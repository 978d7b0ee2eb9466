"""Memory files, notes and folders of other programs: what becomes a line of the document, and what a dated record."""

import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sync.archive.model import Skipped
from sync.daily.model import Record
from sync.daily.records.records_cache import RecordsCache
from sync.errors import InvalidInput
from sync.log.authorship import Author, author_of
from sync.log.model import Event
from tests.integration.archive.test_import_sources import PAGE, events, import_file
from tests.integration.document.harness import DocumentHarness, open_document_harness

MEMORY_OF_ANOTHER = """\
# MEMORY.md - Long-term memory

> Curated. Distilled from daily notes.

## About the owner
- **Name:** Kim
- 对芒果过敏

## Rules
### Rule 1: commits
- small commits, English subjects
- never push on Fridays

## Lessons learned
The staging database is reset every night.

## 2025-11-03 Move
- The kiln is in the garage.
"""
WRITTEN_AT = datetime(2025, 12, 24, 12, tzinfo=UTC).timestamp()


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home") as harness:
        yield harness


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
        os.utime(folder / name, (WRITTEN_AT, WRITTEN_AT))
    return folder


async def records(harness: DocumentHarness) -> list[Record]:
    found = (await RecordsCache(harness.log).current_records()).by_id.values()
    return sorted(found, key=lambda record: (record.moment, record.content.topic))


def event_of(found: tuple[Event, ...], text: str) -> Event:
    return next(event for event in found if text in str(event.payload.get("text")))


async def test_a_memory_of_another_assistant_becomes_lines_below_its_headings_once(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    path = written(tmp_path, {"MEMORY.md": MEMORY_OF_ANOTHER}) / "MEMORY.md"

    taken = await import_file(harness, path)

    assert (taken.source, taken.recorded, taken.refused) == ("memory_file", 7, 0)
    for shown in (
        "## About the owner\n- **Name:** Kim\n- 对芒果过敏\n",
        "## Rules\n\n### Rule 1: commits\n- small commits, English subjects\n- never push on Fridays\n",
        "## Lessons learned\nThe staging database is reset every night.\n",
    ):
        assert shown in harness.text
    assert "> Curated. Distilled from daily notes." in harness.text
    found = await events(harness)
    assert {author_of(event).author for event in found} == {Author.FILE}
    assert not [event for event in found if event.type == "memory_fact"]
    assert event_of(found, "staging").local_date == "2025-12-24"  # the file's time
    assert event_of(found, "garage").local_date == "2025-11-03"  # the heading's
    assert (await import_file(harness, path)).recorded == 0


async def test_front_matter_dates_a_memory_and_is_no_line(harness: DocumentHarness, tmp_path: Path) -> None:
    text = "---\ntitle: About me\ncreated: 2025-10-05T09:00:00\n---\nI work in [[Hamburg]].\n"

    await import_file(harness, written(tmp_path, {"about.md": text}) / "about.md")

    (event,) = await events(harness)
    assert (event.payload["text"], event.local_date) == ("I work in [[Hamburg]].", "2025-10-05")


async def test_text_without_headings_is_a_memory_too(harness: DocumentHarness, tmp_path: Path) -> None:
    path = written(tmp_path, {"USER.txt": "Prefers tea.\nLives in Kiel.\n"}) / "USER.txt"

    assert (await import_file(harness, path)).recorded == 2
    assert "Prefers tea.\nLives in Kiel." in harness.text


@pytest.mark.parametrize("text", ["[[Glaze]] is copper red.\n", "{x} [2025-11-03] Lives in Kiel.\n"])
async def test_a_text_that_begins_like_json_is_a_text(harness: DocumentHarness, tmp_path: Path, text: str) -> None:
    assert (await import_file(harness, written(tmp_path, {"a.md": text}) / "a.md")).recorded == 1


async def test_day_notes_are_records_of_their_days_and_a_memory_beside_them_is_lines(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    folder = written(
        tmp_path / "workspace",
        {
            "MEMORY.md": "## Rules\n- never push on Fridays\n",
            "memory/2025-11-20.md": "# 2025-11-20\n\n## Kiln\n- fired at 950\n\n```sh\nmake kiln\n```\n",
            "memory/2025-11-21-glaze.md": "* [ ] order copper\n",
            "memory/empty.md": "# Nothing\n",
            ".git/HEAD": "ref",
            "notes.pdf": "%PDF",
        },
    )

    taken = await import_file(harness, folder)

    assert (taken.recorded, taken.conversations) == (3, 0)
    assert +taken.skipped == {Skipped.HIDDEN_FILES: 1, Skipped.OTHER_FILES: 1}
    assert taken.refusals == [("empty.md", "there is no memory in it")]
    assert "## Rules\n- never push on Fridays" in harness.text
    first, second = await records(harness)
    assert (first.date, first.content.topic, first.content.facts) == (
        "2025-11-20",
        "memory/2025-11-20",
        ("Kiln", "fired at 950"),
    )
    assert (first.content.code[0].language, first.content.code[0].text) == ("sh", "make kiln")
    assert (second.date, second.content.facts, second.written.author) == ("2025-11-21", ("order copper",), Author.FILE)
    assert second.project_path is None
    assert (await import_file(harness, folder)).recorded == 0


async def test_an_obsidian_vault_is_records_and_its_hidden_folders_and_attachments_are_counted(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    long = "\n".join(f"- line {number} " + "x" * 90 for number in range(250))
    folder = written(
        tmp_path / "vault",
        {
            ".obsidian/app.json": "{}",
            ".trash/old.md": "gone",
            "Kiln.md": "---\ntags: [clay]\ndate: 2025-09-01\n---\n# The kiln\nSee [[Glaze|the glaze]].\n",
            "Glaze.md": "Copper red.\n",
            "projects/log.md": "## 2025-08-02\n- built the kiln\n\n## 2025-08-01\n- bought bricks\n",
            "long.md": long,
            "img/kiln.png": "",
        },
    )

    taken = await import_file(harness, folder)

    assert +taken.skipped == {Skipped.HIDDEN_FILES: 2, Skipped.OTHER_FILES: 1}
    found = await records(harness)
    assert [(one.date, one.content.topic) for one in found if "long" not in one.content.topic] == [
        ("2025-08-01", "projects/log"),
        ("2025-08-02", "projects/log"),
        ("2025-09-01", "Kiln"),
        ("2025-12-24", "Glaze"),
    ]
    assert found[2].content.facts == ("The kiln", "See [[Glaze|the glaze]].")
    parts = [one.content for one in found if "long" in one.content.topic]
    assert [one.topic for one in parts] == ["long", "long (2)", "long (3)"]
    assert sum(len(one.facts) for one in parts) == 250


async def test_beside_daily_pages_only_notes_of_days_are_taken(harness: DocumentHarness, tmp_path: Path) -> None:
    folder = written(tmp_path / "daily", {"2026-01-29.md": PAGE, "summary.md": "# 2026-01\n- 缓存策略\n"})

    taken = await import_file(harness, folder)

    assert (taken.source, taken.recorded, +taken.skipped) == ("daily_pages", 2, {Skipped.OTHER_FILES: 1})


async def test_a_folder_with_nothing_to_take_says_so(harness: DocumentHarness, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no daily page, memory or note"):
        await import_file(harness, written(tmp_path / "x", {"a.pdf": "%PDF"}))
    taken = await import_file(harness, written(tmp_path / "y", {"2026-01-29.md": "# 2026-01-29\n"}))
    assert (taken.recorded, taken.known, taken.refused) == (0, 0, 1)
