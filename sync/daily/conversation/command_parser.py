"""Parse spoken commands to the memory, Chinese or English, and detect when a message needs the memory. Pure.

Save and skip commands are recognised as a clause of a longer message (记住这个，谢谢); every other command only as the
whole message: 把按钮改成不要保存草稿 is about a button. An argument follows a colon (搜索记忆: 火锅) or stands
inside the sentence (删除关于火锅的记忆). A deletion only lists what it would delete; the user confirms it.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from sync.daily.conversation.command_phrases import (
    FRAMED_PATTERNS,
    KNOWN_PATTERNS,
    PATTERNS,
    WHOLE_PATTERNS,
    CommandKind,
)
from sync.daily.conversation.extractive_summary import SummaryTurn, count_rounds


class SpokenCommand(msgspec.Struct, frozen=True):
    """`argument`: what follows the colon. `is_chinese`: whether to answer in Chinese."""

    kind: CommandKind
    argument: str = ""
    is_chinese: bool = True


_CLAUSE_KINDS: Final = (CommandKind.SKIP, CommandKind.SENSITIVE, CommandKind.SAVE)  # not saving takes precedence
_CLAUSE_ENDS: Final = re.compile(r"[。！!？?，,；;\n、~]+|\.(?=\s|$)")
_QUOTES: Final = "\"'“”「」『』《》`"
MAX_COMMAND_LENGTH: Final = 120  # characters; a longer sentence says more than a command
_CONFIRMATIONS: Final = frozenset({"确认", "确定", "是", "confirm", "yes"})
_ENDS_WITH_CONFIRMATION: Final = re.compile(
    rf"(?P<about>.*?\S)(?:[\s,，:：;；]+)(?:{'|'.join(sorted(_CONFIRMATIONS))})[。.!！]?", re.IGNORECASE | re.DOTALL
)
_CONFIRMED_ZH: Final = re.compile(r"\s(?:确认|确定)$")  # `forget that I have to confirm` confirms nothing


def parse_command(message: str) -> SpokenCommand | None:
    """The command that a message is, or None."""
    text = _normalise(message)
    chinese = re.search(r"[\u4e00-\u9fff]", message) is not None
    head, colon, about = _split_at_colon(text, message)
    for kind, pattern in PATTERNS.items():
        if (
            pattern.fullmatch(head)
            and (colon or kind is not CommandKind.DELETE)
            and not (colon and kind is CommandKind.UNDO)
        ):
            return SpokenCommand(kind, about, chinese)
    whole, is_confirmed = split_confirmation(text.rstrip("。.!！?？~ "))
    for kind, pattern in WHOLE_PATTERNS.items():
        if pattern.fullmatch(whole) and (not is_confirmed or kind is CommandKind.FORGET_LAST):
            return SpokenCommand(kind, "confirm" if is_confirmed else "", chinese)
    if (with_argument := _without_colon(message)) is not None:
        kind, about = with_argument
        return SpokenCommand(kind, about, chinese)
    clauses = [clause.strip().strip(_QUOTES) for clause in _CLAUSE_ENDS.split(text)]
    for kind in _CLAUSE_KINDS:
        if any(PATTERNS[kind].fullmatch(clause) for clause in clauses):
            return SpokenCommand(kind, "", chinese)
    words = text.split()
    if words and words[-1] in _CONFIRMATIONS and PATTERNS[CommandKind.CLEAN].fullmatch(" ".join(words[:-1])):
        return SpokenCommand(CommandKind.CLEAN, words[-1], chinese)
    return None


def parse_vague_deletion(message: str) -> SpokenCommand | None:
    """A deletion whose words may name something else than a fact, such as a paragraph: forget the spare key."""
    found = _without_colon(message, KNOWN_PATTERNS)
    return None if found is None else SpokenCommand(*found, re.search(r"[\u4e00-\u9fff]", message) is not None)


def _without_colon(
    message: str, patterns: Sequence[tuple[CommandKind, re.Pattern[str]]] = FRAMED_PATTERNS
) -> tuple[CommandKind, str] | None:
    """The kind and the argument of a command whose argument follows no colon."""
    sentence = " ".join(unicodedata.normalize("NFKC", message).replace("’", "'").split()).strip(_QUOTES)
    sentence = sentence.rstrip("。.!！?？~ ")
    if len(sentence) > MAX_COMMAND_LENGTH or _CLAUSE_ENDS.search(sentence) is not None:
        return None
    for kind, pattern in patterns:
        if (match := pattern.fullmatch(sentence)) is not None:
            if (stated := match.groupdict().get("stated")) is not None:
                words, confirmation = _CONFIRMED_ZH.sub("", stated), " 确认" if _CONFIRMED_ZH.search(stated) else ""
                return kind, f'"{words.strip().strip(_QUOTES)}"{confirmation}'  # as one phrase, not word by word
            return kind, match["about"].strip().strip(_QUOTES)
    return None


def is_confirmation(about: str) -> bool:
    return _normalise(about) in _CONFIRMATIONS


def split_confirmation(about: str) -> tuple[str, bool]:
    """A command's argument, and whether a confirmation follows it: `火锅 确认`, `hot pot confirm`."""
    found = _ENDS_WITH_CONFIRMATION.fullmatch(about.strip())
    return (found["about"], True) if found is not None else (about.strip(), False)


class SaveDecision(msgspec.Struct, frozen=True):
    """Whether to record a conversation, and why or why not."""

    is_wanted: bool
    reason: str


def decide_saving(turns: Sequence[SummaryTurn], *, min_rounds: int, auto_save: bool = True) -> SaveDecision:
    """Decide whether to record a finished conversation: if it is long enough, or the user asked."""
    request = last_save_request(turns)
    if request in {CommandKind.SKIP, CommandKind.SENSITIVE}:
        return SaveDecision(is_wanted=False, reason=str(request))
    if request is CommandKind.SAVE:
        return SaveDecision(is_wanted=True, reason="asked")
    if not auto_save:
        return SaveDecision(is_wanted=False, reason="auto_save_off")
    if count_rounds(turns) < min_rounds:
        return SaveDecision(is_wanted=False, reason="too_short")
    return SaveDecision(is_wanted=True, reason="ended")


def last_save_request(turns: Sequence[SummaryTurn]) -> CommandKind | None:
    """The user's last command about saving a conversation. A sensitive one stays sensitive."""
    request: CommandKind | None = None
    for turn in turns:
        command = parse_command(turn.text) if turn.role == "user" and len(turn.text) <= 500 else None
        if (
            command is not None
            and command.kind in _CLAUSE_KINDS
            and not command.argument
            and request is not CommandKind.SENSITIVE
        ):
            request = command.kind
    return request


def _split_at_colon(text: str, message: str) -> tuple[str, bool, str]:
    """The normalised text before the first colon, whether there is one, and the original text after it."""
    head, colon, _ = text.partition(":")
    _, _, about = message.replace("：", ":").partition(":")
    return head.strip().strip(_QUOTES).rstrip("。.!！?？ "), bool(colon), about.strip()


def _normalise(message: str) -> str:
    text = unicodedata.normalize("NFKC", message).replace("’", "'").replace("‘", "'").lower()
    return " ".join(text.split()).strip().strip(_QUOTES)
