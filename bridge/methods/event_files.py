"""`events/files`, `events/rebuildFiles`, `events/import`, `sessionMeta/*`: the event store's files and sessions."""

from typing import Annotated, Any, Final

import msgspec

from bridge.methods.door import Door
from bridge.methods.paths import absolute
from bridge.methods.table import Context, Method, NoParams, Params
from sync.errors import AlreadyRunning
from sync.published.event_files import EventFilesJson, ImportedJson, RebuiltJson, SessionMetaJson, SessionsJson

IMPORTING: Final = "events-import"  # the token of `$/progress`, in bytes
REBUILDING: Final = "events-rebuild"  # likewise, in events


class Import(Params, frozen=True):
    """Files of JSON lines, or folders in which to look for `*.jsonl`; absolute, or from `~` on."""

    paths: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1, max_length=1_000)]


class Upsert(Params, frozen=True):
    """`session_id`, and what is to be said of it: title, tags, summary, anything."""

    meta: dict[str, Any]


class List(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The filter of seed 002 §5.3, in its own snake_case names."""

    project_id: str | None = None
    days: float | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = 1_000


async def files(context: Context[Door], params: NoParams) -> EventFilesJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()
    from sync.contract import event_files  # noqa: PLC0415 - the room, which a start need not load
    from sync.tree.tree import written  # noqa: PLC0415 - as above

    root = app.events.tree.root
    return event_files.files(str(root), await written(root, app.log), await app.log.newest_position())


async def rebuild(context: Context[Door], params: NoParams) -> RebuiltJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()
    from sync.contract import event_files  # noqa: PLC0415 - as above

    if not app.is_sidecar:
        raise AlreadyRunning("a running sidecar keeps the files of events", hint="Ask it, over JSON-RPC, or stop it.")

    def told(done: int, total: int) -> None:
        context.progress(REBUILDING, {"kind": "report", "title": "events", "done": done, "total": total})

    return event_files.rebuilt(await app.events.tree.rebuild(told))


async def take(context: Context[Door], params: Import) -> ImportedJson:
    app = await context.app.opened()
    from sync.contract import event_files  # noqa: PLC0415 - as above

    def heard(done: int, total: int) -> None:
        context.progress(IMPORTING, {"kind": "report", "title": "import", "done": done, "total": total})

    paths = [absolute(path, "paths") for path in params.paths]
    return event_files.imported(await app.events.importer.take(paths, heard))


async def upsert(context: Context[Door], params: Upsert) -> SessionMetaJson:
    app = await context.app.opened()
    from sync.contract import event_files  # noqa: PLC0415 - as above

    return event_files.upserted(await app.events.sessions.upsert(params.meta))


async def listed(context: Context[Door], params: List) -> SessionsJson:
    app = await context.app.opened()
    from sync.contract import event_files  # noqa: PLC0415 - as above

    return event_files.sessions(await app.events.sessions.listed(msgspec.to_builtins(params)))


METHODS: Final[list[Method[Door, Any]]] = [
    Method("events/files", NoParams, files, "Where the JSONL files of the log lie, and how far they have come."),
    Method("events/rebuildFiles", NoParams, rebuild, "Make those files what the log says.", timeout=None),
    Method("events/import", Import, take, "Record the events of JSONL files; idempotent.", timeout=None),
    Method("sessionMeta/upsert", Upsert, upsert, "Say something of a session: title, tags, summary, anything."),
    Method("sessionMeta/list", List, listed, "Sessions of a project, or of all, newest first."),
]
