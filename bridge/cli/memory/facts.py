"""`facts list | review | confirm | reject | edit | retract | explain`."""

from typing import Annotated, Any, Final

import typer

from bridge.cli.arguments import project_option, text_argument
from bridge.cli.output import echo, localized, say
from bridge.cli.runner import CommandApp, run_command
from bridge.cli.sidecar_runner import Request

app = CommandApp(help="What is known about you and your projects, and your answers about it.", no_args_is_help=True)

FactIdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id, or its beginning.")]
SECTIONS: Final = {
    "personal": "About me",
    "work_habits": "Work habits",
    "communication_style": "Communication style",
    "technical_preferences": "Technical preferences",
}
STATUSES: Final = {
    "active": "active",
    "candidate": "to be confirmed",
    "superseded": "replaced",
    "retracted": "retracted",
}
ORIGINS: Final = {
    "user-stated": "you said it",
    "user-confirmed": "you confirmed it",
    "agent-proposed": "a program proposed it",
    "imported": "imported",
    "other-device": "another device",
}
VERDICTS: Final = {
    "confirmed": "you confirmed it",
    "rejected": "you rejected it",
    "edited": "you edited it",
    "retracted": "you retracted it",
    "superseded": "it was replaced",
    "questioned": "a model takes it for changed",
    "doubted": "a model takes it for misread",
}


@app.command("list")
def list_facts(
    words: Annotated[str, typer.Argument(help="Words that a fact has all of.")] = "",
    *,
    status: Annotated[str, typer.Option(help="active, candidate, superseded, retracted or all.")] = "active",
    kind: Annotated[str | None, typer.Option(help="identity, preference, habit, constraint, plan, decision …")] = None,
    project: Annotated[str | None, typer.Option(help="Id or path of a project: its facts, and yours.")] = None,
) -> None:
    """What is known, newest first."""
    params = _without_none(query=words, status=status, kind=kind, project=project_option(project))
    _call("understanding/facts", params, _show_list)


@app.command("review")
def review() -> None:
    """What waits for you: candidates, none of which counts as known, and facts that a newer sentence questions."""
    _call("understanding/review", {}, _show_review)


@app.command("confirm")
def confirm(fact_id: FactIdArgument) -> None:
    """Confirm a candidate or a questioned fact, or bring back a retracted one."""
    _call("understanding/confirm", {"factId": fact_id}, _show_answer("Confirmed"))


@app.command("reject")
def reject(fact_id: FactIdArgument) -> None:
    """Reject a candidate."""
    _call("understanding/reject", {"factId": fact_id}, _show_answer("Rejected"))


@app.command("edit")
def edit(
    fact_id: FactIdArgument, text: Annotated[str, typer.Argument(help="The new words; - reads standard input.")]
) -> None:
    """Give a fact other words, which confirms it."""
    _call("understanding/edit", {"factId": fact_id, "text": text_argument(text)}, _show_answer("Edited"))


@app.command("retract")
def retract(fact_id: FactIdArgument) -> None:
    """Retract a fact for good; `facts confirm` brings it back."""
    _call("understanding/retract", {"factId": fact_id}, _show_answer("Retracted"))


@app.command("explain")
def explain(fact_id: FactIdArgument) -> None:
    """Why a fact is what it is: where you said it, your answers, what it replaced, and what replaced it."""
    _call("understanding/explain", {"factId": fact_id}, _show_explanation)


def _call(method: str, params: dict[str, Any], show: Any) -> None:
    """Run a method as a helper: an edit of the memory file that no sidecar has read retracts or edits facts first."""
    run_command(Request(method, params, show))


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show_list(result: dict[str, Any]) -> None:
    if not result["facts"]:
        say("no fact fits")
    for section, title in SECTIONS.items():
        of_section = [fact for fact in result["facts"] if fact["section"] == section]
        if of_section:
            say("{title} ({count})", title=localized(title), count=len(of_section))
        for fact in of_section:
            echo(_line(fact))
    waiting = result["counts"]["candidate"] - sum(fact["status"] == "candidate" for fact in result["facts"])
    if waiting:
        say("{count} more to be confirmed: xiaobai-memory facts review", count=waiting)
    if questioned := result["counts"]["questioned"]:
        say("{count:fact is|facts are} in question and wait for you: xiaobai-memory facts review", count=questioned)


