"""English messages: gates for sentences and clauses, the rules for each clause, and clauses joined into statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sync.understanding.model import MAX_STATEMENT_LENGTH, TENTATIVE, Change, FactKind, Statement
from sync.understanding.rules import english_gates as gates
from sync.understanding.rules import english_grammar as grammar
from sync.understanding.rules.changes import find_change, is_correction
from sync.understanding.rules.english_rules import RULES
from sync.understanding.rules.reading import ClauseRule, Reading
from sync.understanding.rules.topics import (
    EXCLUSIVE_ROLES,
    MAIN_LANGUAGE,
    is_about_replies,
    reply_topic,
    section_of,
    tool_role,
)
from sync.understanding.rules.typed_text import HIDDEN, MAX_CLAUSE_LENGTH, MAX_HIDDEN, TypedSentence

_TENTATIVE_CONFIDENCE: Final = TENTATIVE - 0.1


@dataclass(slots=True)
class _Piece:
    """A clause of an English sentence and what was read in it."""

    start: int
    end: int
    text: str
    found: Reading | None = None
    is_closed: bool = False


def read_english(sentences: Sequence[TypedSentence]) -> list[Statement]:
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
    return found or list(_presupposed(sentences))


def _presupposed(sentences: Sequence[TypedSentence]) -> Iterator[Statement]:
    """What a question or request takes for granted about its author: resize these for my Etsy shop."""
    for sentence in sentences:
        match = grammar.PRESUPPOSED.search(sentence.visible)
        if match is not None and not gates.REPORTED.search(sentence.visible):
            kind = FactKind.POSSESSION
            yield Statement(match[0], kind, section_of(match[0], kind, None))


def _pieces(sentence: TypedSentence) -> Iterator[_Piece]:
    visible = sentence.visible.replace("\u2019", "'")
    spans = [match.span() for match in gates.CLAUSE.finditer(visible) if not _joins_nouns(visible, match)]
    start = 0
    for left, right in [*spans, (len(visible), len(visible))]:
        body = visible[start:left]
        if gates.INTRODUCTION.search(body) and left < len(visible):
            continue
        lead = len(body) - len(body.lstrip())
        filler = gates.FILLER.match(body[lead:])
        begin = start + lead + (filler.end() if filler else 0)
        tag = gates.TAG.search(body)
        end = start + len((body[: tag.start()] if tag else body).rstrip(" .!?…"))
        if begin < end <= begin + MAX_CLAUSE_LENGTH:
            mark = "?" if tag is None and body.rstrip().endswith("?") else ""
            yield _Piece(begin, end, visible[begin:end] + mark)
        start = right


def _joins_nouns(visible: str, mark: re.Match[str]) -> bool:
    """Whether a mark joins two subjects (my wife and I) and not two clauses."""
    before = re.search(r"(?i)(?:^|[,;] |^\w+ )(?:(?:my|our)(?: [\w'-]+){1,2}|me)$", visible[: mark.start()])
    return before is not None and re.match(r"(?i)\s*and (?:i|my|our|the)\b", visible[mark.start() :]) is not None


def _read_sentence(sentence: TypedSentence, pieces: list[_Piece], *, kin: bool, correction: bool) -> bool:
    """Read every clause; return whether the last one was about the author's family."""
    foreign = False
    if any(gate.search(sentence.visible) for gate in (gates.SARCASM, gates.JOKE)):
        for piece in pieces:
            piece.is_closed = True
        return False
    if len(pieces) > 1 and gates.QUESTION.search(pieces[0].text) and _DECLARES.match(pieces[-1].text):
        pieces[-1].text = pieces[-1].text.rstrip("?")  # What should I cook, I can't eat gluten?
    condition = gates.CONDITION.search(sentence.visible)
    wished = False
    for piece in pieces:
        text = piece.text
        conditional = condition is not None and piece.end > condition.start()
        if not (any(rule.search(text) for rule in _AUTHORITY) or (kin and _KIN_PRONOUN.match(text))):
            foreign = conditional or _is_foreign(text, was_foreign=foreign)
        piece.found = _read(piece, sentence, foreign=foreign, kin=kin, correction=correction)
        if piece.found is None and wished and not foreign and gates.DIRECTIVE.search(text) and not piece.is_closed:
            piece.found = Reading(FactKind.PREFERENCE)
        topic = None if piece.found is None else reply_topic(text) if piece.found.is_tentative else piece.found.slot
        wished = topic is not None and topic.startswith("reply.")
        if piece.found is not None:
            kin = piece.found.kind is FactKind.RELATIONSHIP and piece.found.slot != "work.boss"
        elif re.match(rf"(?i)(?:about )?(?:my |our )?{gates.FAMILY}\b", text):
            kin = True
    _read_duration(sentence, pieces)
    return kin


