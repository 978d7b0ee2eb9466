"""The redactor: fold, detect, replace in the original; when anything goes wrong, nothing comes out.

Detection repeats on the masked view until it finds nothing more. The view of a cleaned text is that last view, so
cleaning twice is cleaning once. Replacing a value may uncover a neighbour that had been part of a longer run, hence
more than one round; each round costs one pass, and a text that has not settled after `_ROUNDS` is refused.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from sync.errors import RedactionFailed, XiaobaiError
from sync.redaction.assignments import assignments, backwards, secret_kind
from sync.redaction.broken import broken
from sync.redaction.documents import addresses, contacts, documents, names_a_person
from sync.redaction.engine import Pattern, user_pattern
from sync.redaction.entropy import random_looking
from sync.redaction.envelopes import accounts, changed, command_lines, credentials_in_urls, headers, key_blocks, phrases
from sync.redaction.layout import answers, asks_for_secret, encoded, password_files, tables
from sync.redaction.model import (
    BANK_CARD,
    CUSTOM,
    EMAIL,
    SECRETS,
    Clean,
    CleanPayload,
    Examined,
    Span,
    placeholder,
    sealed_payload,
    sealed_text,
)
from sync.redaction.numbers import numbers
from sync.redaction.payload import cleaned_object
from sync.redaction.personal import company_codes, emails, introduced
from sync.redaction.together import together
from sync.redaction.tokens import issued, marked
from sync.redaction.view import BARRIER, View, view_of

Detector = Callable[[str], Iterable[Span]]

# In order of authority: where spans overlap they are replaced as one, under the name of the first.
DETECTORS: Final[tuple[Detector, ...]] = (
    key_blocks,
    broken,
    issued,
    marked,
    credentials_in_urls,
    headers,
    command_lines,
    accounts,
    phrases,
    changed,
    encoded,
    assignments,
    tables,
    answers,
    password_files,
    backwards,
    emails,
    numbers,
    introduced,
    company_codes,
    documents,
    contacts,
    addresses,
    random_looking,
)
_BY_LOOKS: Final = DETECTORS.index(random_looking)
RULES: Final = 5  # raised with every change of what the rules find; a log can then be read again (`redact --log`)
_ROUNDS: Final = 16
_REMEMBERED: Final = 512  # texts that came out clean,
_LONGEST_QUESTION: Final = 80  # characters of a question's last line
_SHORT: Final = 256  # none longer than this: names of fields, the summaries of a conversation


class Redactor:
    """Turns text into `Clean` text and JSON objects into `CleanPayload`s.

    `extra_patterns` are the user's own, in google-re2 syntax; a group, if there is one, marks what is replaced.
    `enabled=False` is the user's choice about what is captured on this device: `clean` and `payload` then only seal.
    What leaves the device goes through `for_leaving()`, which is always an enabled redactor.
    """

    def __init__(self, *, extra_patterns: Sequence[str] = (), enabled: bool = True) -> None:
        self._extra = tuple(user_pattern(source) for source in extra_patterns)
        self.enabled = enabled
        self._clean: set[str] = set()  # what has come out lately; going in again it would come out as it is

    @property
    def rules(self) -> int:
        """A number that is another one whenever texts may come out differently: rules of ours or of the user."""
        told = "\n".join((str(RULES), *(pattern.source for pattern in self._extra)))
        return int.from_bytes(sha256(told.encode()).digest()[:6])

    def for_leaving(self) -> "Redactor":
        """The redactor for everything that leaves this device, whatever the setting for local capture."""
        if self.enabled:
            return self
        return Redactor(extra_patterns=[pattern.source for pattern in self._extra])

    def clean(self, text: str) -> Clean:
        """`text` with every value that was found replaced by the name of its kind.

        Raises RedactionFailed when the text could not be examined; raw text never comes back.
        """
        return sealed_text(self._replaced(text) if self.enabled else text)

    def clean_behind(self, before: str, text: str) -> Clean:
        """`text` cleaned as what stands behind `before`: the name of a header, the question that it answers."""
        if not self.enabled:
            return self.clean(text)
        for _ in range(_ROUNDS):
            found = [span for span in self.find(before + text) if span.start >= len(before)]
            moved = [Span(span.start - len(before), span.end - len(before), span.kind) for span in found]
            cleaned = self.clean(_put(moved, text))
            if cleaned == text:
                return cleaned
            text = cleaned
        raise RedactionFailed(f"redaction did not settle in {_ROUNDS} rounds")

    def reply(self, question: str, answer: str) -> Clean:
        """`answer` cleaned, given the question: 密码是多少？ says what the answer is."""
        asked = question.strip().splitlines()[-1:]
        if not self.enabled or not asked or not asks_for_secret(asked[0]):
            return self.clean(answer)
        return self.clean_behind(f"问：{asked[0][-_LONGEST_QUESTION:]}\n答：", answer)

    def payload(self, value: Mapping[str, Any]) -> CleanPayload:
        """The JSON object `value` with every string and key in it cleaned, at any depth, and NUL taken out.

        Raises InvalidInput with the path of what JSON cannot hold, RedactionFailed as `clean` does.
        """
        return sealed_payload(cleaned_object(value, _Cleaner(self) if self.enabled else _AsItIs()))

    def naming(self, field: str, ids: str | Sequence[str], value: Mapping[str, Any]) -> CleanPayload:
        """`payload(value)` with ids of recorded events under `field`, as they are.

        They stand in the envelopes of those events wherever these are. An id that the rules would change, whatever it
        looks like, has to name its event all the same: else that one could be neither corrected nor forgotten.
        """
        named = ids if isinstance(ids, str) else list(ids)
        return sealed_payload({field: named, **self.payload(value).value})

    def is_telling(self, name: str) -> bool:
        """Whether an id says what should not leave: a number of somebody's, an address, a key by its form.

        By chance one in ten long numbers is a card's, and ids are random: what only looks like either is none.
        """
        hits = self._detected(view_of(name))
        return any(rank != _BY_LOOKS and span.kind != BANK_CARD for rank, span in hits)

    def examine(self, text: str) -> Examined:
        """What the rules make of `text`, whatever the setting for local capture. Raises RedactionFailed."""
        spans = self.find(text)
        counts = Counter(span.kind for span in spans)
        return Examined(sealed_text(_put(spans, text)), dict(counts.most_common()))

    def find(self, text: str) -> list[Span]:
        """What `clean` would replace: disjoint spans from left to right, in characters of `text`."""
        try:
            return self._settled(view_of(text))
        except XiaobaiError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing raw may come out
            # The cause is dropped on purpose: encoding errors carry the whole text with them.
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None

    def _replaced(self, text: str) -> str:
        if text in self._clean:
            return text
        clean = _put(self.find(text), text)
        if len(clean) <= _SHORT:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean.add(clean)
        return clean

    def _settled(self, view: View) -> list[Span]:
        found: list[Span] = []
        for _ in range(_ROUNDS):
            hits = _merged(self._detected(view))
            if not hits:
                return found
            found = _absorbed(found, [view.original(hit) for hit in hits])
            view = view.masked(hits)
        raise RedactionFailed(f"redaction did not settle in {_ROUNDS} rounds")

    def _detected(self, view: View) -> list[tuple[int, Span]]:
        """(authority, span) of every detector."""
        hits = [(rank, hit) for rank, detector in enumerate(DETECTORS) for hit in detector(view.text)]
        hits += [(-1, hit) for pattern in self._extra for hit in _custom(pattern, view.text)]
        trimmed = ((rank, _trimmed(view.text, hit)) for rank, hit in hits)
        return [(rank, view.whole(hit)) for rank, hit in trimmed if hit]


class _AsItIs:
    """What leaves every string of an object as it is."""

    def under(self, _name: str, text: str) -> str:
        return text

    def together(self, _name: str, texts: Sequence[str]) -> Sequence[str]:
        return texts


class _Cleaner:
    """What cleans the strings of an object, given what they are called and what stands beside them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def under(self, name: str, text: str) -> str:
        """`text` cleaned, given that it is the value of `name`: {"password": "swordfish"} says what it is."""
        try:
            kind = secret_kind(name, text) if name else None
        except Exception as error:  # noqa: BLE001 - as in find
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None
        if kind:
            return placeholder(kind)
        told = name.lower().endswith(_AUTHORIZATION) or names_a_person(name)
        return str(self._redactor.clean_behind(f"{name}: ", text) if told else self._redactor.clean(text))

    def together(self, name: str, texts: Sequence[str]) -> Sequence[str]:
        for _ in range(_ROUNDS):
            read = together(texts, self._redactor.find)
            if read == texts:
                return texts
            texts = [self.under(name, text) for text in read]
        raise RedactionFailed(f"redaction did not settle in {_ROUNDS} rounds")


