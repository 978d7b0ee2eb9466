"""A person edits the file with any editor while the sidecar runs; the file keeps what was typed."""

import itertools
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sync.app import MIN_WRITE_INTERVAL
from tests.acceptance.environment import (
    events_of,
    exchanges,
    local_rows,
    manual_edit_events,
    question_counts,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
)
from tests.proof import first_in_test
from tests.sidecar import Home, Sidecar, wait_until

HABITS = "### 工作习惯\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


@pytest.fixture
def sidecar(home: Home) -> Iterator[Sidecar]:
    """A sidecar whose file holds one exchange."""
    with Sidecar(home) as sidecar:
        sidecar.update("旧的")
        wait_for_lines(home, "用户问：旧的")
        yield sidecar


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def save_through_temporary_file(path: Path, text: str) -> None:
    beside = path.with_name(".memory.swp")
    beside.write_text(text, "utf-8")
    beside.replace(path)


def save_with_backup_rename(path: Path, text: str) -> None:
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_text(text, "utf-8")
    backup.unlink()


def save_by_delete_and_create(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text, "utf-8")


def save_in_small_pieces(path: Path, text: str) -> None:
    data = text.encode()
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(data), 64):
            file.write(data[start : start + 64])
            os.fsync(file.fileno())


Save = Callable[[Path, str], None]
SAVES = [
    save_in_place,
    save_through_temporary_file,
    save_with_backup_rename,
    save_by_delete_and_create,
    save_in_small_pieces,
]
STRUCTURE = [
    "---",
    "## 用户偏好",
    "```",
    "> 引用",
    "- （待补充）",
    "**最后更新**：2020/1/1 00:00:00",
    "\u202e反\u200b\0\x07",
    "#",
]


def read(home: Home) -> str:
    return home.file.read_text("utf-8")


def renderings(home: Home) -> int:
    """How often the sidecar has written the file."""
    return int(local_rows(home, "select count(*) from written where cause = 'log'")[0][0])


