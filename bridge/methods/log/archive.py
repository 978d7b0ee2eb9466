"""`archive/export` and `archive/import`: everything as one file, and back; other programs' conversations."""

from typing import Annotated, Final, Literal

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Params
from bridge.api.path_params import absolute_path
from sync.archive.model import ExportedJson
from sync.contract import archive
from sync.contract.archive import TakenJson
from sync.errors import InvalidInput

PROGRESS_TOKEN: Final = "archive"  # noqa: S105 - of `$/progress`, in events

PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]


class ArchiveExport(Params, frozen=True):
    """`path`: a file that is not there yet, absolute or from `~` on. With a `passphrase` it is sealed."""

    path: PathText
    passphrase: str | None = None
    with_lessons: bool = False
    with_notes: bool = False


class ArchiveImport(Params, frozen=True):
    """`path`: an archive, a memory, notes or a folder of them, the app's database, or an export of Claude or ChatGPT.

    `program`: import the transcripts of this coding agent, from the folders where it keeps them, or from `path`.

    `dryRun`: count, record nothing. `mine`: the user says that an archive is their own memory; only without an account,
    whose devices' signatures tell.
    """

    path: PathText | None = None
    program: Literal["claude-code", "codex", "cursor"] | None = None
    passphrase: str | None = None
    dry_run: bool = False
    mine: bool = False


class ArchivePaste(Params, frozen=True):
    """`text`: what another assistant knows, one thing on a line; at most 1 MiB and 2,000 lines."""

    text: str
    dry_run: bool = False


async def export_archive(context: Context[AppProvider], params: ArchiveExport) -> ExportedJson:
    """Export everything into one file, encrypted if a passphrase is given."""
    app = await context.app.wait_until_open()
    document = (await app.document.view()).document.data
    path, report = absolute_path(params.path, "path"), context.progress_reporter(PROGRESS_TOKEN, "export")
    return await app.archive().export(
        path,
        document=document,
        settings=app.settings.to_archive(),
        passphrase=params.passphrase,
        on_progress=report,
        with_lessons=params.with_lessons,
        with_notes=params.with_notes,
    )


async def import_archive(context: Context[AppProvider], params: ArchiveImport) -> TakenJson:
    """Import an archive, or the files of other programs; idempotent."""
    app = await context.app.wait_until_open()
    path = None if params.path is None else absolute_path(params.path, "path")
    report = context.progress_reporter(PROGRESS_TOKEN, "import")
    if params.program is not None:
        imports = app.archive().import_transcripts(params.program, path, dry_run=params.dry_run, on_progress=report)
        return archive.import_to_json(await imports)
    if path is None:
        raise InvalidInput("name what to import", field="path", hint="Give a file or a folder, or a program.")
    if params.mine and app.account.is_logged_in:
        hint = "Leave it out: what a device of this account signed is taken as its own."
        raise InvalidInput("mine is for a memory without an account", field="mine", hint=hint)
    taken = await app.archive().import_path(
        path, passphrase=params.passphrase, dry_run=params.dry_run, on_progress=report, is_mine=params.mine
    )
    if taken.recorded and not params.dry_run and app.is_sidecar:
        await app.reconcile_memory_file()  # else the running one writes what is new
    return archive.import_to_json(taken)


async def paste_archive(context: Context[AppProvider], params: ArchivePaste) -> TakenJson:
    """Import pasted text: each line becomes a fact that waits for the user's answer (`understanding/review`)."""
    app = await context.app.wait_until_open()
    return archive.import_to_json(await app.archive().import_pasted(params.text, dry_run=params.dry_run))
