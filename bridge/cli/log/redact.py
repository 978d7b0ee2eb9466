"""`redact`: what the rules find in a file or on standard input, and the text without it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.arguments import STDIN
from bridge.cli.output import CliContext, localized, print_json, print_result, say
from bridge.cli.runner import call_method, cli_context
from sync.contract import redaction as contract
from sync.contract.redaction import RedactedFileJson, RescanJson
from sync.errors import InvalidInput, TooLarge
from sync.redaction import ExaminedText, Redactor
from sync.settings.settings import Settings
from sync.system.atomic_swap import compare_and_swap
from sync.system.files import MAX_READ_BYTES, FileProbe, read_once


def redact(
    file: Annotated[
        str | None, typer.Argument(help="A text file; - reads standard input and writes standard output.")
    ] = None,
    *,
    write: Annotated[Path | None, typer.Option("--write", help="Write the redacted text into this file.")] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write it over the file itself.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Examine the whole log with the current rules instead.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="With --log: correct what is found, everywhere.")] = False,
) -> None:
    """Count what would be redacted, by kind; changes nothing without --write, --in-place or --apply."""
    if log:
        _reject_options_beside_log(file, write, in_place=in_place)
        call_method("redaction/rescan", {"apply": apply}, _show_rescan, role="helper")
    elif file is None:
        raise typer.BadParameter("name a file, - or --log", param_hint="FILE")
    elif in_place and file == STDIN:
        raise typer.BadParameter("standard input has no place", param_hint="--in-place")
    elif in_place and write is not None:  # the text as it was would be gone from the one, and nothing in the other
        raise typer.BadParameter("into one file: leave --write or --in-place out", param_hint="--in-place")
    else:
        _redact_file(file, Path(file) if in_place else write)


def _reject_options_beside_log(file: str | None, write: Path | None, *, in_place: bool) -> None:
    """`--log` reads no file: one that is named would be left as it is without a word."""
    for name, given in (("FILE", file is not None), ("--write", write is not None), ("--in-place", in_place)):
        if given:
            raise typer.BadParameter("--log reads the log, and no file", param_hint=name)


def _redact_file(file: str, path_to_write: Path | None) -> None:
    cli = cli_context()
    redactor = Redactor(extra_patterns=Settings.from_sources(**cli.flags).redaction.patterns)
    if file == STDIN:
        _redact_stdin(cli, redactor, path_to_write)
        return
    path = Path(file)
    before = _read_file(path)
    found = redactor.examine(_decode_text(before.data, file))
    if path_to_write is not None:
        same = path_to_write.resolve() == path.resolve()
        _write_redacted(path_to_write, found, before if same else _probe_target(path_to_write))
    written = None if path_to_write is None else str(path_to_write)
    print_result(cli, contract.redacted_file_to_json(file, found, written), _show_redacted_file)


def _show_rescan(result: RescanJson) -> None:
    for kind, count in result["counts"].items():
        typer.echo(f"{count:>6}  {kind}")
    done = localized("corrected" if result["applied"] else "would be corrected; --apply does it")
    if result["corrected"]:
        say("{count} of {events} events {done}", count=len(result["corrected"]), done=done, **result)
    else:
        say("nothing to correct in {events:event|events}", **result)
    for name in result["unreadArchives"]:
        say("the archive {name} cannot be read and is left as it is", name=name, err=True)


def _redact_stdin(cli: CliContext, redactor: Redactor, target: Path | None) -> None:
    """Standard input to standard output, or with --write into a file; the counts go to the other stream."""
    found = redactor.examine(_decode_text(sys.stdin.buffer.read(MAX_READ_BYTES + 1), "standard input"))
    if target is not None:
        _write_redacted(target, found, _probe_target(target))
        print_result(cli, contract.redacted_file_to_json(STDIN, found, str(target)), _show_redacted_file)
    elif cli.json:
        print_json(contract.check_to_json(found))
    else:
        sys.stdout.buffer.write(found.text.encode())
        sys.stderr.write("".join(f"{kind} {count}\n" for kind, count in found.counts.items()))


def _show_redacted_file(result: RedactedFileJson) -> None:
    for kind, count in result["counts"].items():
        typer.echo(f"{count:>6}  {kind}")
    if result["written"] is None:
        say("{total:>6}  found in {source}; nothing was changed", **result)
    else:
        say("{total:>6}  found in {source}; written to {written}", **result)


def _read_file(path: Path) -> FileProbe:
    found = read_once(path)
    if found is None:
        raise InvalidInput(f"there is no file {path}", field="file")
    return found


def _probe_target(target: Path) -> FileProbe | None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder", field="write")
    return read_once(target)


def _decode_text(data: bytes, source: str) -> str:
    if len(data) > MAX_READ_BYTES:
        raise TooLarge(f"{source} is larger than {MAX_READ_BYTES >> 20} MiB", field="file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{source} is not text in UTF-8", field="file") from None  # the cause holds the text


def _write_redacted(target: Path, examined: ExaminedText, before: FileProbe | None) -> None:
    compare_and_swap(target, None if before is None else before.sha256, examined.text.encode())
