"""`redact`: what the rules find in a file or on standard input, and the text without it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.running import STDIN, Invocation, JsonFlag, call, fail, print_json
from sync.app import Role
from sync.contract import redaction as contract
from sync.errors import InvalidInput, TooLarge, XiaobaiError
from sync.files import MOST_BYTES, Probe, compare_and_swap, probe
from sync.published.redaction import RedactedFileJson, RescanJson
from sync.redaction import Examined, Redactor
from sync.settings import Settings


def redact(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(help="A text file; - reads standard input and writes standard output.")
    ] = None,
    *,
    write: Annotated[Path | None, typer.Option("--write", help="Write the redacted text into this file.")] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write it over the file itself.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Read the whole log under the rules of today instead.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="With --log: correct what is found, everywhere.")] = False,
    json: JsonFlag = False,
) -> None:
    """Count what would be redacted, by kind; changes nothing without --write, --in-place or --apply."""
    if log:
        _refuse_beside_log(file, write, in_place=in_place)
        call(context, "redaction/rescan", {"apply": apply}, _show_rescan, as_json=json, role=Role.HELPER)
    elif file is None:
        raise typer.BadParameter("name a file, - or --log", param_hint="FILE")
    elif in_place and file == STDIN:
        raise typer.BadParameter("standard input has no place", param_hint="--in-place")
    elif in_place and write is not None:  # the text as it was would be gone from the one, and nothing in the other
        raise typer.BadParameter("into one file: leave --write or --in-place out", param_hint="--in-place")
    else:
        _redact_file(context, file, path_to_write=Path(file) if in_place else write, as_json=json)


def _refuse_beside_log(file: str | None, write: Path | None, *, in_place: bool) -> None:
    """`--log` reads no file: one that is named would be left as it is without a word."""
    for name, given in (("FILE", file is not None), ("--write", write is not None), ("--in-place", in_place)):
        if given:
            raise typer.BadParameter("--log reads the log, and no file", param_hint=name)


def _redact_file(context: typer.Context, file: str, *, path_to_write: Path | None, as_json: bool) -> None:
    invocation = context.ensure_object(Invocation)
    as_json = as_json or invocation.json
    try:
        redactor = Redactor(extra_patterns=Settings.gather(**invocation.flags).redaction.patterns)
        if file == STDIN:
            _filter(redactor, path_to_write, as_json=as_json)
            return
        path = Path(file)
        before = _read(path)
        found = redactor.examine(_text(before.data, file))
        if path_to_write is not None:
            same = path_to_write.resolve() == path.resolve()
            _write(path_to_write, found, before if same else _probed(path_to_write))
    except XiaobaiError as error:
        fail(error, as_json=as_json)
    _show(contract.redacted_file(file, found, None if path_to_write is None else str(path_to_write)), as_json=as_json)


def _show_rescan(told: RescanJson) -> None:
    for kind, count in told["counts"].items():
        typer.echo(f"{count:>6}  {kind}")
    done = "corrected" if told["applied"] else "would be corrected; --apply does it"
    typer.echo(f"{len(told['corrected'])} of {told['events']} events {done}")
    for name in told["unreadArchives"]:
        typer.echo(f"the archive {name} cannot be read and is left as it is", err=True)


def _filter(redactor: Redactor, write: Path | None, *, as_json: bool) -> None:
    """Standard input to standard output, or with --write into a file; the counts go where the text does not."""
    found = redactor.examine(_text(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input"))
    if write is not None:
        _write(write, found, _probed(write))
        _show(contract.redacted_file(STDIN, found, str(write)), as_json=as_json)
    elif as_json:
        print_json(contract.checked(found))
    else:
        sys.stdout.buffer.write(found.text.encode())
        sys.stderr.write("".join(f"{kind} {count}\n" for kind, count in found.counts.items()))


def _show(told: RedactedFileJson, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for kind, count in told["counts"].items():
        typer.echo(f"{count:>6}  {kind}")
    done = "nothing was changed" if told["written"] is None else f"written to {told['written']}"
    typer.echo(f"{told['total']:>6}  found in {told['source']}; {done}")


def _read(path: Path) -> Probe:
    found = probe(path)
    if found is None:
        raise InvalidInput(f"there is no file {path}", field="file")
    return found


def _probed(target: Path) -> Probe | None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder", field="write")
    return probe(target)


def _text(data: bytes, source: str) -> str:
    if len(data) > MOST_BYTES:
        raise TooLarge(f"{source} is larger than {MOST_BYTES >> 20} MiB", field="file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{source} is not text in UTF-8", field="file") from None  # the cause holds the text


def _write(target: Path, found: Examined, before: Probe | None) -> None:
    compare_and_swap(target, None if before is None else before.sha256, found.text.encode())
