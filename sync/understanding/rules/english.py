"""English messages: gates for sentences and clauses, the rules for each clause, and clauses joined into statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sync.understanding.model import MAX_STATEMENT_LENGTH, FactKind, Statement
from sync.understanding.rules import english_gates as gates
from sync.understanding.rules import english_grammar as grammar
from sync.understanding.rules.changes import find_change, is_correction
from sync.understanding.rules.english_rules import RULES
from sync.understanding.rules.reading import ClauseRule
from sync.understanding.rules.topics import is_about_replies, reply_topic, section_of, tool_role
from sync.understanding.rules.typed_text import Sentence


@dataclass(slots=True)
class _Piece:
    """A clause of an English sentence and what was read in it."""

    start: int
    end: int
    text: str
    found: tuple[FactKind, str | None] | None = None
    is_closed: bool = False


def read_english(sentences: Sequence[Sentence]) -> list[Statement]:
    """The statements of the sentences of one message."""
    if any(gates.FICTION.search(sentence.visible) for sentence in sentences):
        return []
    found: list[Statement] = []
    correction = kin = False
    for sentence in sentences:
        correction = correction or is_correction(sentence.visible)
        pieces = list(_pieces(sentence))
        kin = _read_sentence(sentence, pieces, kin=kin, correction=correction)
        found.extend(_join(sentence, pieces, correction=correction))
    return found


def _pieces(sentence: Sentence) -> Iterator[_Piece]:
    visible = sentence.visible.replace("\u2019", "'")
    spans = [match.span() for match in gates.CLAUSE.finditer(visible)]
    start = 0
    for left, right in [*spans, (len(visible), len(visible))]:
        body = visible[start:left]
        lead = len(body) - len(body.lstrip())
        filler = gates.FILLER.match(body[lead:])
        begin = start + lead + (filler.end() if filler else 0)
        end = start + len(body.rstrip(" .!?…"))
        if begin < end:
            mark = "?" if body.rstrip().endswith("?") else ""
            yield _Piece(begin, end, visible[begin:end] + mark)
        start = right


def _read_sentence(sentence: Sentence, pieces: list[_Piece], *, kin: bool, correction: bool) -> bool:
    """Read every clause; return whether the last one was about the author's family."""
    foreign = False
    condition = gates.CONDITION.search(sentence.visible)
    for piece in pieces:
        text = piece.text
        conditional = condition is not None and piece.end > condition.start()
        if _BOSS.search(text) is None and not (kin and _KIN_PRONOUN.match(text)):
            foreign = conditional or _is_foreign(text, was_foreign=foreign)
        piece.found = _read(piece, sentence, foreign=foreign, kin=kin, correction=correction)
        if piece.found is not None:
            kin = piece.found[0] is FactKind.RELATIONSHIP and piece.found[1] != "work.boss"
        elif re.match(rf"(?i)(?:my |our )?{gates.FAMILY}\b", text):
            kin = True
    return kin


def _is_foreign(text: str, *, was_foreign: bool) -> bool:
    """Whether somebody other than the author speaks or is spoken of; the clause before decides if this one does not."""
    if gates.REPORTED.search(text) or (gates.OTHER_SUBJECT.search(text) and not grammar.FIX.search(text)):
        return True
    return was_foreign and re.match(r"(?i)(?:i|i'm|im|i've|my|we|our)\b", text) is None


def _read(
    piece: _Piece, sentence: Sentence, *, foreign: bool, kin: bool, correction: bool
) -> tuple[FactKind, str | None] | None:
    text = piece.text
    if gates.QUESTION.search(text) and not _ON_MY_DEVICE.search(text):
        piece.is_closed = True
        return None
    if not foreign:
        if (wish := _wish(text, sentence)) is not None:
            return wish
        if grammar.FIX.search(text):
            return FactKind.KNOWLEDGE, None
    if kin and _KIN_STATE.match(text):
        return FactKind.RELATIONSHIP, None
    piece.is_closed = foreign or _is_of_the_moment(text)
    if piece.is_closed:
        return None
    found = _read_rules(text, correction=correction)
    piece.is_closed = found is None and gates.REQUEST.search(text) is not None
    return found


def _is_of_the_moment(text: str) -> bool:
    """Whether a clause is a memory, an opinion, a mood, or holds this once."""
    past = gates.PAST.search(text) is not None and not re.search(r"(?i)\bnow\b|\bsince\b|these days", text)
    return past or any(gate.search(text) for gate in (gates.OPINION, gates.PASSING, gates.ONCE))


def _read_rules(text: str, *, correction: bool) -> tuple[FactKind, str | None] | None:
    for rule in RULES:
        if (match := rule.pattern.search(text)) is not None:
            return rule.kind, _slot(rule, match, text)
    if grammar.PROJECT.search(text) and not grammar.FACTS_OF_OTHERS.search(text):
        role = tool_role(text)
        return FactKind.KNOWLEDGE, role if role and role.startswith("project") else None
    if (found := _open(text)) is not None:
        return found
    if correction and re.search(r"(?i)\b(?:is|are|'s|'m|am)\b", text) and not is_correction(text):
        return FactKind.KNOWLEDGE, None
    return None