class TestEdits:
    def test_a_typed_line_becomes_one_event_however_the_editor_saves(self, home: Home, sidecar: Sidecar) -> None:
        for count, save in enumerate(SAVES, start=1):
            line = f"- {save.__name__}"
            text = read(home).replace(HABITS, f"{HABITS}{line}\n")
            save(home.file, text)
            *_, event = manual_edit_events(sidecar, count)
            assert (event["type"], event["payload"]["text"], event["origin"]) == ("entry_added", line, "user-typed")
            wait_until_reconciled(sidecar)
            assert read(home) == text
            assert sidecar.call("sync/status")["document"]["warnings"] == []

    def test_add_edit_and_remove_with_what_was_typed_raw_in_the_file_and_clean_in_the_event(
        self, home: Home, sidecar: Sidecar
    ) -> None:
        phone, other = "13812345678", "13987654321"
        save_in_place(home.file, read(home).replace(HABITS, f"{HABITS}- 我的电话 {phone}\n"))
        added = manual_edit_events(sidecar, 1)[0]
        assert added["payload"]["text"] == "- 我的电话 [手机号]"
        save_in_place(home.file, read(home).replace(f"- 我的电话 {phone}", f"- 我的电话 {other}，晚上打"))
        edited = manual_edit_events(sidecar, 2)[1]
        assert edited["type"] == "entry_edited"
        assert edited["payload"]["entry_id"] == added["payload"]["entry_id"]
        assert edited["payload"]["text"] == "- 我的电话 [手机号]，晚上打"
        assert f"- 我的电话 {other}，晚上打\n" in read(home)
        save_in_place(home.file, read(home).replace(f"- 我的电话 {other}，晚上打\n", ""))
        removed = manual_edit_events(sidecar, 3)[2]
        assert removed["type"] == "entry_removed"
        assert removed["payload"]["entry_id"] == added["payload"]["entry_id"]
        assert phone not in json.dumps(events_of(sidecar), ensure_ascii=False)
        assert other not in json.dumps(events_of(sidecar), ensure_ascii=False)

    def test_a_change_of_redacted_digits_alone_is_an_edit_of_the_file(self, home: Home, sidecar: Sidecar) -> None:
        save_in_place(home.file, read(home).replace(HABITS, f"{HABITS}- 电话 13812345678\n"))
        manual_edit_events(sidecar, 1)
        save_in_place(home.file, read(home).replace("13812345678", "13987654321"))
        manual_edit_events(sidecar, 2)
        sidecar.update("新的")
        wait_for_lines(home, "用户问：新的", "- 电话 13987654321\n")

    def test_a_load_right_after_a_save_shows_it(self, home: Home, sidecar: Sidecar) -> None:
        for number in range(5):
            line = f"- 习惯{'一二三四五'[number]}"
            save_through_temporary_file(home.file, read(home).replace(HABITS, f"{HABITS}{line}\n"))
            assert line in sidecar.load()["document"]

    def test_an_edit_made_while_no_sidecar_ran_is_found_by_the_next_one(self, home: Home) -> None:
        home.run("update", "命令行", "好的")
        save_in_place(home.file, read(home).replace(HABITS, f"{HABITS}- 早起\n"))
        with Sidecar(home) as sidecar:
            assert "- 早起" in sidecar.load()["document"]
            assert len(manual_edit_events(sidecar, 1)) == 1

    def test_our_own_writes_make_no_event(self, home: Home, sidecar: Sidecar) -> None:
        for number in range(20):
            sidecar.update(f"问题 {number}")
            if number % 4 == 3:  # five renderings at least
                wait_for_lines(home, f"问题 {number}")
        wait_until_reconciled(sidecar)
        assert len(exchanges(sidecar)) == 21
        assert len(events_of(sidecar)) == 21
        assert len(local_rows(home, "select 1 from written where cause = 'log'")) >= 6
        assert local_rows(home, "select 1 from written where cause <> 'log'") == []

    def test_a_burst_of_updates_does_not_hurry_the_renderings(self, home: Home, sidecar: Sidecar) -> None:
        """Our own write, which the watcher reports as well, must not cut short the pause that follows it."""
        began = time.monotonic()
        before = renderings(home)
        number = itertools.count()
        while time.monotonic() - began < 3 * MIN_WRITE_INTERVAL or renderings(home) == before:
            sidecar.update(f"问题 {next(number)}")
        written = renderings(home) - before
        possible = (
            time.monotonic() - began
        ) / MIN_WRITE_INTERVAL + 2  # a pause between two; one at each end may be cut off
        assert 1 <= written <= possible, f"{written} renderings during {next(number)} updates"

    def test_typing_while_updates_stream_in_loses_neither(self, home: Home, sidecar: Sidecar) -> None:
        typed = [f"- 我写的{name}" for name in "甲乙丙丁戊"]
        for number, line in enumerate(typed):
            for turn in range(4):
                sidecar.update(f"第 {number} 轮 {turn}")
            buffer = read(home)  # the editor reloads, the person types, the sidecar writes meanwhile
            sidecar.update(f"第 {number} 轮 4")
            save_through_temporary_file(home.file, buffer.replace(HABITS, f"{HABITS}{line}\n"))
        wait_for_lines(home, *(f"{line}\n" for line in typed), "用户问：第 4 轮 4")
        expected = {f"第 {number} 轮 {turn}": 1 for number in range(5) for turn in range(5)} | {"旧的": 1}
        wait_until(lambda: question_counts(read(home)) == expected)
        kinds = [event["type"] for event in events_of(sidecar, "entry_added", "entry_edited", "entry_removed")]
        assert kinds == ["entry_added"] * 5


