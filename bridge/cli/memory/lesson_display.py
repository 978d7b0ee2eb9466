"""How the commands of `lessons` print their results for people."""

from typing import Any, Final

from bridge.cli.output import echo, localized, say

FOUND: Final = {"error": "errors ({count})", "pattern": "patterns ({count})"}
KNOWN: Final = {"error": "known already, seen {count:time|times}", "pattern": "known already, used {count:time|times}"}
KIND_NAMES: Final = {"error": "error", "pattern": "pattern"}


def show_learned(result: dict[str, Any]) -> None:
    lesson = result["lesson"]
    if result["recorded"]:
        say("recorded as a lesson")
    else:
        say(KNOWN[lesson["kind"]], count=lesson["occurrences"])
    say("- kind: {kind}", kind=localized(KIND_NAMES[lesson["kind"]]))
    say("- id: {id}", id=lesson["id"])
    say("- tags: {tags}", tags=", ".join(lesson["record"].get("tags") or []) or "-")
    if not result["recorded"] and (cure := _cure_of(lesson["record"])):
        say("- solution: {cure}", cure=cure)
    say("- related lessons: {count}", count=len(result["related"]))


def show_proposal(result: dict[str, Any]) -> None:
    record = result["record"]
    if record is None:
        say("no failed command was recorded; give the error with --message and what solved it with --solution")
        return
    error = record["error"]
    say("the latest error: {error}", error=": ".join(part for part in (error["type"], error["message"]) if part))
    say("- command: {command}", command=record["context"]["task"] or "-")
    say("- may have been solved by: {cure}", cure=_joined(record["solution"]["actions"]) or "-")
    say("--yes records it; or say with --solution what solved it")


def _joined(texts: list[Any]) -> str:
    return localized("; ").join(str(text) for text in texts if text)


def _cure_texts(record: dict[str, Any]) -> list[Any]:
    """The texts of a solution. An imported record is kept value for value, so it may be of any type."""
    solution = record.get("solution")
    if not isinstance(solution, dict):
        return [solution]
    actions = solution.get("actions")
    return [solution.get("description"), *(actions if isinstance(actions, list) else [actions])]


def show_found(result: dict[str, Any]) -> None:
    lessons = result["lessons"]
    say("{count:lesson|lessons} found", count=len(lessons))
    for kind, heading in FOUND.items():
        of_kind = [lesson for lesson in lessons if lesson["kind"] == kind]
        if of_kind:
            say(heading, count=len(of_kind))
        for lesson in of_kind:
            show_line(lesson)


def show_line(lesson: dict[str, Any]) -> None:
    record, values = lesson["record"], {"id": lesson["id"], "title": lesson["title"]}
    if lesson["kind"] == "pattern":
        echo(f"- [{lesson['id']}] {lesson['title']}")
        if record.get("when_to_use"):
            say("  - use it when: {texts}", texts=_joined(record["when_to_use"]))
        return
    say("- [{id}] {title} (seen {count:time|times})", count=lesson["occurrences"], **values)
    if cure := _cure_of(record):
        say("  - {heading}: {cure}", heading=_cure_heading(lesson, "solution"), cure=cure)


def _cure_heading(lesson: dict[str, Any], confirmed: str) -> str:
    """What comes before a cure: a candidate is not shown to agents before the person confirms it."""
    if lesson["state"] == "candidate":
        return localized("not confirmed (`lessons helped {id}` confirms it)", id=lesson["id"])
    return localized(confirmed)


def _cure_of(record: dict[str, Any]) -> str:
    return _joined(_cure_texts(record))


def show_stats(result: dict[str, Any]) -> None:
    languages = ", ".join(f"{name}: {count}" for name, count in result["errorsByLanguage"].items())
    say("- lessons: {count}", count=result["total"])
    errors = localized("- errors: {count}", count=result["errors"])
    echo(errors + (localized(" ({words})", words=languages) if languages else ""))
    say("- patterns: {count}", count=result["patterns"])
    say("- new in seven days: {count}", count=result["newInSevenDays"])
    top = [
        localized("{title} ({count:time|times})", title=one["title"], count=one["occurrences"])
        for one in result["topRepeated"]
    ]
    say("- repeated most: {errors}", errors=_joined(top) or "-")
    say("- file: {path}", path=result["path"])


def show_findings(result: dict[str, Any]) -> None:
    if not result["findings"]:
        say("{count:file|files} checked, no past error fits", count=result["files"])
        return
    say("⚠ past errors that fit:")
    for finding in result["findings"]:
        lesson, line = finding["lesson"], finding["line"]
        values = {"id": lesson["id"], "title": lesson["title"], "count": lesson["occurrences"]}
        say("- [{id}] {title} (seen {count:time|times})", **values)
        say("  this file: {path}", path=finding["path"] + (f":{line}" if line is not None else ""))
        if cure := _cure_of(lesson["record"]):
            say("  {heading}: {cure}", heading=_cure_heading(lesson, "suggestion"), cure=cure)


def show_cleaned(result: dict[str, Any]) -> None:
    for lesson in result["lessons"]:
        show_line(lesson)
    count = len(result["lessons"])
    if not count:
        say("no lesson is to be removed")
    elif result["removed"]:
        say("{count:lesson|lessons} removed", count=count)
    else:
        say("{count:lesson|lessons} to be removed; --yes removes them", count=count)
