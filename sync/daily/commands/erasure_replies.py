"""Describe an erasure to the user: what it removes, and what of it is still pending. Pure."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from sync.daily.conversation.current_conversation import ConversationEvents
from sync.log.event_types import (
    EXCHANGE_RECORDED,
    EXCHANGE_TEXT,
    FACT_EDITED,
    FACT_TEXT_TYPES,
    LESSON_TYPES,
    MESSAGE,
    NOTE_TEXT_TYPES,
    RECORD_CHANGE_TYPES,
    SESSION_ORIGINAL,
    TEXT_SUFFIX,
    USER_FEEDBACK,
)
from sync.log.model import Event

MAX_TITLES: Final = 3
MAX_UNCONFIRMED_EVENTS: Final = 3  # of more, a device that has known this one's key for less than a day asks its user
MAX_TITLE_CHARS: Final = 80
RECORD_EVENT_TYPES: Final = (*RECORD_CHANGE_TYPES, SESSION_ORIGINAL)
_TEXT_FIELDS: Final = ("question", "topic", "content", "text", "title", "summary", "answer")
_EVENT_LABELS: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(RECORD_EVENT_TYPES, ("每日记忆", "daily records")),
    EXCHANGE_RECORDED: ("对话", "exchanges"),
    EXCHANGE_TEXT: ("对话", "exchanges"),
    MESSAGE: ("消息", "messages"),
    **dict.fromkeys(FACT_TEXT_TYPES, ("事实", "facts")),
    **dict.fromkeys(LESSON_TYPES, ("经验", "lessons")),
    **dict.fromkeys(NOTE_TEXT_TYPES, ("笔记", "notes")),
    USER_FEEDBACK: ("反馈", "feedback"),
}
_DOCUMENT_LABEL: Final = ("文档条目", "lines of the document")
_OTHER_LABEL: Final = ("其他记录", "other events")


class ErasureStatus(msgspec.Struct, frozen=True):
    """How many events were erased, and where the erasure is still pending.

    `here`: `soon` if a running sidecar still writes the files. `cloud`: `none` if no event was ever sent, `refused` if
    server put the request into quarantine. `kept_files`: files of notes that stay because they were changed by hand.
    `unwritten_files`: other files that could not be written again.
    """

    count: int
    here: Literal["done", "soon"] = "done"
    cloud: Literal["none", "done", "later", "refused"] = "none"
    kept_files: int = 0
    unwritten_files: tuple[str, ...] = ()


async def _erase_at_once(_: Sequence[Event]) -> str | None:
    return None


async def _undo_nothing() -> bool:
    return False


class ErasurePort(msgspec.Struct, frozen=True):
    """What a command needs from its caller: find the events with certain words, and erase events.

    `erase_later` hides events and returns when they are erased, or None if only `erase_events` can erase them;
    `undo` shows the last ones again, and returns False if none are hidden.
    """

    find_events: Callable[[str], Awaitable[Sequence[Event]]]
    erase_events: Callable[[Sequence[str]], Awaitable[ErasureStatus]]
    erase_later: Callable[[Sequence[Event]], Awaitable[str | None]] = _erase_at_once
    undo: Callable[[], Awaitable[bool]] = _undo_nothing


def describe_events(events: Sequence[Event], *, chinese: bool) -> str:
    """The number of events of each kind, and a few titles."""
    counts: dict[tuple[str, str], set[str]] = {}
    for event in events:
        counts.setdefault(_label_of(event), set()).add(_counted_id(event))
    titles = list(dict.fromkeys(title for event in events if (title := _title(event))))
    shown = "；".join(titles[:MAX_TITLES]) if chinese else "; ".join(titles[:MAX_TITLES])
    more = "…" if len(titles) > MAX_TITLES else ""
    if chinese:
        counted = "、".join(f"{kind[0]} {len(ids)} 条" for kind, ids in counts.items())
        return counted + (f"（{shown}{more}）" if shown else "")
    counted = ", ".join(_counted_en(kind[1], len(ids)) for kind, ids in counts.items())
    return counted + (f" ({shown}{more})" if shown else "")


def later_texts(listed: str, due: datetime) -> tuple[str, str]:
    """The answer to an erasure that can be undone until a local time, in both languages."""
    english = f'Will be erased at {due:%H:%M:%S}: {listed}. Until then "undo" brings it back'
    return f"将在 {due:%H:%M:%S} 清除：{listed}。在那之前说“撤销”可恢复", english


def not_saved_reply(
    conversation: ConversationEvents, erased: ErasureStatus, since: str, *, was_named: bool, minutes: int, chinese: bool
) -> str:
    """The answer to "don't save this". `since`: when the conversation began; `was_named`: by the caller."""
    reply = _not_saved_reply_zh if chinese else _not_saved_reply_en
    text = reply(conversation, erased, since, was_named=was_named, minutes=minutes)
    return text + pending_erasure_note(erased, chinese=chinese)


def _not_saved_reply_zh(
    conversation: ConversationEvents, erased: ErasureStatus, since: str, *, was_named: bool, minutes: int
) -> str:
    from_then = f"从 {since} 起" if since else ""
    gone = (
        f"{from_then}已保存的内容（{conversation.message_count} 条对话）已清除"
        if erased.count
        else "此前没有保存过内容"
    )
    if conversation.session_id is not None:
        which = "本次对话" if was_named else "最近的一次会话"
        return f"好的。{which}{gone}，之后也不再保存；说“记住这个”即恢复。"
    before = f"刚才的对话{gone}" if erased.count else f"最近 {minutes} 分钟没有保存过可清除的对话"
    return f"好的。{before}；之后没有会话编号的内容都不保存，直到停顿 {minutes} 分钟，或你说“记住这个”。"


def _not_saved_reply_en(
    conversation: ConversationEvents, erased: ErasureStatus, since: str, *, was_named: bool, minutes: int
) -> str:
    from_then = f" since {since}" if since else ""
    gone = f"what was saved{from_then} ({conversation.message_count} exchanges or messages) is erased"
    if conversation.session_id is not None:
        which = "This conversation" if was_named else "The latest session"
        return (
            f"{which}: {gone if erased.count else 'nothing of it was saved'}, and nothing more of it is saved; "
            'say "save this" to save it again.'
        )
    nothing = f"No conversation was saved in the last {minutes} minutes"
    before = f"The last conversation: {gone}" if erased.count else nothing
    return (
        f"{before}; what comes without a session id is not saved until {minutes} minutes of silence, "
        'or until you say "save this".'
    )


def paused_texts(session_id: str | None, minutes: int) -> tuple[str, str]:
    """The answer to "stop remembering things", in both languages."""
    chinese, english = "本次对话", "this conversation"
    if session_id is None:
        chinese, english = f"停顿 {minutes} 分钟之前的内容", f"what comes before {minutes} minutes of silence"
    again = 'what was saved stays, and other conversations are saved. Say "save this" to save again.'
    return (
        f"好的。从现在起，{chinese}不再保存，已保存的保留；别的对话照常保存。说“记住这个”即恢复。",
        f"From now on nothing of {english} is saved; {again}",
    )


def pending_erasure_note(erased: ErasureStatus, *, chinese: bool) -> str:
    """What of an erasure is still pending; empty if nothing is."""
    if not erased.count:
        return ""
    here = "正在运行的程序会在几秒内更新文件。", " The running sidecar updates the files within seconds."
    cloud = {
        "none": ("", ""),
        "done": ("云端已清除，其他设备在下次同步时清除。", " The cloud has erased it; other devices follow."),
        "later": ("云端和其他设备将在联网后清除。", " The cloud and other devices follow when there is a connection."),
        "refused": (
            "云端没有接受这次清除，云端和其他设备上还有这些内容；原因见 `xiaobai-memory quarantine list`。",
            " The cloud has not accepted it; it and other devices have the text. See `xiaobai-memory quarantine list`.",
        ),
    }[erased.cloud]
    at = 0 if chinese else 1
    asks = "一次清除很多时，其他设备可能先询问你。", " Other devices may ask you first if it is much at once."
    kept = (
        f"{erased.kept_files} 个笔记文件没有删除：后来被手工改过，或不能写；`xiaobai-memory notes list` 可查看。",
        f" {erased.kept_files} files of notes stay: changed by hand, or not writable. See `xiaobai-memory notes list`.",
    )
    names = "、".join(erased.unwritten_files) if chinese else ", ".join(erased.unwritten_files)
    unwritten = (
        f"这些文件没能改写，里面可能还有这些内容：{names}；原因见 `xiaobai-memory doctor` 和 `daily status`。",
        f" These files could not be written again and may still hold it: {names}; see `doctor` and `daily status`.",
    )
    may_ask = erased.cloud != "none" and erased.count > MAX_UNCONFIRMED_EVENTS
    pending = (here[at] if erased.here == "soon" else "") + cloud[at] + (asks[at] if may_ask else "")
    return pending + (kept[at] if erased.kept_files else "") + (unwritten[at] if erased.unwritten_files else "")


def _label_of(event: Event) -> tuple[str, str]:
    return (
        _DOCUMENT_LABEL
        if event.type.startswith(("entry_", "section_", "day_"))
        else _EVENT_LABELS.get(event.type, _OTHER_LABEL)
    )


def _counted_en(label: str, count: int) -> str:
    noun, of, rest = label.partition(" of ")
    return f"{count} {noun.removesuffix('s') if count == 1 else noun}{of}{rest}"


def _counted_id(event: Event) -> str:
    """What the user counts as one: the changes of a daily record, a fact with its edits, an exchange with its text."""
    name = "record_id" if event.type in RECORD_EVENT_TYPES else "fact_id" if event.type == FACT_EDITED else None
    return event.event_id.removesuffix(TEXT_SUFFIX) if name is None else str(event.payload.get(name))


def _title(event: Event) -> str:
    text = next(
        (value for name in _TEXT_FIELDS if isinstance(value := event.payload.get(name), str) and value.strip()), ""
    )
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE_CHARS else line[:MAX_TITLE_CHARS] + "…"
