"""Results of the commands that a sidecar can carry out, printed for people. Imports no typer."""

import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bridge.api.errors import EXIT_USAGE
from bridge.cli.output import echo

MAX_HIT_CHARS: Final = 160  # characters of a hit in the list
SEMANTIC_NOTICES: Final = {  # printed with an answer that was not searched by words and meaning
    "off": "Found by words alone; a running sidecar with the extra `embeddings` searches by meaning too.",
    "pending": "Found by words alone: the vectors are not ready yet.",
    "partial": "Not all memories have vectors yet: some were compared by words alone.",
    "failed": "Found by words alone: the models did not answer. See the log of the sidecar.",
}
_MARKS_ZH: Final = {"important": "重要", "outdated": "过时", "reviewed": "已复核", "expired": "已过期"}
_COMMANDS_ZH: Final = """没有听懂，什么也没有做。能听懂的有：
  记住我的柜子是12号 · 忘记我的过敏 · 你记得我什么
  记住这个                    保存当前对话
  忘掉刚才的                  以后别记了（不再保存）
  不要保存 · 标记为敏感对话    清除本次对话，之后也不保存
  搜索记忆: …                 查看今日记忆
  删除记忆: … · 删除记忆: … 确认   撤销
  清理旧记忆                  记忆设置 · 记忆设置: 名称=值"""
