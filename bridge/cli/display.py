"""Results of the commands that a sidecar can carry out, printed for people. Imports no typer."""

import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bridge.api.errors import EXIT_USAGE
from bridge.cli.output import echo, in_own_language, localized, say

MAX_HIT_CHARS: Final = 160  # characters of a hit in the list
SEMANTIC_NOTICES: Final = {  # printed with an answer that was not searched by words and meaning
    "off": "Found by words alone; a running sidecar with the extra `embeddings` searches by meaning too.",
    "pending": "Found by words alone: the vectors are not ready yet.",
    "partial": "Not all memories have vectors yet: some were compared by words alone.",
    "failed": "Found by words alone: the models did not answer. See the log of the sidecar.",
}
MARKS: Final = frozenset({"important", "outdated", "reviewed", "expired"})
COMMANDS: Final = """Not understood; nothing was done. What is understood:
  remember that my locker is 12 · forget my allergy · what do you remember about me?
  save this                             keep this conversation
  forget what I just said               stop remembering things (save no more of it)
  don't save this · this is sensitive   erase this conversation, save no more of it
  search memory: …                      today's memory
  delete memory: … · delete memory: … confirm   undo
  clean up old memories                 memory settings · memory settings: name=value"""


def show_memory(result: dict[str, Any]) -> None:
    sys.stdout.write(result["content"])
    if not result["content"].endswith("\n"):
        sys.stdout.write("\n")
    stale = localized(", the cloud could not be asked") if result["stale"] else ""
    say("source: {source}; waiting to be sent: {pending}", err=True, **{**result, "source": result["source"] + stale})


def show_prompt(result: dict[str, Any]) -> None:
    sys.stdout.write(result["prompt"] + "\n")


def show_update(result: dict[str, Any]) -> None:
    if result["recorded"]:
        say("recorded {eventId}", **result)
    else:
        say("not recorded: {reason}", reason=localized(result["reason"].replace("_", " ")))


def show_hits(result: dict[str, Any]) -> None:
    for hit in result["hits"]:
        text = " ".join(hit["text"].split())
        shown = text if len(text) <= MAX_HIT_CHARS else text[: MAX_HIT_CHARS - 1] + "…"
        about = ", ".join((localized(hit["origin"]), hit["eventId"], *_marks_of(hit)))
        echo(f"{hit['score']:.2f}  {hit['date']}  {localized(hit['kind']):<9} {shown}  ({about})")
    if not result["hits"]:
        say("nothing found")
    if result["partial"]:
        say("The index is still being built: some memories are missing from this answer.", err=True)
    if result["semantic"] != "used":
        say(SEMANTIC_NOTICES[result["semantic"]], err=True)


def _marks_of(hit: dict[str, Any]) -> list[str]:
    """The marks of a daily record, and that a text no longer holds."""
    marks = [name for name in hit["marks"] if name in MARKS]
    return [localized(mark) for mark in (*marks, *(("no longer holds",) if hit.get("superseded") else ()))]


def show_context(result: dict[str, Any]) -> None:
    echo(result["context"], nl=False)


def show_recorded(result: dict[str, Any]) -> None:
    for event_id in result["eventIds"]:
        is_known = event_id in result["duplicates"]
        say("recorded {event_id} (known already)" if is_known else "recorded {event_id}", event_id=event_id)
    if without := result.get("withoutText"):
        say("without its text: {count} (PRIVACY__STORE_PROGRAM_MESSAGES=true keeps messages)", count=len(without))
    if left_out := result.get("notSaved"):
        say("not recorded: {left_out} (a person asked not to save this conversation)", left_out=left_out)
    if unknown := result.get("unknownTypes"):
        say("types that this program does not know, kept as they are: {unknown}", unknown=", ".join(unknown), err=True)


def show_events(result: dict[str, Any]) -> None:
    for event in result["events"]:
        echo(event_line(event))
    say("next offset {nextOffset}", **result)


def event_line(event: dict[str, Any]) -> str:
    place = f"{event['position']:>6}  {event['ts']}"
    return f"{place}  {event['type']:<20} {event['project_id']}  {event.get('client_id') or event['event_id']}"


def show_session(result: dict[str, Any]) -> None:
    show_sessions({"sessions": [result["session"]]})


def show_sessions(result: dict[str, Any]) -> None:
    if not result["sessions"]:
        say("no sessions")
    for session in result["sessions"]:
        ended = session["ended_at"] or localized("open")
        title = session.get("title") or ""
        echo(f"{session['session_id']}  {session['started_at'] or '?'} - {ended}  {title}".rstrip())


