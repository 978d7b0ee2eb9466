"""The content of `index/embeddings.json`, and its limit. Pure."""

import json
from pathlib import Path

import pytest

from sync.daily.pages.embeddings_export import PendingExport, VectorEntry, embeddings_json
from sync.daily.pages.page_folders import PageFolder

HOME = PageFolder(Path("/home/memories"), is_shared=True)


def entry(number: int, *, file: str | None = None, project: str | None = None) -> VectorEntry:
    return VectorEntry("2026-01-29", number, file, project, f"rec_{number}", number * 4)


def test_it_has_the_form_of_the_seed() -> None:
    due = PendingExport(HOME, "e5 (2)", (entry(1), entry(2, file="2026-01-29.2.md", project="/家/项目")), 10_000)
    data = embeddings_json(due, {4: ("记忆功能\n端口是 8080", [0.12346, -1e-05]), 8: ("火锅", [1.0, 0.0])})
    assert data is not None
    assert json.loads(data) == {
        "version": "1.0",
        "model": "e5 (2)",
        "entries": [
            {"date": "2026-01-29", "session": 1, "text": "记忆功能\n端口是 8080", "embedding": [0.12346, -1e-05]},
            {
                "date": "2026-01-29",
                "session": 2,
                "file": "2026-01-29.2.md",
                "project": "/家/项目",
                "text": "火锅",
                "embedding": [1.0, 0.0],
            },
        ],
    }
    assert len(data.decode().splitlines()) == 4, "an entry is a line"


def test_a_session_whose_vector_went_meanwhile_has_no_entry_and_without_any_there_is_no_file() -> None:
    due = PendingExport(HOME, "m", (entry(1), entry(2)), 10_000)
    assert json.loads(embeddings_json(due, {8: ("火锅", [1.0])}) or b"")["entries"][0]["session"] == 2
    assert embeddings_json(due, {}) is None
    assert embeddings_json(PendingExport(HOME, "", (), 10_000), {}) is None


@pytest.mark.parametrize(("limit", "sessions"), [(10_000, [1, 2, 3]), (150, [2, 3]), (80, [3]), (10, [])])
def test_the_newest_go_in_as_far_as_there_is_room(limit: int, sessions: list[int]) -> None:
    due = PendingExport(HOME, "m", (entry(1), entry(2), entry(3)), limit)
    data = embeddings_json(due, dict.fromkeys((4, 8, 12), ("火锅", [0.5])))
    found = [] if data is None else [one["session"] for one in json.loads(data)["entries"]]
    assert found == sessions