def _read_duration(sentence: TypedSentence, pieces: list[_Piece]) -> None:
    """Apply what the first or the last clause says of all requests: for tonight, nothing spicy; no emojis, always."""
    if len(pieces) > 1 and gates.ONCE_FIRST.match(pieces[0].text):
        for piece in pieces:
            if not (gates.STANDING.search(piece.text) or _DECLARES.match(piece.text)):
                piece.found, piece.is_closed = None, True
    if not sentence.is_question and any(gates.GENERALISES.search(piece.text) for piece in pieces[1:]):
        for piece in pieces:
            if piece.found is None and not piece.is_closed and _SAYS_HOW.search(piece.text):
                piece.found = Reading(FactKind.PREFERENCE, reply_topic(piece.text))


def _is_foreign(text: str, *, was_foreign: bool) -> bool:
    """Whether another person than the author speaks or is meant; the clause before decides if this one does not."""
    if gates.REPORTED.search(text) or (gates.OTHER_SUBJECT.search(text) and not grammar.FIX.search(text)):
        return True
    return was_foreign and re.match(r"(?i)(?:i|i'm|im|i've|my|we|our)\b", text) is None


def _read(piece: _Piece, sentence: TypedSentence, *, foreign: bool, kin: bool, correction: bool) -> Reading | None:
    text = piece.text
    if (polite := _POLITE.match(text)) is not None and not foreign and _asks_for_replies(text):
        return _lasting_wish(polite["wish"])
    if gates.QUESTION.search(text) and not _ON_MY_DEVICE.search(text):
        piece.is_closed = True
        return None
    if not foreign:
        if (wish := _wish(text, sentence)) is not None:
            return wish
        if grammar.FIX.search(text) and gates.OPINION.search(text) is None:
            return Reading(FactKind.KNOWLEDGE)
    if kin and _KIN_STATE.match(text):
        return Reading(FactKind.RELATIONSHIP)
    of_the_moment = _is_of_the_moment(text)
    if not foreign and not of_the_moment:
        found = _read_rules(text) or _read_change(text, correction=correction)
    elif not of_the_moment and not gates.REPORTED.search(text) and not gates.OTHER_SUBJECT.search(text):
        found = _read_change(text, correction=correction)
    else:
        found = None
    piece.is_closed = found is None and (foreign or of_the_moment)
    if piece.is_closed:
        return None
    piece.is_closed = found is None and gates.REQUEST.search(text) is not None
    return found


def _asks_for_replies(text: str) -> bool:
    """Whether a polite question is a lasting request about answers: would you please call me Ann from now on?"""
    about_replies = is_about_replies(text) or reply_topic(text) == "reply.address"
    return about_replies and gates.STANDING.search(text) is not None


def _is_of_the_moment(text: str) -> bool:
    """Whether a clause is a memory, an opinion, a mood, or holds this once."""
    if _TEXT_IS_QUOTED.search(text):
        return True
    past = gates.PAST.search(text) is not None and _NOT_OVER.search(text) is None
    return past or any(gate.search(text) for gate in (gates.OPINION, gates.PASSING, gates.ONCE))


def _read_rules(text: str) -> Reading | None:
    for subject, pattern in grammar.ELLIPSIS:
        if pattern.search(text):
            text = subject + text
    for rule in RULES:
        if (match := rule.pattern.search(text)) is not None:
            return Reading(rule.kind, _slot(rule, match, text))
    if grammar.PROJECT.search(text) and not grammar.FACTS_OF_OTHERS.search(text):
        role = tool_role(text)
        return Reading(FactKind.KNOWLEDGE, role if role and role.startswith("project") else None)
    if (found := _open(text)) is not None:
        return found
    return None