def show_status(result: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in _status_rows(result).items():
        table.add_row(localized(name), value)
    Console().print(table)


def _status_rows(result: dict[str, Any]) -> dict[str, str]:
    cloud, document, label = result["cloud"], result["document"], result["account"]["label"]
    account = localized(result["account"]["state"].replace("_", " "))
    if result["account"]["state"] == "logged_out" and label:
        account = localized("{label} (logged out)", label=label)
    state = cloud["state"].replace("_", " ")
    state = localized("not asked just now (`sync` asks)" if state == "connecting" else state)
    last = cloud["lastSyncAt"] or localized("never")
    rows = {
        "account": account if result["account"]["state"] == "logged_out" else label or account,
        "device": f"{result['device']['name']} ({result['device']['deviceId']})",
        "cloud": localized("{state}, read {cursor} of {head}, last {last}", **{**cloud, "state": state, "last": last}),
        "waiting": localized("{pending} to be sent, {quarantined} set aside", **result),
        "document": document["path"],
        "warnings": ", ".join(document["warnings"]) or localized("none"),
        "version": result["version"],
    }
    if result["changes"]:
        rows["devices"] = "\n".join(change_lines(result["changes"]))
    if result["unprovedFacts"]:
        rows["facts"] = localized("{unprovedFacts} from before their origin was recorded", **result)
    if cloud["lastError"]:
        rows["last error"] = " - ".join(in_own_language(cloud["lastError"][name]) for name in ("message", "hint"))
    return rows


def change_lines(changes: dict[str, Any]) -> Iterator[str]:
    """The devices that wait, and each change with the command that answers it."""
    from sync.log.authorship import one_line  # noqa: PLC0415 - only where devices are named

    for device in changes["devices"]:
        name, device_id = device["name"] or localized("an unverified device"), one_line(device["deviceId"])
        waits = localized("; is it yours? devices admit | refuse {id}", id=device_id) if not device["admitted"] else ""
        if device["thisDevice"]:
            waits = localized("; this device is not admitted yet: admit it on another one")
        since = device["since"] or "?"
        named = localized("{name} ({id}), since {since}", name=name, id=device_id or "-", since=since)
        yield named + (waits if device_id else "")
        for change in device["changes"]:
            what = f"{' / '.join(change['before']) or '-'} -> {change['after'] or localized('no longer')}"
            answer = "changes accept | refuse" if change["waits"] else localized("undo: changes refuse")
            mark = localized(" (identity, health or safety)") if change["vital"] else ""
            yield f"  {change['at']}  {what}{mark}  [{answer} {change['eventId']}]"


def show_edited(result: dict[str, Any]) -> None:
    if not result["operations"]:
        say("no line is different")
        return
    counts: dict[str, Any] = dict.fromkeys(("entry_added", "entry_edited", "entry_removed"), 0)
    for operation in result["operations"]:
        counts[operation["type"]] += 1
    say("{entry_added} added, {entry_edited} edited, {entry_removed} removed", **counts)


def show_resolved(answer: str, result: dict[str, Any]) -> None:
    if result.get("nothingWaits"):
        say("nothing waits for an answer: `status` has no such warning")
    elif result["operations"]:
        show_edited(result)
    else:
        say("accepted" if answer == "accept" else "restored")


def show_reply(result: dict[str, Any]) -> None:
    """What a spoken command did. Exit 2 if it is no command."""
    if result["message"]:
        echo(result["message"])
    if result.get("page"):
        echo(result["page"].rstrip())
    else:
        show_records(result.get("records", []))
    for hit in result.get("hits", []):
        names = localized(" ({words})", words=", ".join(marks)) if (marks := _marks_of(hit)) else ""
        echo(f"{hit['date']}  {' '.join(hit['text'].split())}{names}")
    if "config" in result:
        show_options(result["config"], None)
    if result["command"] is None:
        say(COMMANDS, err=True)
        raise SystemExit(EXIT_USAGE)


def show_records(records: list[dict[str, Any]], *, nothing: str = "") -> None:
    for record in records:
        marks = f"  [{', '.join(map(localized, record['marks']))}]" if record["marks"] else ""
        label = f"【{record['label']}】" if record["label"] else ""
        echo(f"{record['id']}  {record['date']} #{record['session']}  {label}{record['topic']}{marks}")
    if nothing and not records:
        echo(nothing)


def show_options(result: dict[str, Any], option: str | None) -> None:
    """All options in force, or one of them; then the path of the file, or what is wrong in it."""
    for group, section in result["options"].items():
        for name, held in section.items() if isinstance(section, dict) else ():
            if option in {None, f"{group}.{name}"}:
                echo(f"{group}.{name} = {held if isinstance(held, str) else msgspec.json.encode(held).decode()}")
    echo(in_own_language(result["problem"] or "") or result["path"], err=True)