class TestStaleBuffers:
    @pytest.mark.parametrize("save", first_in_test(SAVES[:3]), ids=lambda save: save.__name__)
    def test_saved_over_five_newer_updates_nothing_of_the_five_is_lost_and_the_typed_line_is_kept(
        self, home: Home, sidecar: Sidecar, save: Save
    ) -> None:
        buffer = read(home)
        for number in range(5):
            sidecar.update(f"新的 {number}")
            wait_for_lines(home, f"用户问：新的 {number}")
        save(home.file, buffer.replace(HABITS, f"{HABITS}- 我打的字\n"))
        wait_for_lines(home, *(f"用户问：新的 {number}\n" for number in range(5)), "- 我打的字\n")
        assert [event["type"] for event in manual_edit_events(sidecar, 1)] == ["entry_added"]

    def test_a_deleted_newest_line_stays_deleted(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.update("最新的")
        wait_for_lines(home, "用户问：最新的")
        save_in_place(home.file, read(home).replace("- 用户问：最新的\n- AI 答：好的\n", ""))
        assert {event["type"] for event in manual_edit_events(sidecar, 2)} == {"entry_removed"}
        sidecar.update("后来的")
        wait_for_lines(home, "用户问：后来的")
        assert question_counts(read(home)) == {"旧的": 1, "后来的": 1}
        assert question_counts(sidecar.load()["document"]) == {"旧的": 1, "后来的": 1}

    def test_a_deletion_survives_a_restart(self, home: Home, sidecar: Sidecar) -> None:
        save_in_place(home.file, read(home).replace("- 用户问：旧的\n- AI 答：好的\n", ""))
        manual_edit_events(sidecar, 2)
        sidecar.stop()
        with Sidecar(home) as again:
            again.update("新的")
            wait_for_lines(home, "用户问：新的")
            assert question_counts(read(home)) == {"新的": 1}


class TestLosses:
    def test_an_emptied_file_removes_nothing_and_the_next_update_fills_it(self, home: Home, sidecar: Sidecar) -> None:
        home.file.write_bytes(b"")
        warnings_of(sidecar, "suspicious_mass_delete")
        assert question_counts(sidecar.load()["document"]) == {"旧的": 1}
        assert home.file.read_bytes() == b""
        sidecar.update("新的")
        wait_for_lines(home, "用户问：旧的", "用户问：新的")
        warnings_of(sidecar)
        assert manual_edit_events(sidecar, 0) == []

    def test_a_missing_file_removes_nothing_and_the_next_update_creates_it(self, home: Home, sidecar: Sidecar) -> None:
        home.file.unlink()
        warnings_of(sidecar, "document_missing")
        assert question_counts(sidecar.load()["document"]) == {"旧的": 1}
        sidecar.update("新的")
        wait_for_lines(home, "用户问：旧的", "用户问：新的")
        assert stat.S_IMODE(home.file.stat().st_mode) == 0o600
        assert manual_edit_events(sidecar, 0) == []

    def test_the_next_start_ingests_or_parks_what_a_killed_write_displaced(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        with Sidecar(home) as sidecar:
            sidecar.update("旧的")
            wait_for_lines(home, "用户问：旧的")
            loaded = read(home)
            sidecar.update("新的")
            wait_for_lines(home, "用户问：新的")
        saved, damaged = loaded.replace(HABITS, HABITS + "- 就在写的那一刻存的\n"), "\0 damaged"
        home.file.with_name(f".{home.file.name}.0a1b2c3d.aside").write_text(saved, "utf-8")
        home.file.with_name(f".{home.file.name}.4e5f6a7b.aside").write_text(damaged, "utf-8")
        with Sidecar(home) as sidecar:
            wait_for_lines(home, "用户问：旧的", "用户问：新的", "- 就在写的那一刻存的")
            assert "- 就在写的那一刻存的" in sidecar.load()["document"]
            warnings = sidecar.call("sync/status")["document"]["warnings"]
            (told,) = [text for text in warnings if text.startswith("documents_parked: 1 in ")]
            (parked,) = Path(told.rpartition(" in ")[2]).glob("*.md")
            assert parked.read_text("utf-8") == damaged
            parked.unlink()
            assert sidecar.call("sync/status")["document"]["warnings"] == []

    def test_renaming_away_and_back_changes_nothing(self, home: Home, sidecar: Sidecar) -> None:
        before = read(home)
        away = home.file.with_name("elsewhere.md")
        home.file.rename(away)
        warnings_of(sidecar, "document_missing")
        away.rename(home.file)
        warnings_of(sidecar)
        assert read(home) == before
        assert manual_edit_events(sidecar, 0) == []

    def test_a_mostly_shrunk_file_waits_for_an_explanation_and_goes_on_when_its_lines_return(
        self, home: Home, sidecar: Sidecar
    ) -> None:
        for number in range(10):
            sidecar.update(f"问题 {number}")
        wait_for_lines(home, "问题 9")
        whole = read(home)
        shrunk = whole.partition("- 用户问：问题 0\n")[0]
        home.file.write_text(shrunk, "utf-8")
        warnings_of(sidecar, "suspicious_mass_delete")
        sidecar.update("后来的")
        assert len(question_counts(sidecar.load()["document"])) == 12
        assert read(home) == shrunk
        home.file.write_text(whole, "utf-8")
        wait_for_lines(home, "用户问：后来的")
        warnings_of(sidecar)
        assert len(question_counts(read(home))) == 12
        assert manual_edit_events(sidecar, 0) == []

    def test_a_folder_that_is_deleted_and_made_again_is_watched_again(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        home = Home(tmp_path / "a", MEMORY_FILE=str(folder / "memory.md"))
        file = folder / "memory.md"
        with Sidecar(home) as sidecar:
            sidecar.update("旧的")
            wait_until(file.exists)
            text = file.read_text("utf-8")
            file.unlink()
            folder.rmdir()
            warnings_of(sidecar, "document_missing")
            folder.mkdir()
            file.write_text(text.replace(HABITS, f"{HABITS}- 早起\n"), "utf-8")
            assert manual_edit_events(sidecar, 1)[0]["payload"]["text"] == "- 早起"
            file.write_text(file.read_text("utf-8").replace(HABITS, f"{HABITS}- 跑步\n"), "utf-8")
            assert len(manual_edit_events(sidecar, 2)) == 2
            assert sidecar.call("sync/status")["watchers"] == {"file": True}


class TestOddFiles:
    def test_a_symlinked_file_is_watched_and_written_at_its_target(self, tmp_path: Path) -> None:
        target = tmp_path / "dropbox" / "notes.md"
        target.parent.mkdir()
        target.write_text("# 我的笔记\n\n- 一条\n", "utf-8")
        home = Home(tmp_path / "a")
        home.file.symlink_to(target)
        with Sidecar(home) as sidecar:
            manual_edit_events(sidecar, 1)
            sidecar.update("新的")
            wait_until(lambda: "用户问：新的" in target.read_text("utf-8"))
            save_through_temporary_file(target, target.read_text("utf-8").replace("- 一条\n", "- 一条\n- 两条\n"))
            manual_edit_events(sidecar, 2)
        assert home.file.is_symlink()
        assert "- 两条\n" in target.read_text("utf-8")

    @pytest.mark.parametrize(
        ("before", "after"),
        [(b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"---\ntitle: memo\n---\n", b"\n")],
        ids=["CRLF", "BOM", "front matter"],
    )
    def test_the_person_s_bytes_stay_through_an_update(self, home: Home, before: bytes, after: bytes) -> None:
        own = before + "# 我的笔记\n\n## 重要对话记录\n\n- 一条\n".encode().replace(b"\n", after)
        home.file.write_bytes(own)
        with Sidecar(home) as sidecar:
            manual_edit_events(sidecar, 1)
            assert home.file.read_bytes() == own
            sidecar.update("新的")
            wait_until(lambda: "用户问：新的".encode() in home.file.read_bytes())
            manual_edit_events(sidecar, 1)
        data = home.file.read_bytes()
        assert data.startswith(own.rstrip(b"\r\n"))
        assert data.count(b"\n") == data.count(after)

    def test_gb18030_is_read_flagged_and_kept_in_its_encoding(self, home: Home) -> None:
        home.file.write_bytes("# 我的笔记\n\n- 喜欢喝茶，不喜欢咖啡\n".encode("gb18030"))
        with Sidecar(home) as sidecar:
            assert "喜欢喝茶" in sidecar.load()["document"]
            warnings_of(sidecar, "document_not_utf8")
            sidecar.update("新的")
            wait_until(lambda: "用户问：新的".encode("gb18030") in home.file.read_bytes())
        assert "- 喜欢喝茶，不喜欢咖啡\n" in home.file.read_bytes().decode("gb18030")

    @pytest.mark.parametrize(
        "data",
        [b"# memo\n\0\n- line\n", "# 记忆很好\n- 一条\n".encode() + b"\xff\xfe\n", b"- line\n" * 700_000],
        ids=["NUL", "damaged", "above 4 MiB"],
    )
    def test_an_unreadable_file_is_not_touched_and_capture_goes_on(self, home: Home, data: bytes) -> None:
        home.file.write_bytes(data)
        with Sidecar(home) as sidecar:
            sidecar.update("新的")
            warnings_of(sidecar, "document_untouchable")
            assert question_counts(sidecar.load()["document"]) == {"新的": 1}
        assert home.file.read_bytes() == data

    def test_a_private_file_stays_private(self, home: Home, sidecar: Sidecar) -> None:
        home.file.chmod(0o640)
        sidecar.update("新的")
        wait_for_lines(home, "用户问：新的")
        assert stat.S_IMODE(home.file.stat().st_mode) == 0o640

    def test_no_message_can_become_structure(self, home: Home, sidecar: Sidecar) -> None:
        for number, message in enumerate(STRUCTURE):
            sidecar.update(f"{message}\n{message}\n解释{number}", f"{message}\n\n{message}\n## 重要对话记录")
        sidecar.update("之后")
        wait_for_lines(home, "用户问：之后")
        text = read(home)
        assert [line for line in text.splitlines() if line.startswith("#")] == [
            "# AI 对话记忆",
            "## 用户偏好",
            "### 工作习惯",
            "### 沟通风格",
            "### 技术偏好",
            "### 个人情况",
            "## 重要对话记录",
            next(line for line in text.splitlines() if line.startswith("### 20")),
            "## 常用操作",
            "### 日常任务",
            "### 常用命令",
        ]
        assert len(question_counts(text)) == 2 + len(STRUCTURE)
        assert manual_edit_events(sidecar, 0) == []

    def test_an_unwritable_file_is_reported_until_it_is_writable_and_logged_once(self, home: Home) -> None:
        home.file.mkdir()
        with Sidecar(home) as sidecar:
            sidecar.update("先记着")
            sidecar.call_until("sync/status", lambda status: status["document"]["warnings"] == ["document_unreachable"])
            for _ in range(3):
                wait_until_reconciled(sidecar)
            assert "用户问：先记着" in sidecar.load()["document"]
            home.file.rmdir()
            wait_for_lines(home, "用户问：先记着")
            sidecar.call_until("sync/status", lambda status: status["document"]["warnings"] == [])
        stderr = (home.folder / "stderr.log").read_text("utf-8")
        assert stderr.count("files and log could not be brought together") == 1


class TestAppCache:
    def test_what_the_app_writes_into_its_cache_becomes_events_and_nothing_is_written_back(
        self, tmp_path: Path
    ) -> None:
        cache = tmp_path / "app.db"
        with closing(sqlite3.connect(cache)) as app, app:
            app.execute(
                "CREATE TABLE ai_memory (id INTEGER PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT)"
            )
            app.execute("INSERT INTO ai_memory VALUES (1, ?, '', '')", (f"# AI 对话记忆\n\n{HABITS}- 早起\n",))
        home = Home(tmp_path / "a", APP_DB=str(cache), DOCUMENT__POLL_SECONDS="0.2")
        word = unique_text("- 跑步")
        with Sidecar(home) as sidecar:
            wait_for_lines(home, "- 早起\n")
            with closing(sqlite3.connect(cache)) as app, app:
                app.execute(
                    "UPDATE ai_memory SET content = ? WHERE id = 1", (f"# AI 对话记忆\n\n{HABITS}- 早起\n{word}\n",)
                )
            wait_for_lines(home, "- 早起\n", f"{word}\n")
            before = cache.read_bytes()
            sidecar.update("新的")
            wait_for_lines(home, "用户问：新的")
            wait_until_reconciled(sidecar)
            assert [event["payload"]["text"] for event in manual_edit_events(sidecar, 2)] == ["- 早起", word]
        assert cache.read_bytes() == before


def warnings_of(sidecar: Sidecar, *warnings: str) -> None:
    """Wait until `status` has exactly these warnings about the file."""
    sidecar.call_until("sync/status", lambda status: status["document"]["warnings"] == sorted(warnings))
