"""The redactor: normalise, detect, and replace in the original. After any failure nothing comes out.

Replacing a value may uncover a neighbour, so detection repeats on the masked view until it finds nothing more. That
view is also the view of the cleaned text, so cleaning twice is cleaning once. A text that is not stable after
`_MAX_ROUNDS` is refused.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeVar

from sync.errors import RedactionFailed, XiaobaiError
from sync.redaction.detectors.assignments import assignments, reversed_assignments, secret_kind
from sync.redaction.detectors.numbers import numbers
from sync.redaction.detectors.personal_codes import company_codes, emails, labelled_numbers
from sync.redaction.detectors.personal_details import (
    contact_details,
    identity_documents,
    names_personal_field,
    postal_addresses,
)
from sync.redaction.detectors.random_strings import random_strings
from sync.redaction.detectors.split_tokens import split_tokens
from sync.redaction.detectors.spread_values import spread_values
from sync.redaction.detectors.structured_secrets import (
    answered_secrets,
    asks_for_secret,
    encoded_secrets,
    pgpass_passwords,
    table_secrets,
)
from sync.redaction.detectors.tokens import marked_tokens, prefixed_tokens
from sync.redaction.detectors.wrapped_secrets import (
    account_passwords,
    authorization_headers,
    changed_passwords,
    command_line_passwords,
    credentials_in_urls,
    passphrases,
    private_key_blocks,
)
from sync.redaction.list_context import redact_joined
from sync.redaction.model import (
    BANK_CARD,
    CUSTOM,
    EMAIL,
    SECRET_KINDS,
    Clean,
    CleanPayload,
    ExaminedText,
    SecretSpan,
    placeholder,
    seal_payload,
    seal_text,
)
from sync.redaction.normalised_text import BARRIER, NormalisedText, normalise
from sync.redaction.pattern import Pattern, parse_user_pattern
from sync.redaction.payload import clean_object
from sync.redaction.replaced_values import ReplacedValues

T = TypeVar("T")
Detector = Callable[[str], Iterable[SecretSpan]]

# In order of authority: overlapping spans become one, of the kind of the first.
DETECTORS: Final[tuple[Detector, ...]] = (
    private_key_blocks,
    split_tokens,
    prefixed_tokens,
    marked_tokens,
    credentials_in_urls,
    authorization_headers,
    command_line_passwords,
    account_passwords,
    passphrases,
    changed_passwords,
    encoded_secrets,
    assignments,
    spread_values,
    table_secrets,
    answered_secrets,
    pgpass_passwords,
    reversed_assignments,
    emails,
    numbers,
    labelled_numbers,
    company_codes,
    identity_documents,
    contact_details,
    postal_addresses,
    random_strings,
)
_RANDOM_STRINGS_RANK: Final = DETECTORS.index(random_strings)
RULES_VERSION: Final = 6  # `tests.rule_versions` says when it has to rise; logs are rescanned then
_MAX_ROUNDS: Final = 16
_LONGEST_QUESTION: Final = 80  # characters of a question's last line
_MAX_CACHED: Final = 512  # clean texts
_MAX_CACHED_LENGTH: Final = 256  # characters: field names, summaries of a conversation


class Redactor:
    """Turns text into `Clean` and JSON objects into `CleanPayload`.

    `extra_patterns` are the user's, in google-re2 syntax; a group, if there is one, marks what is replaced. With
    `enabled=False`, the user's choice for this device, text is only sealed. Whatever leaves the device passes
    `for_egress()`, which is always enabled.
    """

    def __init__(self, *, extra_patterns: Sequence[str] = (), enabled: bool = True) -> None:
        self._user_patterns = tuple(parse_user_pattern(source) for source in extra_patterns)
        self.enabled = enabled
        self._clean_cache: set[str] = set()  # recent results, which redaction does not change

    @property
    def rules_version(self) -> int:
        """A number that changes with the rules, built-in or the user's."""
        sources = "\n".join((str(RULES_VERSION), *(pattern.source for pattern in self._user_patterns)))
        return int.from_bytes(sha256(sources.encode()).digest()[:6])

    def for_egress(self) -> "Redactor":
        """An enabled redactor, for everything that leaves this device."""
        if self.enabled:
            return self
        return Redactor(extra_patterns=[pattern.source for pattern in self._user_patterns])

    def clean(self, text: str) -> Clean:
        """Replace every value that is found by its placeholder. Raises RedactionFailed, never returns raw text."""
        return seal_text(self._redact(text, ReplacedValues()) if self.enabled else text)

    def clean_turns(self, turns: Iterable[tuple[bool, str]]) -> list[Clean]:
        """Clean the texts of one conversation: a value that is replaced in one goes from all.

        `True` marks a text that answers the one before it, for example 密码是多少？
        """
        if not self.enabled:
            return [seal_text(text) for _, text in turns]
        values, texts = ReplacedValues(), [""]
        for is_answer, text in turns:
            texts.append(self._redact_after(_question_line(texts[-1]) if is_answer else "", text, values))
        remaining = self._without_values(texts[1:], values, lambda text: self._redact(text, values))
        return [seal_text(text) for text in remaining]

    def clean_payload(self, value: Mapping[str, Any]) -> CleanPayload:
        """Clean every string and key of a JSON object, at any depth, and remove NUL.

        Raises InvalidInput with the path of what JSON cannot store, RedactionFailed as `clean` does.
        """
        return self.clean_payloads(value)[0]

    def clean_payloads(self, *values: Mapping[str, Any]) -> list[CleanPayload]:
        """Clean the objects of one event: a value that is replaced in one field goes from all fields of all."""
        if not self.enabled:
            return [seal_payload(clean_object(value, _UnchangedCleaner())) for value in values]
        replaced = ReplacedValues()
        clean = partial(clean_object, cleaner=_RedactingCleaner(self, replaced))
        return [
            seal_payload(value) for value in self._without_values([clean(value) for value in values], replaced, clean)
        ]

    def clean_payload_with_ids(self, field: str, ids: str | Sequence[str], value: Mapping[str, Any]) -> CleanPayload:
        """Clean `value` and add ids of recorded events, unchanged, under `field`.

        The ids are in the envelopes of those events anyway. An id that the rules would change must still name its
        event, or the event could be neither corrected nor erased.
        """
        unchanged = ids if isinstance(ids, str) else list(ids)
        return seal_payload({field: unchanged, **self.clean_payload(value).value})

    def is_sensitive_id(self, name: str) -> bool:
        """Whether an id contains a personal number, an address or a key of a known form.

        Card numbers and random strings do not count: one in ten long numbers is a valid card's, and ids are random.
        """
        hits = self._detect(normalise(name))
        return any(rank != _RANDOM_STRINGS_RANK and span.kind != BANK_CARD for rank, span in hits)

    def examine(self, text: str) -> ExaminedText:
        """Redact `text`, whether enabled or not, and count what was found. Raises RedactionFailed."""
        spans = self.find_spans(text)
        counts = Counter(span.kind for span in spans)
        return ExaminedText(seal_text(_insert_placeholders(spans, text)), dict(counts.most_common()))

    def find_spans(self, text: str) -> list[SecretSpan]:
        """The spans that `clean` replaces: disjoint and ordered, in characters of `text`."""
        try:
            return self._find_until_stable(normalise(text))
        except XiaobaiError:
            raise
        except Exception as error:  # noqa: BLE001 - nothing raw may come out
            # `from None`: encoding errors contain the whole text.
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None

    def _without_values(self, given: list[T], values: ReplacedValues, clean: Callable[[T], T]) -> list[T]:
        """Remove the values from clean texts or objects. Another placeholder may uncover another value."""
        for _ in range(_MAX_ROUNDS):
            remaining = [values.remove_from(value) for value in given] if values else given
            if remaining == given:
                return given
            given = [clean(value) for value in remaining]
        raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")

    def _redact_after(self, before: str, text: str, values: ReplacedValues) -> str:
        """Redact `text` as the continuation of `before`, such as a header's name or a question."""
        for _ in range(_MAX_ROUNDS if before else 0):
            offset = len(before)
            spans = [span for span in self.find_spans(before + text) if span.start >= offset]
            moved = [SecretSpan(span.start - offset, span.end - offset, span.kind) for span in spans]
            values.note(text, moved)
            cleaned = self._redact(_insert_placeholders(moved, text), values)
            if cleaned == text:
                return cleaned
            text = cleaned
        if before:
            raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")
        return self._redact(text, values)

    def _redact(self, text: str, values: ReplacedValues) -> str:
        if text in self._clean_cache:
            return text
        spans = self.find_spans(text)
        values.note(text, spans)
        clean = _insert_placeholders(spans, text)
        if len(clean) <= _MAX_CACHED_LENGTH:
            if len(self._clean_cache) >= _MAX_CACHED:
                self._clean_cache.clear()
            self._clean_cache.add(clean)
        return clean

    def _find_until_stable(self, view: NormalisedText) -> list[SecretSpan]:
        found: list[SecretSpan] = []
        for _ in range(_MAX_ROUNDS):
            hits = _merge_overlaps(self._detect(view))
            if not hits:
                return found
            found = _absorb(found, [view.to_original(hit) for hit in hits])
            view = view.mask(hits)
        raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")

    def _detect(self, view: NormalisedText) -> list[tuple[int, SecretSpan]]:
        """The rank and span of everything that a detector finds."""
        hits = [(rank, hit) for rank, detector in enumerate(DETECTORS) for hit in detector(view.text)]
        hits += [(-1, hit) for pattern in self._user_patterns for hit in _find_custom(pattern, view.text)]
        trimmed = ((rank, _trim_barriers(view.text, hit)) for rank, hit in hits)
        return [(rank, view.expand_to_characters(hit)) for rank, hit in trimmed if hit]


