"""What a person says to his memory, in Chinese or English → a command; and when memory is asked for. Pure.

Decisions
    Saving and not saving are understood as a clause of a longer message (记住这个，谢谢), everything else only where it
    is the whole message: 把按钮改成不要保存草稿 is about a button.
    After a colon stands what it is about: 搜索记忆: 火锅, 记住这个：端口是 8080, 记忆设置: recording.auto_save=false.
    A search, which changes nothing, needs none: 搜索记忆 火锅, search my memory for hot pot.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sync.memory.daily.summarise import Turn, rounds


class Kind(StrEnum):
    """What is asked for."""

    SAVE = "save"
    SKIP = "skip"
    SENSITIVE = "sensitive"
    SEARCH = "search"
    SHOW = "show"
    DELETE = "delete"
    CLEAN = "clean"
    SETTINGS = "settings"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Command:
    """`about`: what stood after the colon. `chinese`: the language in which it was said, and is answered."""

    kind: Kind
    about: str = ""
    chinese: bool = True


_SAID: Final[dict[Kind, str]] = {
    Kind.SAVE: r"记住(?:这个|这些|这段|这次对话|本次对话|这次)|保存(?:这个|这次对话|本次对话|当前对话|对话)|"
    r"(?:save|remember) (?:this|that|it)(?: conversation| chat)?",
    Kind.SKIP: r"(?:这次|本次|这个|这段)?(?:对话)?(?:不要|不用|别|不)再?(?:保存|记录|记住)"
    r"(?:这个|这段|[这本]?次?对话|这次)?|"
    r"(?:don'?t|do not|never) (?:save|remember|record|keep)(?: (?:this|it|that))?(?: conversation| chat| one)?",
    Kind.SENSITIVE: r"(?:标记为?)?(?:这是)?敏感(?:对话|内容)|"
    r"(?:this is |mark (?:this |it )?as )?(?:a )?sensitive(?: conversation)?",
    Kind.SEARCH: r"(?:搜索|查找|检索)(?:一下)?(?:我的)?记忆|(?:search|find in) (?:my |the )?memor(?:y|ies)(?: for)?",
    Kind.SHOW: r"(?:查看|看看|显示)?(?:一下)?(?:今日|今天的?)(?:的)?记忆|(?:查看|看看|显示)(?:一下)?记忆|"
    r"(?:show |view |see )?(?:me )?today'?s (?:memory|memories)|(?:show|view) (?:my |the )?memor(?:y|ies)",
    Kind.DELETE: r"删除(?:这条|我的)?记忆|(?:delete|remove|forget) (?:my |the )?memor(?:y|ies)",
    Kind.CLEAN: r"(?:清理|清除)(?:一下)?(?:旧|过期)的?记忆|clean(?: up)? (?:my |the )?(?:old|expired) memor(?:y|ies)",
    Kind.SETTINGS: r"记忆(?:的)?设置|memory settings",
    Kind.UNDO: r"撤[销回](?:记忆)?(?:的)?(?:删除|清理|上一步)?|undo(?: that| it| the (?:deletion|last one))?",
}
_CLAUSES: Final = (Kind.SKIP, Kind.SENSITIVE, Kind.SAVE)  # a wish not to keep something outranks the wish to
_LEAD: Final = r"(?:请|麻烦|帮我|please |ok |okay )*"
_TAIL: Final = r"(?:吧|了|哦|啊|一下| please)*"
_PATTERNS: Final = {kind: re.compile(f"{_LEAD}(?:{said}){_TAIL}") for kind, said in _SAID.items()}
_SEARCHES: Final = re.compile(
    rf"{_LEAD}(?:(?:搜索|查找|检索)(?:一下)?(?:我的)?记忆 |search (?:my |the )?memor(?:y|ies) for )(?P<about>.+)",
    re.IGNORECASE,
)
_CLAUSE_ENDS: Final = re.compile(r"[。！!？?，,；;\n、~]+|\.(?=\s|$)")
_QUOTES: Final = "\"'“”「」『』《》`"
_CONFIRMS: Final = frozenset({"确认", "确定", "是", "confirm", "yes"})
_CONFIRMED: Final = re.compile(
    rf"(?P<about>.*?\S)(?:[\s,，:：;；]+)(?:{'|'.join(sorted(_CONFIRMS))})[。.!！]?", re.IGNORECASE | re.DOTALL
)
_HISTORY: Final = re.compile(
    r"之前|上次|上回|上一次|以前|我们(?:讨论|聊|说|谈|决定|约定)过|我(?:说|提|问|告诉)过|还记得|记不记得|记得(?:吗|我|我们)|"
    r"昨天|前天|上周|上个?月|继续|接着|历史记录|查看记忆|搜索记忆|"
    r"\b(?:last time|previous(?:ly)?|earlier|before|we (?:discussed|talked|decided|agreed)|do you remember|"
    r"remember (?:when|what|how)|"
    r"as i (?:said|told you|mentioned)|yesterday|last (?:week|month)|"
    r"continue(?: with| the| our|$)|search memory|my memory)\b",
    re.IGNORECASE,
)


def parse(message: str) -> Command | None:
    """The command that a message is, or None."""
    text = _folded(message)
    chinese = re.search(r"[\u4e00-\u9fff]", message) is not None
    head, colon, about = _divided(text, message)
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(head) and (colon or kind is not Kind.DELETE) and not (colon and kind is Kind.UNDO):
            return Command(kind, about, chinese)
    if (searches := _SEARCHES.fullmatch(" ".join(message.split()))) is not None:
        return Command(Kind.SEARCH, searches["about"], chinese)
    clauses = [clause.strip().strip(_QUOTES) for clause in _CLAUSE_ENDS.split(text)]
    for kind in _CLAUSES:
        if any(_PATTERNS[kind].fullmatch(clause) for clause in clauses):
            return Command(kind, "", chinese)
    words = text.split()
    if words and words[-1] in _CONFIRMS and _PATTERNS[Kind.CLEAN].fullmatch(" ".join(words[:-1])):
        return Command(Kind.CLEAN, words[-1], chinese)
    return None


def confirms(about: str) -> bool:
    return _folded(about) in _CONFIRMS


def without_confirmation(about: str) -> tuple[str, bool]:
    """What a command is about, and whether a confirmation follows it: `火锅 确认`, `hot pot confirm`."""
    found = _CONFIRMED.fullmatch(about.strip())
    return (found["about"], True) if found is not None else (about.strip(), False)


def should_recall(message: str, *, is_first: bool) -> bool:
    """Whether to look into the memory for a message: the first of a session, or one that speaks of what was."""
    return bool(message.strip()) and (is_first or _HISTORY.search(message) is not None)


@dataclass(frozen=True, slots=True)
class Saving:
    """Whether a conversation is to be kept, and why or why not."""

    save: bool
    reason: str


def should_save(turns: Sequence[Turn], *, least_rounds: int, auto: bool = True) -> Saving:
    """Seed 000 §10, of a conversation that is over: when it is long enough, or when a person asks."""
    asked = asked_for(turns)
    if asked in {Kind.SKIP, Kind.SENSITIVE}:
        return Saving(save=False, reason=str(asked))
    if asked is Kind.SAVE:
        return Saving(save=True, reason="asked")
    if not auto:
        return Saving(save=False, reason="auto_save_off")
    if rounds(turns) < least_rounds:
        return Saving(save=False, reason="too_short")
    return Saving(save=True, reason="ended")


def asked_for(turns: Sequence[Turn]) -> Kind | None:
    """What a person last said about keeping a conversation. One that is sensitive stays so."""
    found: Kind | None = None
    for turn in turns:
        command = parse(turn.text) if turn.role == "user" and len(turn.text) <= 500 else None
        if command is not None and command.kind in _CLAUSES and not command.about and found is not Kind.SENSITIVE:
            found = command.kind
    return found


def _divided(text: str, message: str) -> tuple[str, bool, str]:
    """What stands before the first colon, whether there is one, and what stands after it, as it was written."""
    head, colon, _ = text.partition(":")
    _, _, about = message.replace("：", ":").partition(":")
    return head.strip().strip(_QUOTES).rstrip("。.!！?？ "), bool(colon), about.strip()


def _folded(message: str) -> str:
    text = unicodedata.normalize("NFKC", message).replace("’", "'").replace("‘", "'").lower()
    return " ".join(text.split()).strip().strip(_QUOTES)
