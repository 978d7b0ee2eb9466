"""Imports that unpack or decode to more than the memory: refused in bounded memory, and cancellable."""

import asyncio
import gzip
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
import textwrap
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sync.archive.container import _tar_members
from sync.archive.json_objects import MAX_TOKENS, scan_objects
from sync.document.surfaces import app_cache
from sync.errors import InvalidInput, StorageBusy
from sync.jsonl.importer import MAX_BATCH_BYTES, MAX_LINE_BYTES, _next_lines
from sync.runtime.supervision import run_cancellable
from tests.chat_export_samples import CLAUDE
from tests.proof import first_in_test

MEGABYTE = 1024 * 1024
PIECE = bytes(MEGABYTE)

Make = Callable[[Path], None]


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes, int]) -> None:
    """Build a tar whose members repeat their content; concatenated gzip streams are one gzip file."""
    with path.open("wb") as file:
        for info, content, times in members:
            info.size = len(content) * times
            file.write(gzip.compress(info.tobuf(tarfile.GNU_FORMAT)))
            file.write(gzip.compress(content, compresslevel=1) * times)
            file.write(gzip.compress(bytes(-info.size % tarfile.BLOCKSIZE)))
        file.write(gzip.compress(bytes(2 * tarfile.BLOCKSIZE)))


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    return info


def a_pax_header_of_two_gigabytes(path: Path) -> None:
    packed(path, (member("x", tarfile.XHDTYPE), b"9" * MEGABYTE, 2048))


def a_long_name_of_two_gigabytes(path: Path) -> None:
    packed(path, (member("x", tarfile.GNUTYPE_LONGNAME), b"n" * MEGABYTE, 2048))


def a_part_of_blank_lines(path: Path) -> None:
    packed(path, (member("about.json"), b"{}", 1), (member("events/000001.jsonl"), b"\n" * MEGABYTE, 127))


def a_payload_of_lists(path: Path) -> None:
    line = b'{"payload": {"x": [' + b"[]," * (30 * MEGABYTE) + b"[]]}}\n"
    packed(path, (member("events/000001.jsonl"), line, 1))


def blanks_behind_the_end(path: Path) -> None:
    packed(path)
    with path.open("ab") as file:
        file.write(gzip.compress(PIECE, compresslevel=1) * 1024)


def parts_without_end(path: Path) -> None:
    packed(path, *((member(f"documents/{number}"), PIECE, 120) for number in range(6)))


def zipped(path: Path, *pieces: tuple[bytes, int]) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as file,
    ):
        for piece, times in pieces:
            for _ in range(times):
                file.write(piece)


def a_zip_of_lists(path: Path) -> None:
    zipped(path, (b"[", 1), (b"[]," * (MEGABYTE // 3), 200), (b"[]]", 1))


def a_zip_of_a_conversation_of_lists(path: Path) -> None:
    zipped(path, (b'[{"mapping": [', 1), (b"[]," * (MEGABYTE // 3), 200), (b"[]]}]", 1))


def a_zip_of_empty_objects(path: Path) -> None:
    zipped(path, (b"[", 1), (b"{}," * (MEGABYTE // 3), 200), (b"{}]", 1))


def a_zip_of_one_word(path: Path) -> None:
    zipped(path, (b'[{"a": "', 1), (b"a" * MEGABYTE, 600), (b'"}]', 1))


def a_file_of_blanks(path: Path) -> None:
    zipped(path, (b"[", 1), (b" " * MEGABYTE, 600), (b"]", 1))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize(
    "make",
    first_in_test(
        [
            a_pax_header_of_two_gigabytes,
            a_long_name_of_two_gigabytes,
            a_part_of_blank_lines,
            a_payload_of_lists,
            blanks_behind_the_end,
            parts_without_end,
            a_zip_of_lists,
            a_zip_of_a_conversation_of_lists,
            a_zip_of_empty_objects,
            a_zip_of_one_word,
            a_file_of_blanks,
        ],
        4,
    ),
)
def test_a_file_that_unpacks_to_gigabytes_is_refused_in_half_a_gigabyte(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "file"
    make(path)
    code = """
        import resource, sys
        from collections import Counter
        from pathlib import Path
        from sync.archive import source_files
        from sync.archive.container import ArchiveReader, is_archive
        from sync.archive.chat_exports import read_chats
        from sync.errors import InvalidInput

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 512 * 1024 * 1024,) * 2)
        path = Path(sys.argv[1])
        try:
            if is_archive(source_files.read_signature(path)):
                ArchiveReader.open_verified(path, None)
            else:
                skipped, refused = Counter(), []
                with source_files.open_export(path, skipped) as parts:
                    values = source_files.read_values(parts, lambda: None, lambda *why: refused.append(why))
                    print(len(list(read_chats(values, skipped))), refused)
        except InvalidInput as error:
            print(error.message)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_objects_of_a_list_come_whole_however_it_is_cut_into_pieces() -> None:
    said = [*CLAUDE, {"a": 'quote " and \\ and ]}', "b": [[{}], {}]}, {}]
    for text in (
        json.dumps(said),
        json.dumps({"v": 1, "conversations": said, "more": [1]}),
        f"\ufeff {json.dumps(said)}",
    ):
        data = text.encode()
        for size in (1, 2, 7, len(data)):
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            assert [json.loads(item) for item in scan_objects(pieces)] == said


@pytest.mark.parametrize(
    "data", [b"", b'"x"', b"[{}", b'[{"a": "', b'{"a": [', b"1", b"[" + b"1," * MAX_TOKENS + b"1]"]
)
def test_what_is_no_such_list_or_does_not_end_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        list(scan_objects([data]))


async def test_a_view_without_end_in_the_place_of_the_apps_table_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i as id, 'x' as content from n"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create view ai_memory as {endless} where i < 0")

    assert await app_cache.read_content(path) is None


async def test_a_statement_without_end_in_the_apps_database_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_cache, "CALL_TIMEOUT", 0.1)
    path = tmp_path / "app.db"
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select content from n where i < 0"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table ai_memory (id, content)")
    monkeypatch.setattr(
        app_cache, "SELECT_CONTENT", f"select content from ({endless.replace('content', 'i as content')})"
    )

    with pytest.raises(StorageBusy):
        await app_cache.read_content(path)


async def test_work_in_a_thread_ends_with_its_cancelled_caller() -> None:
    begun, over = threading.Event(), threading.Event()

    def work(go_on: Callable[[], None]) -> None:
        begun.set()
        try:
            while True:
                go_on()
        finally:
            over.set()

    task = asyncio.create_task(run_cancellable(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(over.wait, 30)


def test_an_archive_made_by_another_tar_is_read(tmp_path: Path) -> None:
    name = "documents/" + "很长的名字" * 30
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        path = tmp_path / f"{kind}.tgz"
        with tarfile.open(path, "w:gz", format=kind) as tar:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"ab"))
        with gzip.open(path) as unpacked:
            assert list(_tar_members(unpacked, MEGABYTE)) == [(name, b"ab")]


def test_lines_of_events_are_decoded_a_few_megabytes_at_a_time() -> None:
    line = b"[" + b"[]," * (MAX_LINE_BYTES // 4) + b"[]]\n"
    file = io.BytesIO(line * 40)

    found = []
    while lines := _next_lines(file):
        assert sum(map(len, lines)) < MAX_BATCH_BYTES + MAX_LINE_BYTES
        found += lines
    assert found == [line] * 40
