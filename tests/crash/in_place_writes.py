"""Find the places in the source that change a file in place. A new one must become a step or give a reason.

A place is covered if its function is a step, or if it calls one under the name of that module.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.crash.crash_steps import STEPS, location_of_step
from tests.run_report import REPOSITORY

CALLS: Final = frozenset(
    {"write_private", "remove_private", "compare_and_swap", "remove_unchanged", "put_new", "unlink", "rmtree"}
)
OF_OS: Final = frozenset({"replace", "rename", "remove", "link"})
PRIMITIVE: Final = "a write itself: what is labelled is `temporary file`, `exchange`, `rename` and `unlink` in it"
HALF_MADE: Final = "takes away what was never put in place; whoever looks next does it again"
AGAIN: Final = "the log says it: what follows it moves its watermark afterwards, and does it again"
CACHE: Final = "made anew from the log where it is missing, older or not understood"
ALONE: Final = "one file, whole or not at all, and nothing else has to agree with it"
UNLABELLED: Final = {
    "sync.system.atomic_swap:_remove_if_ours": PRIMITIVE,
    "sync.system.atomic_swap:_exchange_and_verify": PRIMITIVE,
    "sync.system.atomic_swap:_undo_exchange": PRIMITIVE,
    "sync.system.files:replace_with_retry": PRIMITIVE,
    "sync.system.atomic_swap:rename_no_replace": PRIMITIVE,
    "sync.system.files:remove_temporary_files": HALF_MADE,
    "sync.archive.partial_files:_remove_unlocked": HALF_MADE,
    "sync.archive.partial_files:partial_file": HALF_MADE,
    "sync.db.rebuild.convert:remove_half_converted": HALF_MADE,
    "sync.db.rebuild.salvage:finish_salvage": HALF_MADE,
    "sync.jsonl.event_file:EventFile.build": HALF_MADE,
    "sync.jsonl.event_file:remove_partial_files": HALF_MADE,
    "sync.db.rebuild.salvage:_salvage": "behind `sync the new` and before `put in place`, which are steps",
    "sync.jsonl.unfinished:write_unfinished": "comes before the tree is renamed; a name of no tree is no source",
    "sync.jsonl.unfinished:mark_whole": "the event files are whole: a note that stays makes a later salvage read more",
    "sync.startup.salvaged_log:_keep_aside": "after `complete the log`, which is a step; the tree is written anew",
    "sync.db.integrity:request_full_check": AGAIN,
    "sync.db.integrity:check_small_tables": AGAIN,
    "sync.jsonl.event_file:remove_event_tree": AGAIN,
    "sync.accounts.profiles:_derive_installation": "derived again at the next start; the damaged file is kept beside",
    "sync.retention.archives:_move_archive": (
        "gone on with until the guest's folder is empty; what is in both is not doubled"
    ),
    "sync.system.secret_store:FileSecretStore.delete": "in `drop the session`, which is a step",
    "sync.accounts.profiles:remove_profile_tree": (
        "before `remove a profile`, which is a step; gone on with until nothing is left"
    ),
    "sync.document.surfaces.swap_recovery:SwapRecovery.recover": (
        "what stood aside is in the log or parked by then; else it is taken in again"
    ),
    "sync.document.ownership.other_profiles:park_copy": "named by its bytes: parked again, it is the same file",
    "sync.daily.pages.page_files:_remove_displaced": HALF_MADE,
    "sync.daily.pages.page_files:PageFiles._claim_folder": "until the marker is ours every look does it again",
    "sync.daily.pages.embeddings_export:EmbeddingsExport._write_file": (
        "the marker names both what stands there and what will"
    ),
    "sync.log.sessions.tracker:SessionTracker._save_open_ids": (
        "which sessions are open here; one that is not noted ends when it falls idle"
    ),
    "sync.jsonl.importer:EventFileImporter._save_imported_hashes": (
        "taken in again, a file's events are known by their ids"
    ),
    "sync.jsonl.event_file:EventFile.remove": AGAIN,
    "sync.jsonl.metadata_files:MetadataFiles._write_session_files": AGAIN,
    "sync.jsonl.metadata_files:MetadataFiles.rebuild": AGAIN,
    "sync.insights.cache:InsightsCache._remove_if_older": CACHE,
    "sync.insights.service:InsightsService._write_cache": CACHE,
    "sync.insights.service:InsightsService.rebuild": CACHE,
    "sync.document.surfaces.memory_file:MemoryFile._reconcile_file": (
        "one unlink, which the next look at the file does again"
    ),
    "sync.daily.pages.page_folders:PageFolders.set_option": ALONE,
    "sync.lessons.files.live_view:LessonFiles._write": CACHE,
    "sync.lessons.files.live_view:LessonFiles._write_manifest": "without it every file is read",
    "sync.lan.transport.certificates:_load_own_certificate": (
        "read once, under a password that is in memory only; the next start takes away what a kill left"
    ),
    "sync.notes.queries:NoteQueries._copy_for_team": "a copy for the team; exported again, what is there is left alone",
    "bridge.methods.memory.lesson_transfer:_write_tree": (
        "a copy for the user in a folder that was empty; a killed export is refused there by name and begun elsewhere"
    ),
    "bridge.hooks.hook_files:_append": "one rename of a full ledger or log; what is read is both",
    "bridge.hooks.installer:_keep_backup": "named by its bytes: kept again, it is the same file",
    "bridge.hooks.installer:_write": (
        "the backup comes first; without the record a removal takes out the entries, as after an edit by another"
    ),
    "bridge.hooks.installer:_note_written": "without it a removal takes out the entries, as after an edit",
    "bridge.cli.log.redact:_write_redacted": ALONE,
    "bridge.rpc.local_endpoint:_listening_socket": "the socket of a killed sidecar, which the next sidecar replaces",
    "bridge.sidecar:_log_file": "a link in the place of the log of what happened",
}


@dataclass(frozen=True, slots=True, order=True)
class InPlaceWrite:
    """`function` is `module:Class.function`; `called` as it is called there."""

    function: str
    called: str

    def is_labelled(self) -> bool:
        module = self.function.partition(":")[0]
        return bool({self.function, f"{module}:{self.called}"} & _labelled())


@cache
def _labelled() -> frozenset[str]:
    """The steps by the names where they are looked up, and the functions by their own."""
    owners = ((name, *location_of_step(step)) for step, name in STEPS.items())
    found = {name: getattr(owner, attribute) for name, owner, attribute in owners}
    return frozenset({*found, *(f"{call.__module__}:{call.__qualname__}" for call in found.values())})


def in_place_writes() -> set[InPlaceWrite]:
    """All in-place writes in `sync` and `bridge`."""
    files = (path for package in ("sync", "bridge") for path in (REPOSITORY / package).rglob("*.py"))
    return {place for path in files for place in in_place_writes_in(path.read_text("utf-8"), _module(path))}


def in_place_writes_in(source: str, module: str) -> Iterator[InPlaceWrite]:
    yield from _below(ast.parse(source), module, ())


def _module(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def _below(node: ast.AST, module: str, within: tuple[str, ...]) -> Iterator[InPlaceWrite]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _below(child, module, (*within, child.name))
        else:
            if called := _called(child):
                yield InPlaceWrite(f"{module}:{'.'.join(within)}", called)
            yield from _below(child, module, within)


def _called(node: ast.AST) -> str | None:
    """The name of a file-changing function that is called or passed here; None for anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in OF_OS:
            return name
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in CALLS:
            return name
        case ast.Call(func=ast.Attribute(attr="replace" | "rename" as name), args=[_], keywords=[]):
            return name  # a path's; a text's takes two, a moment's takes names
    return None
