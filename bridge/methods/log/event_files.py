"""`events/files`, `events/rebuildFiles`, `events/import`, `sessionMeta/*`: the event store's files and sessions."""

from typing import Annotated, Any, Final

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Params
from bridge.api.path_params import absolute_path
from sync.app import App
from sync.contract import event_files
from sync.contract.event_files import EventFilesJson, ImportedJson, SessionMetaJson, SessionsJson
from sync.errors import AlreadyRunning
from sync.jsonl.projection import RebuiltJson, read_exported_position

IMPORT_TOKEN: Final = "events-import"  # noqa: S105 - the token of `$/progress`, in bytes
REBUILD_TOKEN: Final = "events-rebuild"  # noqa: S105 - likewise, in events


class Import(Params, frozen=True):
    """Files of JSON lines, or folders in which to look for `*.jsonl`; absolute, or from `~` on."""

    paths: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1, max_length=1_000)]


class Upsert(Params, frozen=True):
    """`session_id`, and its title, tags, summary or anything else."""

    meta: dict[str, Any]


class List(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The filter of `session-meta list`, in snake_case as on the command line."""

    project_id: str | None = None
    days: float | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = 1_000


async def describe_files(app: App) -> EventFilesJson:
    """The folder of the JSONL files, and up to which event they are written."""
    root = app.event_files.projection.root
    return event_files.event_files_to_json(
        str(root), await read_exported_position(root, app.log), await app.log.newest_position()
    )


async def rebuild_files(context: Context[AppProvider]) -> RebuiltJson:
    """Write the JSONL files again from the log."""
    app = await context.app.wait_until_open()
    if not app.is_sidecar:
        raise AlreadyRunning("a running sidecar keeps the files of events", hint="Ask it, over JSON-RPC, or stop it.")

    report = context.progress_reporter(REBUILD_TOKEN, "events")
    return await app.event_files.rebuild(report)


async def import_files(context: Context[AppProvider], params: Import) -> ImportedJson:
    """Record the events of JSONL files; idempotent."""
    app, report = await context.app.wait_until_open(), context.progress_reporter(IMPORT_TOKEN, "import")
    paths = [absolute_path(path, "paths") for path in params.paths]
    return event_files.file_imports_to_json(await app.event_files.importer.import_paths(paths, report))


async def upsert_session_meta(app: App, params: Upsert) -> SessionMetaJson:
    """Set the title, tags, summary or other fields of a session."""
    return event_files.session_meta_to_json(await app.event_files.sessions.upsert(params.meta))


async def list_sessions(app: App, params: List) -> SessionsJson:
    """Sessions of a project, or of all, newest first."""
    return event_files.sessions_to_json(await app.event_files.sessions.list_sessions(msgspec.to_builtins(params)))