def _show_review(result: dict[str, Any]) -> None:
    if not result["facts"]:
        say("no fact waits to be confirmed")
        return
    candidates, questioned = result["counts"]["candidate"], result["counts"]["questioned"]
    if candidates:
        say(
            "{count:fact waits|facts wait} to be confirmed: facts confirm or facts reject",
            count=candidates,
        )
    if questioned:
        say(
            "{count:fact is|facts are} in question: facts confirm if it holds, else facts retract",
            count=questioned,
        )
    for fact in sorted(result["facts"], key=lambda one: one["status"] == "active"):
        echo(_line(fact) + ("" if fact["author"] == "device" else _in_brackets(ORIGINS[fact["origin"]])))


def _show_answer(done: str) -> Any:
    def show(result: dict[str, Any]) -> None:
        fact = result["fact"]
        is_over, values = _is_over(fact), {"done": localized(done), "statement": fact["statement"]}
        if is_over:
            say("{done}, but {day} is over, so it no longer holds: {statement}", day=fact["validUntil"], **values)
        else:
            say("{done}: {statement}", **values)

    return show


def _show_explanation(result: dict[str, Any]) -> None:
    fact = result["fact"]
    echo(fact["statement"])
    say("- id: {id}", id=fact["factId"])
    section, origin = localized(SECTIONS[fact["section"]]), localized(ORIGINS[fact["origin"]])
    say("- state: {status}, {section}; {origin}", status=localized(_status(fact)), section=section, origin=origin)
    if fact["slot"]:
        say("- subject: {slot}", slot=fact["slot"])
    since, until = _day(fact["validFrom"]), fact["validUntil"]
    if until:
        say("- since {since}, until {until}", since=since, until=_day(until))
    else:
        say("- since {since}", since=since)
    for said in result["statements"]:
        origin = localized(ORIGINS[said["origin"]])
        say("- {day} {what}: {text} ({id})", day=_day(said["at"]), what=origin, text=said["text"], id=said["eventId"])
    for verdict in result["verdicts"]:
        day, what = _day(verdict["at"]), localized(VERDICTS[verdict["verdict"]])
        if verdict["text"]:
            say("- {day} {what}: {text}", day=day, what=what, text=verdict["text"])
        else:
            echo(f"- {day} {what}")
    for older in result["supersedes"]:
        say("- replaced: {statement} ({day})", statement=older["statement"], day=_day(older["validFrom"]))
    if (newer := result["replacedBy"]) is not None:
        say("- replaced by: {statement} ({day})", statement=newer["statement"], day=_day(newer["validFrom"]))
    if (doubt := fact["questionedBy"]) is not None:
        say("- in question: on {day} you said: {statement} ({factId})", day=_day(doubt["at"]), **doubt)


def _line(fact: dict[str, Any]) -> str:
    status = "" if fact["status"] == "active" else _in_brackets(_status(fact))
    elsewhere = _in_brackets("another device") if fact["author"] == "device" else ""
    question = ""
    if doubt := fact["questionedBy"]:
        name = localized("partly outdated" if fact["outdatedPart"] else "in question")
        since, day, newer = _day(fact["validFrom"]), _day(doubt["at"]), doubt["statement"]
        form = " ({since}; {name}, on {day} you said: {newer})"
        question = localized(form, since=since, name=name, day=day, newer=newer)
    return f"- [{fact['factId']}] {fact['statement']}{status}{elsewhere}{question}"


def _in_brackets(words: str) -> str:
    return localized(" ({words})", words=localized(words))


def _status(fact: dict[str, Any]) -> str:
    return "expired" if _is_over(fact) else STATUSES[fact["status"]]


def _is_over(fact: dict[str, Any]) -> bool:
    """Whether the last day of a fact is over; nothing replaced it. Else its end is a time."""
    is_ended = fact["status"] == "superseded" and fact["supersededBy"] is None
    return is_ended and fact["validUntil"] is not None and "T" not in fact["validUntil"]


def _day(time: str) -> str:
    return time[:10]
