"""`export` and `import`: everything as one file, and back; conversations of other programs."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bridge.cli.arguments import STDIN, path_argument, read_stdin_line, text_argument
from bridge.cli.output import localized, say
from bridge.cli.progress import call_with_progress
from bridge.cli.runner import call_method
from sync.errors import InvalidInput

PassphraseFile = Annotated[
    str | None, typer.Option(help="A file whose first line is the passphrase; - reads standard input.")
]

_SKIPPED: Final = {
    "spoken": "{count:spoken turn|spoken turns} without text",
    "images": "{count:image|images}",
    "files": "{count:attached file|attached files}",
    "tools": "{count:tool message|tool messages}",
    "thoughts": "{count:thought|thoughts} of the model",
    "hidden": "{count:message|messages} of the program itself",
    "branches": "{count:message|messages} of other branches",
    "subagents": "{count:message|messages} between agents",
    "headings": "{count:heading|headings}",
    "unreadable": "{count:value|values} that cannot be read",
    "hidden_files": "{count:hidden file or folder|hidden files and folders}",
    "other_files": "{count:file|files} of other kinds",
}


def export_archive(
    path: Annotated[str, typer.Argument(help="The file to write; it must not exist yet.")],
    *,
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Seal it with a passphrase, asked for here.")] = False,
    passphrase_file: PassphraseFile = None,
    with_lessons: Annotated[bool, typer.Option("--with-lessons", help="Lessons too; by default they stay.")] = False,
    with_notes: Annotated[
        bool, typer.Option("--with-notes", help="Events of notes too; by default they stay.")
    ] = False,
) -> None:
    """Write the whole memory into one file: events, document, versions, settings without secrets."""
    passphrase = _read_passphrase(passphrase_file, ask=encrypt, twice=True)
    chosen = {"withLessons": with_lessons, "withNotes": with_notes}
    params = {"path": path_argument(path), "passphrase": passphrase, **chosen}
    call_with_progress("archive/export", params, _show_exported)


def import_archive(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A memory, notes or a folder of them, an archive, the app database, or an export of Claude or ChatGPT."
        ),
    ] = None,
    *,
    paste: Annotated[
        bool, typer.Option("--paste", help="Read what another assistant knows, a thing on a line, from PATH or stdin.")
    ] = False,
    program: Annotated[
        str | None,
        typer.Option("--from", help="Transcripts of claude-code, codex or cursor, from its own folders or from PATH."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what it holds, record nothing.")] = False,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="It is sealed: ask for its passphrase.")] = False,
    passphrase_file: PassphraseFile = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="An archive of your own memory, moved here before a login.")
    ] = False,
) -> None:
    """Import an export, or the files of another program. Importing again records nothing new."""
    if paste:
        pasted = {"text": _read_pasted(path), "dryRun": dry_run}
        _end_import(call_with_progress("archive/paste", pasted, _show_imported))
        return
    if program is not None:
        place = None if path is None else path_argument(path)
        transcripts = {"program": program, "path": place, "dryRun": dry_run}
        _end_import(call_with_progress("archive/import", transcripts, _show_imported))
        return
    if path is None:
        raise InvalidInput("name what to import", field="path", hint="Give a file or a folder, --paste or --from.")
    passphrase = _read_passphrase(passphrase_file, ask=encrypted, twice=False)
    params = {"path": path_argument(path), "passphrase": passphrase, "dryRun": dry_run, "mine": mine}
    # Archives of earlier versions may be sealed with the byte order mark of the passphrase's file before it.
    marked = None if passphrase_file is None else {"passphrase": f"\ufeff{passphrase}"}
    if not (mine or dry_run) and sys.stdin.isatty() and sys.stderr.isatty() and not _is_logged_in():
        found = call_with_progress("archive/import", {**params, "dryRun": True}, lambda _: None, retry_params=marked)
        question = f"No known device signed {found['unproven']} of its events. Is it your own memory?"
        params["mine"] = found["unproven"] > 0 and typer.confirm(question, default=False, err=True)
    _end_import(call_with_progress("archive/import", params, _show_imported, retry_params=marked))


def _end_import(done: dict[str, Any]) -> None:
    """Exit with 1 if something was found and nothing of it taken."""
    if (done["refused"] or done["skipped"]) and not done["recorded"] and not done["known"]:
        raise SystemExit(1)


def _read_pasted(path: str | None) -> str:
    if path in (None, STDIN):
        return text_argument(STDIN)
    try:
        return Path(path_argument(str(path))).expanduser().read_text("utf-8-sig")
    except (OSError, RuntimeError, UnicodeDecodeError):
        raise InvalidInput(f"{path} cannot be read as text in UTF-8", field="path") from None


def _is_logged_in() -> bool:
    return bool(call_method("auth/status", {}, lambda _: None)["account"]["state"] == "logged_in")


def _read_passphrase(source: str | None, *, ask: bool, twice: bool) -> str | None:
    """Never an argument: the list of processes and the shell's history show those."""
    if source is None and not ask:
        return None
    if source is None:
        if not sys.stdin.isatty():
            hint = "Give it with `--passphrase-file F`, or with `-` in place of F on standard input."
            raise InvalidInput("there is no terminal to ask for the passphrase at", field="passphrase", hint=hint)
        return str(typer.prompt("passphrase", hide_input=True, confirmation_prompt=twice, err=True))
    try:
        text = read_stdin_line() if source == STDIN else Path(source).expanduser().read_text("utf-8-sig")
    except (OSError, RuntimeError, UnicodeDecodeError):  # the last one's text would repeat the passphrase
        raise InvalidInput(f"{source} cannot be read", field="passphrase") from None
    if not text.strip():
        raise InvalidInput(f"{source} holds no passphrase", field="passphrase")
    return text.splitlines()[0]


def _show_exported(result: dict[str, Any]) -> None:
    sealed = localized("sealed" if result["sealed"] else "not encrypted")
    say("{path}: {events:event|events}, {versions:version|versions}, {sealed}", **{**result, "sealed": sealed})
    typer.echo(f"sha256 {result['sha256']}")


def _show_imported(result: dict[str, Any]) -> None:
    done = localized("would be recorded" if result["dryRun"] else "recorded")
    if result["conversations"]:
        say("{source}: {conversations:conversation|conversations}", **result)
    say("{found:event|events}: {recorded} {done}, {known} known already", done=done, **result)
    if result["shortened"]:
        say("{shortened:message|messages} in short; PRIVACY__STORE_PROGRAM_MESSAGES=true keeps whole ones", **result)
    if result["source"] == "pasted" and result["recorded"]:
        say("{facts:line|lines} wait for your answer: facts review", facts=result["recorded"])
    if result["unproven"]:
        say("{unproven} of them are shown as imported: no known device signed them", **result)
    if result["refused"]:
        say("{refused} refused", refused=result["refused"])
    for refused in result["refusals"]:
        typer.echo(f"  {refused['item']}: {refused['problem']}")
    if result["skipped"]:
        counted = [localized(_SKIPPED[one["kind"]], count=one["count"]) for one in result["skipped"]]
        say("skipped: {what}", what=", ".join(counted))
