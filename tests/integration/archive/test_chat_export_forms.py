"""Exports of ChatGPT and Claude of 2026 in the forms in which people have them."""

import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sync.archive.model import ArchiveImportResult, Skipped
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.event_types import EXCHANGE_TEXT, TEXT_SUFFIX
from tests.chat_export_samples import CHATGPT, CLAUDE, chatgpt, claude, spoken
from tests.integration.archive.test_service import import_archive
from tests.support import Device, new_server, open_device

RAKU = chatgpt("c1", ("user", "How hot is a raku kiln?"), ("assistant", "About 950 degrees."))
GLAZE = chatgpt("c2", ("user", "Which glaze is copper red?"), ("assistant", "A copper glaze in reduction."))
PARTS = {"conversations-000.json": [RAKU], "conversations-001.json": [GLAZE], "user.json": {}}


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", new_server(), single_threaded=True) as opened:
        yield opened


def written(folder: Path, files: Mapping[str, Any]) -> Path:
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return folder


def packed(path: Path, files: Mapping[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, value in files.items():
            zipped.writestr(name, json.dumps(value))
    return path


async def exchanges(device: Device) -> list[tuple[str, str]]:
    found = [event.payload for event in await device.events() if event.type == "exchange_recorded"]
    return [(said["question"], said["answer"]) for said in found]


async def import_value(device: Device, folder: Path, value: Any) -> ArchiveImportResult:
    (path := folder / "conversations.json").write_text(json.dumps(value), "utf-8")
    return await import_archive(device, path)


@pytest.mark.parametrize("form", ["zip", "folder", "inner folder"])
async def test_an_export_in_parts_is_taken_from_its_zip_and_its_folder_once(
    device: Device, tmp_path: Path, form: str
) -> None:
    inner = {f"data-2026-03-01/{name}": value for name, value in PARTS.items()}
    files = inner if form == "inner folder" else PARTS
    path = packed(tmp_path / "e.zip", files) if form == "zip" else written(tmp_path / "e", files)

    taken = await import_archive(device, path)

    assert (taken.source, taken.conversations, taken.recorded) == ("chatgpt", 2, 6)
    assert await exchanges(device) == [
        ("How hot is a raku kiln?", "About 950 degrees."),
        ("Which glaze is copper red?", "A copper glaze in reduction."),
    ]
    assert +taken.skipped == {Skipped.OTHER_FILES: 1}
    assert (await import_archive(device, path)).recorded == 0


async def test_a_single_part_and_a_single_conversation_are_exports(device: Device, tmp_path: Path) -> None:
    written(tmp_path, {"conversations-001.json": [GLAZE], "one.json": RAKU, "lines.json": "{}\n7"})

    assert (await import_archive(device, tmp_path / "conversations-001.json")).conversations == 1
    assert (await import_archive(device, tmp_path / "one.json")).conversations == 1
    with pytest.raises(InvalidInput, match="no conversation"):
        await import_archive(device, tmp_path / "lines.json")


async def test_spoken_turns_are_their_transcript_and_one_without_is_counted(device: Device, tmp_path: Path) -> None:
    heard = ("user", spoken("And how long does cooling take?")), ("assistant", spoken("Twenty minutes in sawdust."))
    lost = ("user", spoken(None)), ("assistant", "Yes.")
    said = ("user", "How hot is a raku kiln?"), ("assistant", "About 950.")

    taken = await import_value(device, tmp_path, [chatgpt("v1", *said, *heard, *lost)])

    assert await exchanges(device) == [
        ("How hot is a raku kiln?", "About 950."),
        ("And how long does cooling take?", "Twenty minutes in sawdust. Yes."),
    ]
    assert +taken.skipped == {Skipped.SPOKEN: 1}


async def test_what_is_no_text_of_either_side_is_left_out_and_counted(device: Device, tmp_path: Path) -> None:
    image = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "What is this?"]}
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    context = {"content_type": "user_editable_context", "user_profile": "p"}
    tool = {"content_type": "execution_output", "text": "Traceback"}
    said = chatgpt(
        "x", ("user", context), ("user", image), ("assistant", thoughts), ("tool", tool), ("assistant", "A kiln.")
    )

    taken = await import_value(device, tmp_path, [said, *CHATGPT])

    assert await exchanges(device) == [("What is this?", "A kiln."), ("写一首诗", "第二稿")]
    assert +taken.skipped == {
        Skipped.IMAGES: 1,
        Skipped.TOOLS: 2,
        Skipped.THOUGHTS: 1,
        Skipped.HIDDEN: 2,
        Skipped.BRANCHES: 1,
    }


