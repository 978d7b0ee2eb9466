"""`notes …`: curated notes of a project."""

import os
from typing import Annotated, Any

import typer

from bridge.cli.arguments import folder_option, json_argument, path_argument, text_argument
from bridge.cli.output import echo, in_own_language, localized, say
from bridge.cli.runner import CommandApp, run_command
from bridge.cli.sidecar_runner import Request

app = CommandApp(help="Curated notes of a project: remembered, asked about, retrieved.", no_args_is_help=True)

ProjectFolder = Annotated[
    str | None, typer.Option("--project", help="The project's folder; this one by default.", callback=folder_option)
]
SessionId = Annotated[str | None, typer.Option("--session", help="The conversation's id.")]
Payloads = Annotated[str, typer.Argument(help="A JSON array of payloads, or - for standard input.")]
NoteId = Annotated[str, typer.Argument(help="The note, as `notes list` names it.")]


@app.command("remember")
def remember(payloads: Payloads = "[]", *, project: ProjectFolder = None, session: SessionId = None) -> None:
    """Keep judgements that the user asked to remember."""
    _remember("notes/remember", payloads, project, session)


@app.command("extract")
def extract(payloads: Payloads = "[]", *, project: ProjectFolder = None, session: SessionId = None) -> None:
    """Keep judgements that were extracted from a conversation."""
    _remember("notes/extract", payloads, project, session)


@app.command("init")
def init(payloads: Payloads = "[]", *, project: ProjectFolder = None, session: SessionId = None) -> None:
    """Create the folder of notes with its template, and keep confirmed drafts."""
    _remember("notes/init", payloads, project, session)


@app.command("questions")
def questions(*, project: ProjectFolder = None) -> None:
    """The questions that wait for an answer."""
    _call("notes/questions", {}, project, _show_questions)


@app.command("answer")
def answer(
    question_id: Annotated[str, typer.Argument(help="As `notes questions` names it.")],
    option: Annotated[str, typer.Argument(help="a confirm, b cancel, c write as new, d compare.")],
    *,
    project: ProjectFolder = None,
) -> None:
    """Answer a question."""
    _call("notes/answer", {"questionId": question_id, "option": option}, project, _show_outcome)


@app.command("retrieve")
def retrieve(message: str, *, project: ProjectFolder = None) -> None:
    """At most two notes for a message; nothing without a match."""
    _call("notes/retrieve", {"message": text_argument(message)}, project, _show_retrieved)


@app.command("sniff")
def sniff(
    decision_point: str,
    *,
    option: Annotated[list[str] | None, typer.Option(help="Once for each.")] = None,
    project: ProjectFolder = None,
) -> None:
    """Whether a note already decides a point."""
    _call("notes/sniff", {"decisionPoint": decision_point, "options": option or []}, project, _show_sniffed)


@app.command("list")
def list_notes(
    *,
    status: Annotated[str | None, typer.Option(help="active, local or archive.")] = None,
    project: ProjectFolder = None,
) -> None:
    """The notes of a project, shared ones included."""
    _call("notes/list", {} if status is None else {"status": status}, project, _show_list)


@app.command("show")
def show(note_id: NoteId, *, project: ProjectFolder = None) -> None:
    """The text of a note."""
    _call("notes/show", {"id": note_id}, project, lambda result: echo(result["notes"][0]["text"], nl=False))


@app.command("archive")
def archive(
    note_id: NoteId,
    *,
    status: Annotated[str, typer.Option(help="archive; active or local bring it back.")] = "archive",
    project: ProjectFolder = None,
) -> None:
    """Keep a note without retrieving it any more."""
    _call("notes/archive", {"id": note_id, "status": status}, project, _show_outcome)


@app.command("delete")
def delete(note_id: NoteId, *, project: ProjectFolder = None) -> None:
    """Delete a note; asks first."""
    _call("notes/delete", {"id": note_id}, project, _show_outcome)


@app.command("export")
def export(
    *,
    share: Annotated[str, typer.Option(help="The folder of the team's repository.", callback=path_argument)],
    project: ProjectFolder = None,
) -> None:
    """Copy the notes that are for the team; a file that is there keeps its bytes."""
    _call("notes/export", {"path": share}, project, _show_shared)