_AUTHORIZATION: Final = "authorization"  # also Proxy-Authorization


def _put(spans: Sequence[Span], text: str) -> str:
    """The text with the name of its kind in the place of each span."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], placeholder(span.kind))
        done = span.end
    return "".join((*pieces, text[done:]))


def _custom(pattern: Pattern, text: str) -> Iterable[Span]:
    for groups in pattern.every(text):
        marked = next((group for group in groups[1:] if group[0] >= 0), groups[0])
        yield Span(*marked, CUSTOM)


def _trimmed(text: str, span: Span) -> Span | None:
    """The span without what is already replaced at its edges; None when nothing is left."""
    start, end = span.start, span.end
    while start < end and text[start] == BARRIER:
        start += 1
    while start < end and text[end - 1] == BARRIER:
        end -= 1
    return Span(start, end, span.kind) if start < end else None


def _merged(hits: list[tuple[int, Span]]) -> list[Span]:
    """Disjoint spans in order; overlapping ones become one with the kind of the highest authority."""
    merged: list[tuple[int, Span]] = []
    for rank, span in sorted(hits, key=lambda hit: (hit[1].start, hit[0])):
        if merged and span.start < merged[-1][1].end:
            best, last = merged[-1]
            if span.kind == EMAIL and last.kind in SECRETS:
                continue  # the host after user:password@ is nobody's address
            kind = last.kind if best <= rank else span.kind
            merged[-1] = min(best, rank), Span(last.start, max(last.end, span.end), kind)
        else:
            merged.append((rank, span))
    return [span for _, span in merged]


def _absorbed(found: list[Span], new: list[Span]) -> list[Span]:
    """Both lists in order; what lies inside a new span is part of it from now on."""
    if not found:
        return new
    both = sorted([(span.start, 1, span) for span in found] + [(span.start, 0, span) for span in new])
    kept: list[Span] = []
    for _, _, span in both:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