_COMMANDS_EN: Final = """Not understood; nothing was done. What is understood:
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
    stale = ", the cloud could not be asked" if result["stale"] else ""
    sys.stderr.write(f"source: {result['source']}{stale}; waiting to be sent: {result['pending']}\n")


def show_prompt(result: dict[str, Any]) -> None:
    sys.stdout.write(result["prompt"] + "\n")


def show_update(result: dict[str, Any]) -> None:
    if result["recorded"]:
        echo(f"recorded {result['eventId']}")
    else:
        echo(f"not recorded: {result['reason'].replace('_', ' ')}")


def show_hits(result: dict[str, Any]) -> None:
    for hit in result["hits"]:
        text = " ".join(hit["text"].split())
        shown = text if len(text) <= MAX_HIT_CHARS else text[: MAX_HIT_CHARS - 1] + "…"
        about = ", ".join((hit["origin"], hit["eventId"], *_marks_of(hit).keys()))
        echo(f"{hit['score']:.2f}  {hit['date']}  {hit['kind']:<9} {shown}  ({about})")
    if not result["hits"]:
        echo("nothing found")
    if result["partial"]:
        echo("The index is still being built: some memories are missing from this answer.", err=True)
    if result["semantic"] != "used":
        echo(SEMANTIC_NOTICES[result["semantic"]], err=True)


def _marks_of(hit: dict[str, Any]) -> dict[str, str]:
    """The marks of a daily record, and that a text no longer holds; each in English and in Chinese."""
    marks = {name: _MARKS_ZH[name] for name in hit["marks"] if name in _MARKS_ZH}
    return {**marks, "no longer holds": "不再成立"} if hit.get("superseded") else marks


def show_context(result: dict[str, Any]) -> None:
    echo(result["context"], nl=False)


def show_recorded(result: dict[str, Any]) -> None:
    for event_id in result["eventIds"]:
        known = " (known already)" if event_id in result["duplicates"] else ""
        echo(f"recorded {event_id}{known}")
    if without := result.get("withoutText"):
        echo(f"without its text: {len(without)} (PRIVACY__STORE_PROGRAM_MESSAGES=true keeps messages)")
    if left_out := result.get("notSaved"):
        echo(f"not recorded: {left_out} (a person asked not to save this conversation)")
    if unknown := result.get("unknownTypes"):
        echo(f"types that this program does not know, kept as they are: {', '.join(unknown)}", err=True)


def show_events(result: dict[str, Any]) -> None:
    for event in result["events"]:
        echo(event_line(event))
    echo(f"next offset {result['nextOffset']}")


def event_line(event: dict[str, Any]) -> str:
    place = f"{event['position']:>6}  {event['ts']}"
    return f"{place}  {event['type']:<20} {event['project_id']}  {event.get('client_id') or event['event_id']}"


def show_session(result: dict[str, Any]) -> None:
    show_sessions({"sessions": [result["session"]]})


def show_sessions(result: dict[str, Any]) -> None:
    if not result["sessions"]:
        echo("no sessions")
    for session in result["sessions"]:
        ended = session["ended_at"] or "open"
        title = session.get("title") or ""
        echo(f"{session['session_id']}  {session['started_at'] or '?'} - {ended}  {title}".rstrip())


def show_status(result: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    cloud, document = result["cloud"], result["document"]
    account = result["account"]["state"].replace("_", " ")
    named = f"{result['account']['label']} (logged out)" if account == "logged out" else result["account"]["label"]
    state = cloud["state"].replace("_", " ")
    state = "not asked just now (`sync` asks)" if state == "connecting" else state
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {
        "account": named or account,
        "device": f"{result['device']['name']} ({result['device']['deviceId']})",
        "cloud": f"{state}, read {cloud['cursor']} of {cloud['head']}, last {cloud['lastSyncAt'] or 'never'}",
        "waiting": f"{result['pending']} to be sent, {result['quarantined']} set aside",
        "document": document["path"],
        "warnings": ", ".join(document["warnings"]) or "none",
        "version": result["version"],
    }
    if result["changes"]:
        rows["devices"] = "\n".join(change_lines(result["changes"]))
    if result["unprovedFacts"]:
        rows["facts"] = f"{result['unprovedFacts']} from before their origin was recorded"
    if cloud["lastError"]:
        rows["last error"] = f"{cloud['lastError']['message']} - {cloud['lastError']['hint']}"
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def change_lines(changes: dict[str, Any]) -> Iterator[str]:
    """The devices that wait, and each change with the command that answers it."""
    from sync.log.authorship import one_line  # noqa: PLC0415 - only where devices are named

    for device in changes["devices"]:
        name, device_id = device["name"] or "an unverified device", one_line(device["deviceId"])
        waits = f"; is it yours? devices admit | refuse {device_id}" if not device["admitted"] else ""
        if device["thisDevice"]:
            waits = "; this device is not admitted yet: admit it on another one"
        waits = waits if device_id else ""
        yield f"{name} ({device_id or '-'}), since {device['since'] or '?'}{waits}"
        for change in device["changes"]:
            what = f"{' / '.join(change['before']) or '-'} -> {change['after'] or 'no longer'}"
            answer = "changes accept | refuse" if change["waits"] else "undo: changes refuse"
            mark = " (identity, health or safety)" if change["vital"] else ""
            yield f"  {change['at']}  {what}{mark}  [{answer} {change['eventId']}]"


def show_edited(result: dict[str, Any]) -> None:
    if not result["operations"]:
        echo("no line is different")
        return
    counts = dict.fromkeys(("entry_added", "entry_edited", "entry_removed"), 0)
    for operation in result["operations"]:
        counts[operation["type"]] += 1
    echo(", ".join(f"{count} {kind.removeprefix('entry_')}" for kind, count in counts.items()))


def show_resolved(answer: str, result: dict[str, Any]) -> None:
    if result.get("nothingWaits"):
        echo("nothing waits for an answer: `status` has no such warning")
    elif result["operations"]:
        show_edited(result)
    else:
        echo("accepted" if answer == "accept" else "restored")


def show_reply(text: str, result: dict[str, Any]) -> None:
    """What a spoken command did. Exit 2 if `text` is no command."""
    is_chinese = re.search("[\u4e00-\u9fff]", text) is not None
    if result["message"]:
        echo(result["message"])
    if result.get("page"):
        echo(result["page"].rstrip())
    else:
        show_records(result.get("records", []))
    for hit in result.get("hits", []):
        marks = _marks_of(hit)
        names = (
            f"  （{'，'.join(marks.values())}）" if is_chinese and marks else f"  ({', '.join(marks)})" if marks else ""
        )
        echo(f"{hit['date']}  {' '.join(hit['text'].split())}{names}")
    if "config" in result:
        show_options(result["config"], None)
    if result["command"] is None:
        echo(_COMMANDS_ZH if is_chinese else _COMMANDS_EN, err=True)
        raise SystemExit(EXIT_USAGE)


def show_records(records: list[dict[str, Any]], *, nothing: str = "") -> None:
    for record in records:
        marks = f"  [{', '.join(record['marks'])}]" if record["marks"] else ""
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
    echo(result["problem"] or result["path"], err=True)
