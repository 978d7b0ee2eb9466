"""Where the program changes a file in place: found in its text, so that a new place must become a step, or say why not.

A place is labelled where the function that it stands in is a step, or what it calls is one under the name that this
module has for it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.crash.steps import STEPS, place_of
from tests.record import REPOSITORY

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
    "sync.files:_discard": PRIMITIVE,
    "sync.files:_exchange": PRIMITIVE,
    "sync.files:_put_back": PRIMITIVE,
    "sync.files:_replace": PRIMITIVE,
    "sync.files:put_new": PRIMITIVE,
    "sync.files:remove_leftovers": HALF_MADE,
    "sync.archive.unfinished:_remove_unheld": HALF_MADE,
    "sync.archive.unfinished:unfinished": HALF_MADE,
    "sync.db.conversion:tidy": HALF_MADE,
    "sync.db.salvage:finish_salvage": HALF_MADE,
    "sync.tree.files:EventFile.build": HALF_MADE,
    "sync.tree.files:remove_unfinished": HALF_MADE,
    "sync.db.salvage:_salvage": "behind `sync the new` and before `put in place`, which are steps",
    "sync.replica:_Files.keep": "before `put in place`, which is a step; a start that was killed makes the copy again",
    "sync.retention.archives:_move": "gone on with until the guest's folder is empty; what is in both is not doubled",
    "sync.secret_store:FileSecret.delete": "in `drop the session`, which is a step",
    "sync.profiles:remove_tree": "before `remove a profile`, which is a step; gone on with until nothing is left",
    "sync.document.aside:Aside.take_in": "what stood aside is in the log or parked by then; else it is taken in again",
    "sync.document.neighbours:park": "named by its bytes: parked again, it is the same file",
    "sync.memory.daily.files:_clear_aside": HALF_MADE,
    "sync.memory.daily.files:Pages._take_place": "until the marker is ours every look does it again",
    "sync.memory.daily.vectors:Export._put": "the marker names both what stands there and what will",
    "sync.log.ending:Sessions._write": "which sessions are open here; one that is not noted ends when it falls idle",
    "sync.tree.importing:Importer._note": "taken in again, a file's events are known by their ids",
    "sync.tree.files:EventFile.remove": AGAIN,
    "sync.tree.tree:Tree._describe": AGAIN,
    "sync.tree.tree:Tree._rebuild": AGAIN,
    "sync.insights.cache:Cache._remove_older": CACHE,
    "sync.insights.room:Insights._write": CACHE,
    "sync.insights.room:Insights.rebuild": CACHE,
    "sync.document.memory_file:MemoryFile._settle_file": "one unlink, which the next look at the file does again",
    "sync.memory.daily.places:Places.set_option": ALONE,
    "bridge.cli.redact:_write": ALONE,
    "bridge.rpc.endpoint:_listening": "the socket of a killed sidecar, which the next sidecar replaces",
    "bridge.serving:log_to_stderr_and_file": "a link in the place of the log of what happened",
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """`function` is `module:Class.function`; `called` as it is called there."""

    function: str
    called: str

    def is_labelled(self) -> bool:
        module = self.function.partition(":")[0]
        return bool({self.function, f"{module}:{self.called}"} & _labelled())


@cache
def _labelled() -> frozenset[str]:
    """The steps under the names where they are looked up, and the functions there under their own."""
    owners = ((name, *place_of(step)) for step, name in STEPS.items())
    found = {name: getattr(owner, attribute) for name, owner, attribute in owners}
    return frozenset({*found, *(f"{call.__module__}:{call.__qualname__}" for call in found.values())})


def places() -> set[Place]:
    """Every one in `sync` and `bridge`."""
    files = (path for package in ("sync", "bridge") for path in (REPOSITORY / package).rglob("*.py"))
    return {place for path in files for place in places_in(path.read_text("utf-8"), _module(path))}


def places_in(source: str, module: str) -> Iterator[Place]:
    yield from _below(ast.parse(source), module, ())


def _module(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def _below(node: ast.AST, module: str, within: tuple[str, ...]) -> Iterator[Place]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _below(child, module, (*within, child.name))
        else:
            if called := _called(child):
                yield Place(f"{module}:{'.'.join(within)}", called)
            yield from _below(child, module, within)


def _called(node: ast.AST) -> str | None:
    """The name of what changes files, called here or handed on to be called; None for anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in OF_OS:
            return name
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in CALLS:
            return name
        case ast.Call(func=ast.Attribute(attr="replace" | "rename" as name), args=[_], keywords=[]):
            return name  # a path's; a text's takes two, a moment's takes names
    return None
