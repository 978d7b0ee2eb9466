"""`xiaobai-memory hook`: read one event, show what belongs to it, keep what it teaches. Standard library only.

It fails open: whatever goes wrong, the exit status is 0, nothing is printed and the log has one line. A host takes exit
status 2 for a refusal of the tool.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any, BinaryIO, Final

from bridge.hooks import decision, hook_files
from bridge.hooks.event import HookEvent
from bridge.hooks.hosts import HOSTS, sender_of
from bridge.rpc.endpoint_client import connect_to_sidecar, exchange

MAX_INPUT: Final = 8 * 1024 * 1024  # bytes; a larger event is read to its end and dropped
CONNECT_TIMEOUT: Final = 0.2  # seconds
TOOL_TIMEOUT: Final = 0.5  # seconds for an answer: a busy database is not waited for
SESSION_TIMEOUT: Final = 2.0  # seconds at the start of a session


def main(data_dir: str | None) -> None:
    """Carry out one call; never raises."""
    folder: Path | None = None
    try:
        place = Path(data_dir or os.environ.get("XIAOBAI_DATA_DIR") or _default_data_dir()).expanduser()
        folder = hook_files.hooks_folder(place)
        _run(place, folder, sys.stdin.buffer if sys.stdin is not None else None)
    except Exception as error:  # noqa: BLE001 - a hook must not disturb its host
        if folder is not None:
            with suppress(Exception):
                hook_files.log_line(folder, f"failed: {type(error).__name__}")
    with suppress(Exception):
        sys.stdout.flush()


def _default_data_dir() -> str:
    from platformdirs import user_data_dir  # noqa: PLC0415 - only if the command names no folder

    return user_data_dir("xiaobai-memory", appauthor=False)


def _run(data_dir: Path, folder: Path, stdin: BinaryIO | None) -> None:
    event = _read_event(stdin, folder)
    if event is None:
        return
    hook_files.note_run(folder, event.host, event.name)
    if not hook_files.claim(
        folder, "event", decision.event_key(event), now=time.time(), within=hook_files.REPEAT_SECONDS
    ):
        return
    if event.repeats and not hook_files.claim(folder, "resumed", event.session_id, now=time.time()):
        return
    requests = decision.requests_for(event)
    with connect_to_sidecar(data_dir, timeout=CONNECT_TIMEOUT) as connection:
        captured = None
        if connection is not None and requests.capture is not None:  # first: the output may fail, this must not
            captured = _ask(connection, "lessons/capture", requests.capture, TOOL_TIMEOUT)
            if captured is None:
                hook_files.log_line(folder, "capture dropped: it was refused, or not answered in time")
        _show(event, requests, captured, connection, data_dir, folder)
        if connection is None and requests.capture is not None:
            _capture_without_sidecar(data_dir, requests.capture)


def _read_event(stdin: BinaryIO | None, folder: Path) -> HookEvent | None:
    raw = b"" if stdin is None else stdin.read(MAX_INPUT + 1)
    if stdin is not None and len(raw) > MAX_INPUT:
        while stdin.read(1024 * 1024):  # the host may take a closed pipe for a failure
            pass
        hook_files.log_line(folder, f"dropped: more than {MAX_INPUT} bytes of input")
        return None
    payload = json.loads(raw.decode("utf-8-sig"))
    host = sender_of(payload) if isinstance(payload, dict) else None
    event = host.parse(payload, os.environ) if host is not None else None
    if event is None:
        hook_files.log_line(folder, "ignored: not an event of a known host")
    return event


def _show(
    event: HookEvent,
    requests: decision.HookRequests,
    captured: Mapping[str, Any] | None,
    connection: socket | None,
    data_dir: Path,
    folder: Path,
) -> None:
    """Print the text that belongs to the event, if its host has a place for it. `captured`: the sidecar's answer."""
    host = HOSTS[event.host]
    if host.answer(event, "") is None:
        return
    text = ""
    if requests.session is not None:
        if connection is None:
            notes = _notes_without_sidecar(data_dir, requests.session["projectPath"])
        else:
            notes = str((_ask(connection, "notes/session", requests.session, SESSION_TIMEOUT) or {}).get("text") or "")
        text = _session_block(notes, data_dir)
        text = _memory_block(event, connection, text) + text
    elif requests.match is not None:
        if captured is None and requests.capture is None:
            captured = _ask(connection, "lessons/match", requests.match, TOOL_TIMEOUT)
        text = _hint(event, captured or _match_without_sidecar(data_dir, requests.match), folder)
    if text:
        output = json.dumps(host.answer(event, text), ensure_ascii=False).encode()
        sys.stdout.buffer.write(output + b"\n")
        sys.stdout.flush()