@app.command("take")
def take(
    note_ids: Annotated[list[str] | None, typer.Argument(help="The notes, as `notes list` names them.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All but the team's.")] = False,
    project: ProjectFolder = None,
) -> None:
    """Make notes that a repository brought your own; `notes list` counts them."""
    params = {"ids": note_ids or [], "all": everything}
    _call("notes/take", params, project, lambda one: say("taken: {taken}", taken=", ".join(one["taken"]) or "-"))


@app.command("session")
def session(
    *, language: Annotated[str | None, typer.Option(help="zh or en.")] = None, project: ProjectFolder = None
) -> None:
    """What a session's start is given."""
    params = {} if language is None else {"language": language}
    _call("notes/session", params, project, lambda result: echo(result["text"]))


@app.command("doctor")
def doctor(*, project: ProjectFolder = None) -> None:
    """The four rates, and where INDEX.md and the notes differ; changes nothing."""
    _call("notes/doctor", {}, project, _show_rates)


def _remember(method: str, payloads: str, project: str | None, session: str | None) -> None:
    params: dict[str, Any] = {"payloads": json_argument(payloads, name="payloads")}
    if session is not None:
        params["sessionId"] = session
    _call(method, params, project, _show_remembered)


def _call(method: str, params: dict[str, Any], project: str | None, show: Any) -> None:
    run_command(Request(method, {"projectPath": project or os.getcwd(), **params}, show, repeatable=False))  # noqa: PTH109


def _show_remembered(result: dict[str, Any]) -> None:
    for outcome in result["outcomes"]:
        _show_outcome(outcome)
    for notice in result["notices"]:
        echo(notice, err=True)
    if result["hint"]:
        echo(result["hint"])
    elif not result["outcomes"]:
        say("nothing to remember: no payloads")


def _show_outcome(outcome: dict[str, Any]) -> None:
    echo(" ".join(part for part in (outcome["status"], outcome["action"], outcome["noteId"]) if part))
    if outcome["reason"]:
        estimated = localized(" (scores estimated)") if outcome["scoredBy"] == "heuristic" else ""
        echo(f"  {in_own_language(outcome['reason'])}{estimated}")
    if outcome["file"]:
        echo(f"  {outcome['file']}")
    if question := outcome.get("needsConfirmation"):
        _show_question(question)


def _show_question(question: dict[str, Any]) -> None:
    options = " | ".join(f"{letter} {name}" for letter, name in question["options"].items())
    echo(f"  {question['questionId']}: {question['action']} {question['noteId']}? {options}")
    say("  answer with: xiaobai-memory notes answer {questionId} a|b|c|d, for the same --project", **question)
    for line in question["diff"].splitlines():
        echo(f"    {line}")


def _show_questions(result: dict[str, Any]) -> None:
    for question in result["questions"]:
        _show_question(question)
    if not result["questions"]:
        say("no question waits")


def _show_retrieved(result: dict[str, Any]) -> None:
    for note in result["notes"]:
        echo(f"{note['reminder']}  ({note['file']})")
    if result["hint"]:
        echo(result["hint"], err=True)


def _show_sniffed(result: dict[str, Any]) -> None:
    rivals = result["notes"] if result["contradicting"] else []
    say("covered" if result["covered"] else "not covered: notes contradict each other" if rivals else "not covered")
    for note in rivals or filter(None, [result["note"]]):
        echo(f"{note['reminder']}  ({note['file']})")


def _show_list(result: dict[str, Any]) -> None:
    for note in result["notes"]:
        echo(f"{note['id']}  {note['status']:<7} {note['strength']:<10} {note['title']}")
    for notice in result["notices"]:
        echo(notice, err=True)
    if result["takeable"]:
        say("of the repository, not yours yet: {takeable} (`notes take --all` makes them yours)", err=True, **result)
    if not result["notes"]:
        say("no notes")


def _show_shared(result: dict[str, Any]) -> None:
    for state in ("written", "unchanged"):
        for name in result[state]:
            echo(f"{localized(state):<9}  {name}")
    for refused in result["refused"]:
        say("refused    {file}: {reason}", **refused)
    say("{others:other note is|other notes are} not for the team", **result)


def _show_rates(result: dict[str, Any]) -> None:
    for name in ("duplicateCreation", "mergeConversion", "fragmentation", "correctionAfterInjection"):
        echo(f"{name}: {'-' if result[name] is None else result[name]}")
    for line in result["drift"]:
        say("drift: {line}", line=line)
