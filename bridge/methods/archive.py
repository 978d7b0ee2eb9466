"""`archive/export` and `archive/import`: everything as one file, and back; other programs' conversations."""

from typing import Annotated, Any, Final

import msgspec

from bridge.methods.door import Door
from bridge.methods.paths import absolute
from bridge.methods.table import Context, Method, Params
from sync.published.archive import ExportedJson, TakenJson

TOKEN: Final = "archive"  # noqa: S105 - of `$/progress`, in events

PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]


class ArchiveExport(Params, frozen=True):
    """`path`: a file that is not there yet, absolute or from `~` on. With a `passphrase` it is sealed."""

    path: PathText
    passphrase: str | None = None


class ArchiveImport(Params, frozen=True):
    """`path`: an archive, a memory file or the app's database, daily pages, or a conversations.json (or its zip).

    `dryRun`: count, record nothing.
    """

    path: PathText
    passphrase: str | None = None
    dry_run: bool = False


async def export(context: Context[Door], params: ArchiveExport) -> ExportedJson:
    app = await context.app.opened()
    from sync.contract import archive  # noqa: PLC0415 - the room, which a start need not load

    settings: dict[str, Any] = app.settings.shown()
    settings["supabase_key"] = None
    settings["redaction"]["patterns"] = len(settings["redaction"]["patterns"])  # they say what nobody is to see
    document = (await app.document.view()).text
    path, heard = absolute(params.path, "path"), _heard(context, "export")
    return archive.exported(
        await app.archive().export(
            path, document=document, settings=settings, passphrase=params.passphrase, heard=heard
        )
    )


async def take(context: Context[Door], params: ArchiveImport) -> TakenJson:
    app = await context.app.opened()
    from sync.contract import archive  # noqa: PLC0415 - as above

    path, heard = absolute(params.path, "path"), _heard(context, "import")
    taken = await app.archive().take(path, passphrase=params.passphrase, dry_run=params.dry_run, heard=heard)
    if taken.recorded and not params.dry_run and app.is_sidecar:
        await app.settle()  # else the running one writes what is new
    return archive.taken(taken)


def _heard(context: Context[Door], title: str) -> Any:
    def heard(done: int, total: int) -> None:
        context.progress(TOKEN, {"kind": "report", "title": title, "done": done, "total": total})

    return heard


METHODS: Final[list[Method[Door, Any]]] = [
    Method(
        "archive/export",
        ArchiveExport,
        export,
        "Everything as one file, sealed where a passphrase is given.",
        timeout=None,
    ),
    Method(
        "archive/import",
        ArchiveImport,
        take,
        "Take an archive in, or what other programs kept; idempotent.",
        timeout=None,
    ),
]