def _hint(event: HookEvent, answer: Mapping[str, Any], folder: Path) -> str:
    lesson = decision.accepted_lesson(event, answer)
    if lesson is None or not hook_files.claim(folder, "lesson", event.session_id, lesson[0], now=time.time()):
        return ""
    from sync.context.hook_blocks import tool_hint  # noqa: PLC0415 - most calls show nothing

    return tool_hint(lesson[1])


def _session_block(text: str, data_dir: Path) -> str:
    if not text.strip():
        return ""
    from secrets import token_hex  # noqa: PLC0415

    from bridge.api.command_language import command_language  # noqa: PLC0415 - most calls show nothing
    from sync.context.hook_blocks import session_block  # noqa: PLC0415

    return session_block(text, token_hex(4), command_language({"data_dir": str(data_dir)}))


def _memory_block(event: HookEvent, connection: socket | None, notes: str) -> str:
    """What the memory says of the user, from the sidecar, in the room that the notes leave."""
    from sync.context.budgets import SESSION_START_CHARS  # noqa: PLC0415 - once a session

    params: dict[str, Any] = {"waitMs": 0, "maxChars": SESSION_START_CHARS - len(notes) - 1}
    if name := event.session_id[: decision.MAX_NAME]:
        params["sessionId"] = name
    prompt = str((_ask(connection, "memory/systemPrompt", params, SESSION_TIMEOUT) or {}).get("prompt") or "")
    return f"{prompt.strip()}\n" if prompt.strip() else ""


def _match_without_sidecar(data_dir: Path, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """An exact match from the profile's database, read-only."""
    from sync.lessons.quick_match import match_in  # noqa: PLC0415 - with a sidecar nothing reads the database here

    return match_in(data_dir, params)


def _capture_without_sidecar(data_dir: Path, params: Mapping[str, Any]) -> None:
    """Have a process of its own record the call, if it may teach something; the hook does not wait for it."""
    from sync.lessons.quick_match import teaches  # noqa: PLC0415 - with a sidecar nothing reads the database here

    if teaches(data_dir, params):
        from bridge.hooks import late_capture  # noqa: PLC0415 - most calls teach nothing

        late_capture.start(data_dir, params)


def _notes_without_sidecar(data_dir: Path, project: str) -> str:
    """The convention and the person's notes marked to load, from the project's files; empty if it is no folder here."""
    from secrets import token_hex  # noqa: PLC0415

    from bridge.api.command_language import command_language  # noqa: PLC0415 - only at the start of a session
    from sync.errors import XiaobaiError  # noqa: PLC0415
    from sync.lessons.quick_match import taken_notes  # noqa: PLC0415
    from sync.log.model import project_id_for  # noqa: PLC0415
    from sync.notes.folder import NoteFolder  # noqa: PLC0415
    from sync.notes.texts import session_text  # noqa: PLC0415
    from sync.system.repositories import is_in_repository  # noqa: PLC0415

    try:
        folder = NoteFolder(project)
        own = [file for file in folder.read().current if not file.is_shared]
        if own and is_in_repository(folder.root):
            taken = taken_notes(data_dir, project_id_for(project))
            own = [file for file in own if file.sha256 in taken]
        return session_text(own, folder.base, token_hex(6), command_language({"data_dir": str(data_dir)}))[0]
    except XiaobaiError:
        return ""


def _ask(connection: socket | None, method: str, params: dict[str, Any], timeout: float) -> Mapping[str, Any] | None:
    """The sidecar's result; None if there is none."""
    if connection is None:
        return None
    try:
        response = exchange(connection, method, params, timeout=timeout)
    except (OSError, ValueError):
        connection.close()  # a late answer would be taken for that of the next request
        return None
    return None if "error" in response else response.get("result") or {}