class _UnchangedCleaner:
    """Leaves every string of an object unchanged."""

    def clean_value(self, _name: str, text: str) -> str:
        return text

    def clean_list(self, _name: str, texts: Sequence[str]) -> Sequence[str]:
        return texts


class _RedactingCleaner:
    """Cleans the strings of an object in the context of their names and lists."""

    def __init__(self, redactor: Redactor, values: ReplacedValues) -> None:
        self._redactor = redactor
        self._values = values

    def clean_value(self, name: str, text: str) -> str:
        """Clean the value of a name: {"password": "swordfish"} is a secret."""
        try:
            kind = secret_kind(name, text) if name else None
        except Exception as error:  # noqa: BLE001 - as in find
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None
        if kind:
            self._values.note(text, [SecretSpan(0, len(text), kind)])
            return placeholder(kind)
        in_context = name.lower().endswith(_AUTHORIZATION_SUFFIX) or names_personal_field(name)
        return self._redactor._redact_after(f"{name}: " if in_context else "", text, self._values)  # noqa: SLF001 - one class in two

    def clean_list(self, name: str, texts: Sequence[str]) -> Sequence[str]:
        for _ in range(_MAX_ROUNDS):
            read = redact_joined(texts, self._find_secrets)
            if read == texts:
                return texts
            texts = [self.clean_value(name, text) for text in read]
        raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")

    def _find_secrets(self, joined: str) -> list[SecretSpan]:
        spans = [span for span in self._redactor.find_spans(joined) if span.kind in SECRET_KINDS]
        self._values.note(joined, spans)
        return spans