def _read_change(text: str, *, correction: bool) -> Reading | None:
    """A change or a correction that names no topic that a rule knows; it counts only if it changes a known fact."""
    if " " not in text:
        return None
    role = tool_role(text)
    if role is not None and grammar.SWITCHED_TOOL.search(text):
        return Reading(FactKind.PREFERENCE, role)
    is_corrected = correction and not is_correction(text) and re.search(r"(?i)\b(?:is|are|am)\b|'(?:s|m|re)\b", text)
    if grammar.CHANGES.search(text) or is_corrected:
        return Reading(FactKind.KNOWLEDGE, is_tentative=True)
    return None


def _open(text: str) -> Reading | None:
    """What the grammar alone says: the simple present of I, we, my and our is a state or a habit."""
    if grammar.FACTS_OF_OTHERS.search(text) or grammar.TASK_NOUNS.search(text) or gates.REQUEST.search(text):
        return None
    if grammar.RESULTS.search(text):
        role = tool_role(text) if grammar.SWITCHED_TOOL.search(text) else None
        return Reading(FactKind.PREFERENCE if role else FactKind.KNOWLEDGE, role)
    if grammar.FOR_ME.search(text):
        return Reading(FactKind.PREFERENCE)
    if grammar.OPEN_IM.search(text) or grammar.AS_A.search(text):
        return Reading(FactKind.IDENTITY)
    if grammar.HAVE.search(text):
        return Reading(FactKind.KNOWLEDGE)
    if grammar.OPEN_I.search(text):
        return Reading(FactKind.HABIT)
    if grammar.OPEN_MY.search(text):
        return Reading(FactKind.KNOWLEDGE)
    return None


_NOT_OVER: Final = re.compile(
    r"(?i)\bnow\b|\bsince\b|these days|\bmoved\b|\bswitched\b|\bbecame\b|\bquit\b|\bstopped\b|\bretired\b"
    r"|got (?:married|divorced|rid)|\bleft\b|\bdied\b|\bput \w+ down|\b(?:broke|tore|fractured|injured"
    r"|dislocated) my\b(?!.*\b(?:grade|school|as a|when i)\b)"
)
_TEXT_IS_QUOTED: Final = re.compile(
    rf"(?i)\b(?:motto|slogan|sign|headline|title|subject|tagline|label|name tag|note) (?:is|was|reads) {HIDDEN}"
)
_SAYS_HOW: Final = re.compile(r"(?i)^(?:no|less|more|fewer|only|skip|use|keep|code|answers?|replies)\b|\bover\b|\bin\b")
_POLITE: Final = re.compile(r"(?i)(?:would|could|can|will) you (?:please |kindly )?(?P<wish>[^?]+)\?$")
_DECLARES: Final = re.compile(r"(?i)(?:i|i'm|im|i've|my|we|our)\b")
_AUTHORITY: Final = tuple(rule.pattern for rule in RULES if rule.topic in ("work.boss", "house.rule"))
_ON_MY_DEVICE: Final = re.compile(r"(?i)^(?:on|from|with) my (?-i:[A-Z])[\w-]+$")
_KIN_PRONOUN: Final = re.compile(r"(?i)(?:she|he|they)\b")
_KIN_STATE: Final = re.compile(r"(?i)(?:she|he|they)(?:'s| is| has| lives?| was born| works?| can't| doesn't|'re)\b")


def _wish(text: str, sentence: TypedSentence) -> Reading | None:
    """A lasting request; not one about the task at hand."""
    if sentence.is_question or (sentence.is_heading and gates.STANDING.search(text) is None):
        return None
    return _lasting_wish(text)