async def test_the_blocks_the_designs_and_the_projects_of_claude_are_read(device: Device, tmp_path: Path) -> None:
    answer = {
        **claude("m-2", "assistant", "", 1),
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "香山"},
            {"type": "tool_result", "content": [{"type": "text", "text": "网页"}]},
        ],
    }
    pasted = {"file_name": "paste.txt", "extracted_content": "贴上的一段"}
    asked = {**claude("m-1", "human", ""), "attachments": [pasted, {"file_name": "a.pdf", "extracted_content": "x"}]}
    design = {"uuid": "d", "title": "标志", "messages": [{"role": "user", "content": {"content": "画一个窑"}}, 7]}
    project = {
        "uuid": "p",
        "name": "陶艺",
        "prompt_template": "用中文回答",
        "docs": [{"uuid": "x", "filename": "釉.md", "content": "铜红釉要还原焰"}, None],
    }
    files = {
        "conversations.json": [{**CLAUDE[0], "chat_messages": [asked, answer]}],
        "design_chats/d.json": design,
        "projects/p.json": project,
        "users.json": [{"uuid": "u"}],
    }

    taken = await import_archive(device, packed(tmp_path / "data-batch-0000.zip", files))

    assert await exchanges(device) == [
        ("贴上的一段", "香山"),
        ("画一个窑", ""),
        ("用中文回答 釉.md 铜红釉要还原焰", ""),
    ]
    assert +taken.skipped == {
        Skipped.FILES: 2,
        Skipped.TOOLS: 2,
        Skipped.THOUGHTS: 1,
        Skipped.UNREADABLE: 1,
        Skipped.OTHER_FILES: 1,
    }


async def test_a_part_that_is_cut_off_costs_what_is_missing(device: Device, tmp_path: Path) -> None:
    cut_off = json.dumps([RAKU, GLAZE])[:-40]
    folder = written(tmp_path / "e", {"conversations-000.json": cut_off, "conversations-001.json": CLAUDE})

    taken = await import_archive(device, folder)

    assert (taken.conversations, taken.refused) == (2, 1)
    assert taken.refusals == [("conversations-000.json", "it is no export that is known here")]


async def test_a_damaged_character_costs_itself(device: Device, tmp_path: Path) -> None:
    (path := tmp_path / "conversations.json").write_bytes(
        json.dumps([RAKU, GLAZE]).encode().replace(b"raku", b"r\xffku").replace(b"copper red", b"\\ud83d red")
    )

    assert (await import_archive(device, path)).conversations == 2
    assert [question for question, _ in await exchanges(device)] == [
        "How hot is a r\ufffdku kiln?",
        "Which glaze is ? red?",
    ]


async def test_a_long_turn_is_kept_whole_on_this_device_and_does_not_come_back_once_erased(
    device: Device, tmp_path: Path
) -> None:
    long = chatgpt("c1", ("user", "How is raku fired? " * 9 + "seaweed"), ("assistant", "Hot. " * 50 + "sawdust"))
    await import_value(device, tmp_path, [long])
    (text,) = [event for event in await device.events() if event.type == EXCHANGE_TEXT]
    assert (text.payload["question"][-7:], text.payload["answer"][-7:], text.origin) == (
        "seaweed",
        "sawdust",
        "imported",
    )
    exchange = text.event_id.removesuffix(TEXT_SUFFIX)
    await device.database.write(lambda connection: log_store.erase_payloads(connection, [exchange, text.event_id]))

    assert (await import_value(device, tmp_path, [long])).recorded == 0
    assert not any(event.payload for event in await device.events() if event.type == EXCHANGE_TEXT)