_AUTHORIZATION_SUFFIX: Final = "authorization"  # also Proxy-Authorization


def _question_line(question: str) -> str:
    """What precedes an answer to a question for a secret; nothing for other questions."""
    last_line = question.strip().splitlines()[-1:]
    if not last_line or not asks_for_secret(last_line[0]):
        return ""
    return f"问：{last_line[0][-_LONGEST_QUESTION:]}\n答："


def _insert_placeholders(spans: Sequence[SecretSpan], text: str) -> str:
    """Replace each span by its placeholder."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], placeholder(span.kind))
        done = span.end
    return "".join((*pieces, text[done:]))


def _find_custom(pattern: Pattern, text: str) -> Iterable[SecretSpan]:
    for groups in pattern.find_all(text):
        marked = next((group for group in groups[1:] if group[0] >= 0), groups[0])
        yield SecretSpan(*marked, CUSTOM)


def _trim_barriers(text: str, span: SecretSpan) -> SecretSpan | None:
    """Trim placeholders from the ends of a span; None if nothing is left."""
    start, end = span.start, span.end
    while start < end and text[start] == BARRIER:
        start += 1
    while start < end and text[end - 1] == BARRIER:
        end -= 1
    return SecretSpan(start, end, span.kind) if start < end else None


def _merge_overlaps(hits: list[tuple[int, SecretSpan]]) -> list[SecretSpan]:
    """Merge overlapping spans into one of the kind with the highest authority."""
    merged: list[tuple[int, SecretSpan]] = []
    for rank, span in sorted(hits, key=lambda hit: (hit[1].start, hit[0])):
        if merged and span.start < merged[-1][1].end:
            best, last = merged[-1]
            if span.kind == EMAIL and last.kind in SECRET_KINDS:
                continue  # the host after user:password@ is not an address
            kind = last.kind if best <= rank else span.kind
            merged[-1] = min(best, rank), SecretSpan(last.start, max(last.end, span.end), kind)
        else:
            merged.append((rank, span))
    return [span for _, span in merged]


def _absorb(found: list[SecretSpan], new: list[SecretSpan]) -> list[SecretSpan]:
    """Merge both lists in order; spans inside a new span become part of it."""
    if not found:
        return new
    both = sorted([(span.start, 1, span) for span in found] + [(span.start, 0, span) for span in new])
    merged: list[SecretSpan] = []
    for _, _, span in both:
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
    return merged