def _lasting_wish(text: str) -> Reading | None:
    if gates.ONCE.search(text) or " " not in text.strip():
        return None
    standing = gates.STANDING.search(text) is not None
    directive = gates.DIRECTIVE.search(text) is not None
    about = is_about_replies(text)
    if gates.WISH.search(text) is None and not (directive and (standing or about)):
        return None
    if not standing and (gates.REQUEST.search(text) or gates.POINTS.search(text)):
        return None
    topic = reply_topic(text)
    return Reading(
        FactKind.PREFERENCE, topic if about or topic in ("reply.address", "reply.units", "reply.length") else None
    )


def _slot(rule: ClauseRule, match: re.Match[str], text: str) -> str | None:
    groups = match.groupdict()
    thing = next((groups[name] for name in ("o", "p", "q") if groups.get(name)), "").strip().casefold()
    thing = re.sub(r"^(?:any|to|the|a|an|my|eating|drinking) ", "", thing)[:16].strip()
    match rule.topic:
        case "taste" if not _NEGATION.search(text) and tool_role(text) in EXCLUSIVE_ROLES:
            return tool_role(text)
        case "diet.allergy" | "diet.restriction" | "taste":
            return f"{rule.topic}.{thing}" if thing else rule.topic if rule.topic != "taste" else None
        case "tool":
            return _tool_slot(text)
        case "device":
            return _device_slot(text)
        case (
            "plan"
            | "schedule"
            | "finance"
            | "decision"
            | "family"
            | "pet"
            | "identity"
            | "health"
            | "work.boss"
            | "house.rule"
        ):
            return None
        case other:
            return other


def _tool_slot(text: str) -> str | None:
    role = tool_role(text)
    if role == "language.programming" and not MAIN_LANGUAGE.search(text):
        return None  # who writes Go may write Python too
    return None if re.search(r"(?i)\balso\b|\band\b", text) else role


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


def _join(sentence: TypedSentence, pieces: list[_Piece], *, correction: bool) -> Iterator[Statement]:
    """Make statements of the clauses that say something, each with the remarks that only add to it."""
    at = 0
    while at < len(pieces):
        if pieces[at].found is None:
            at += 1
            continue
        last = at
        while last + 1 < len(pieces) and _continues(pieces[last], pieces[last + 1], pieces[at].start):
            last += 1
        whole = sentence.visible[pieces[at].start : pieces[last].end]
        if whole.count(HIDDEN) <= MAX_HIDDEN * len(whole):
            yield _statement(sentence, pieces[at : last + 1], correction=correction)
        at = last + 1


def _statement(sentence: TypedSentence, pieces: Sequence[_Piece], *, correction: bool) -> Statement:
    start, end = pieces[0].start, pieces[-1].end
    readings = [piece.found for piece in pieces if piece.found is not None]
    reading = next((one for one in readings if not one.is_tentative), readings[0])
    slot = next((one.slot for one in readings if one.slot is not None), None)
    visible = sentence.visible[start:end]
    change, former = find_change(visible, context=sentence.visible if correction else "")
    return Statement(
        text=sentence.text[start:end][:MAX_STATEMENT_LENGTH].strip(),
        kind=reading.kind,
        section=section_of(visible, reading.kind, slot),
        slot=slot,
        is_negative=_NEGATION.search(visible) is not None,
        change=change or (Change.REPLACES if reading.is_tentative else None),
        former=former,
        confidence=_TENTATIVE_CONFIDENCE if reading.is_tentative else 1.0,
    )


def _continues(before: _Piece, after: _Piece, start: int) -> bool:
    if after.is_closed or after.end - start > MAX_STATEMENT_LENGTH:
        return False
    if after.found is not None:
        about_kin = before.found is not None and before.found.kind is FactKind.RELATIONSHIP
        if about_kin and after.found.kind is FactKind.RELATIONSHIP and _KIN_PRONOUN.match(after.text):
            return True  # she's deaf says nothing alone
        if before.found is not None and after.found.kind is FactKind.PREFERENCE and grammar.CHANGES.search(before.text):
            return True
        return grammar.CHANGES.search(before.text) is not None and grammar.CHANGES.search(after.text) is not None
    return not re.match(r"(?i)(?:please|can|could|what|which|how|make|find|give|show|write)\b", after.text)