def _open(text: str) -> tuple[FactKind, str | None] | None:
    """What the grammar alone says: the simple present of I, we, my and our is a state or a habit."""
    if grammar.FACTS_OF_OTHERS.search(text) or grammar.TASK_NOUNS.search(text) or gates.REQUEST.search(text):
        return None
    if grammar.RESULTS.search(text):
        return FactKind.KNOWLEDGE, None
    if grammar.FOR_ME.search(text):
        return FactKind.PREFERENCE, None
    if grammar.OPEN_IM.search(text) or grammar.AS_A.search(text):
        return FactKind.IDENTITY, None
    if grammar.OPEN_I.search(text):
        return FactKind.HABIT, None
    if grammar.OPEN_MY.search(text):
        return FactKind.KNOWLEDGE, None
    return None


_BOSS: Final = next(rule.pattern for rule in RULES if rule.topic == "work.boss")
_ON_MY_DEVICE: Final = re.compile(r"(?i)^(?:on|from|with) my (?-i:[A-Z])[\w-]+$")
_KIN_PRONOUN: Final = re.compile(r"(?i)(?:she|he|they)\b")
_KIN_STATE: Final = re.compile(r"(?i)(?:she|he|they)(?:'s| is| has| lives?| was born| works?| can't| doesn't|'re)\b")


def _wish(text: str, sentence: Sentence) -> tuple[FactKind, str | None] | None:
    """A standing wish; not one about the task at hand."""
    if gates.ONCE.search(text) or sentence.is_question:
        return None
    standing = gates.STANDING.search(text) is not None
    directive = gates.DIRECTIVE.search(text) is not None
    about = is_about_replies(text)
    if gates.WISH.search(text) is None and not (directive and (standing or about)):
        return None
    if gates.REQUEST.search(text) and not standing:
        return None
    return FactKind.PREFERENCE, reply_topic(text) if about or reply_topic(text) in (
        "reply.address",
        "reply.units",
    ) else None


def _slot(rule: ClauseRule, match: re.Match[str], text: str) -> str | None:
    groups = match.groupdict()
    thing = next((groups[name] for name in ("o", "p", "q") if groups.get(name)), "").strip().casefold()
    thing = re.sub(r"^(?:any|to|the|a|an|my|eating|drinking) ", "", thing)[:16].strip()
    match rule.topic:
        case "diet.allergy" | "diet.restriction" | "taste":
            return f"{rule.topic}.{thing}" if thing else rule.topic if rule.topic != "taste" else None
        case "tool":
            return None if re.search(r"(?i)\balso\b|\band\b", text) else tool_role(text)
        case "device":
            return _device_slot(text)
        case "plan" | "schedule" | "finance" | "decision" | "family" | "pet" | "identity" | "health" | "work.boss":
            return None
        case other:
            return other


def _device_slot(text: str) -> str | None:
    for slot, words in (
        ("device.phone", r"phone|pixel|iphone|galaxy"),
        ("device.computer", r"laptop|computer|\bpc\b|macbook"),
        ("vehicle", r"\bcar\b|\bride\b|\bdrive\b|\bvan\b"),
    ):
        if re.search(rf"(?i){words}", text):
            return slot
    return tool_role(text)


_NEGATION: Final = re.compile(
    r"(?i)\b(?:not|no|never|don't|dont|doesn't|can't|cannot|won't|isn't|aren't|stop|avoid|without|hate|dislike"
    r"|no longer|n't)\b|n't\b"
)


def _join(sentence: Sentence, pieces: list[_Piece], *, correction: bool) -> Iterator[Statement]:
    at = 0
    while at < len(pieces):
        first = pieces[at]
        if first.found is None:
            at += 1
            continue
        last = at
        while last + 1 < len(pieces) and _continues(pieces[last + 1], first.start):
            last += 1
        visible = sentence.visible[first.start : pieces[last].end]
        kind, slot = first.found
        change, former = find_change(visible, context=sentence.visible if correction else "")
        yield Statement(
            text=sentence.text[first.start : pieces[last].end][:MAX_STATEMENT_LENGTH].strip(),
            kind=kind,
            section=section_of(visible, kind, slot),
            slot=slot,
            is_negative=_NEGATION.search(visible) is not None,
            change=change,
            former=former,
        )
        at = last + 1


def _continues(after: _Piece, start: int) -> bool:
    if after.is_closed or after.found is not None or after.end - start > MAX_STATEMENT_LENGTH:
        return False
    return not re.match(r"(?i)(?:please|can|could|what|which|how|make|find|give|show|write)\b", after.text)
