"""The redactor: fold, detect, replace in the original; when anything goes wrong, nothing comes out.

Detection repeats on the masked view until it finds nothing more. The view of a cleaned text is that last view, so
cleaning twice is cleaning once. Replacing a value may uncover a neighbour that had been part of a longer run, hence
more than one round; each round costs one pass, and a text that has not settled after `_MAX_ROUNDS` is refused.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

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

Detector = Callable[[str], Iterable[SecretSpan]]

# In order of authority: where spans overlap they are replaced as one, under the name of the first.
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
RULES_VERSION: Final = (
    5  # raised with every change of what the rules find; a log can then be read again (`redact --log`)
)
_MAX_ROUNDS: Final = 16
_MAX_CACHED: Final = 512  # texts that came out clean,
_LONGEST_QUESTION: Final = 80  # characters of a question's last line
_MAX_CACHED_LENGTH: Final = 256  # none longer than this: names of fields, the summaries of a conversation


class Redactor:
    """Turns text into `RedactText` text and JSON objects into `CleanPayload`s.

    `extra_patterns` are the user's own, in google-re2 syntax; a group, if there is one, marks what is replaced.
    `enabled=False` is the user's choice about what is captured on this device: `clean` and `payload` then only seal.
    What leaves the device goes through `for_leaving()`, which is always an enabled redactor.
    """

    def __init__(self, *, extra_patterns: Sequence[str] = (), enabled: bool = True) -> None:
        self._user_patterns = tuple(parse_user_pattern(source) for source in extra_patterns)
        self.enabled = enabled
        self._clean_cache: set[str] = set()  # what has come out lately; going in again it would come out as it is

    @property
    def rules_version(self) -> int:
        """A number that is another one whenever texts may come out differently: rules of ours or of the user."""
        told = "\n".join((str(RULES_VERSION), *(pattern.source for pattern in self._user_patterns)))
        return int.from_bytes(sha256(told.encode()).digest()[:6])

    def for_egress(self) -> "Redactor":
        """The redactor for everything that leaves this device, whatever the setting for local capture."""
        if self.enabled:
            return self
        return Redactor(extra_patterns=[pattern.source for pattern in self._user_patterns])

    def clean(self, text: str) -> Clean:
        """`text` with every value that was found replaced by the name of its kind.

        Raises RedactionFailed when the text could not be examined; raw text never comes back.
        """
        return seal_text(self._redact_cached(text) if self.enabled else text)

    def clean_after(self, before: str, text: str) -> Clean:
        """`text` cleaned as what stands behind `before`: the name of a header, the question that it answers."""
        if not self.enabled:
            return self.clean(text)
        for _ in range(_MAX_ROUNDS):
            found = [span for span in self.find_spans(before + text) if span.start >= len(before)]
            moved = [SecretSpan(span.start - len(before), span.end - len(before), span.kind) for span in found]
            cleaned = self.clean(_insert_placeholders(moved, text))
            if cleaned == text:
                return cleaned
            text = cleaned
        raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")

    def clean_reply(self, question: str, answer: str) -> Clean:
        """`answer` cleaned, given the question: 密码是多少？ says what the answer is."""
        asked = question.strip().splitlines()[-1:]
        if not self.enabled or not asked or not asks_for_secret(asked[0]):
            return self.clean(answer)
        return self.clean_after(f"问：{asked[0][-_LONGEST_QUESTION:]}\n答：", answer)

    def clean_payload(self, value: Mapping[str, Any]) -> CleanPayload:
        """The JSON object `value` with every string and key in it cleaned, at any depth, and NUL taken out.

        Raises InvalidInput with the path of what JSON cannot hold, RedactionFailed as `clean` does.
        """
        return seal_payload(clean_object(value, _RedactingCleaner(self) if self.enabled else _UnchangedCleaner()))

    def clean_payload_with_ids(self, field: str, ids: str | Sequence[str], value: Mapping[str, Any]) -> CleanPayload:
        """`payload(value)` with ids of recorded events under `field`, as they are.

        They stand in the envelopes of those events wherever these are. An id that the rules would change, whatever it
        looks like, has to name its event all the same: else that one could be neither corrected nor forgotten.
        """
        named = ids if isinstance(ids, str) else list(ids)
        return seal_payload({field: named, **self.clean_payload(value).value})

    def is_sensitive_id(self, name: str) -> bool:
        """Whether an id says what should not leave: a number of somebody's, an address, a key by its form.

        By chance one in ten long numbers is a card's, and ids are random: what only looks like either is none.
        """
        hits = self._detect(normalise(name))
        return any(rank != _RANDOM_STRINGS_RANK and span.kind != BANK_CARD for rank, span in hits)

    def examine(self, text: str) -> ExaminedText:
        """What the rules make of `text`, whatever the setting for local capture. Raises RedactionFailed."""
        spans = self.find_spans(text)
        counts = Counter(span.kind for span in spans)
        return ExaminedText(seal_text(_insert_placeholders(spans, text)), dict(counts.most_common()))

    def find_spans(self, text: str) -> list[SecretSpan]:
        """What `clean` would replace: disjoint spans from left to right, in characters of `text`."""
        try:
            return self._find_until_stable(normalise(text))
        except XiaobaiError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing raw may come out
            # The cause is dropped on purpose: encoding errors carry the whole text with them.
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None

    def _redact_cached(self, text: str) -> str:
        if text in self._clean_cache:
            return text
        clean = _insert_placeholders(self.find_spans(text), text)
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
        """(authority, span) of every detector."""
        hits = [(rank, hit) for rank, detector in enumerate(DETECTORS) for hit in detector(view.text)]
        hits += [(-1, hit) for pattern in self._user_patterns for hit in _find_custom(pattern, view.text)]
        trimmed = ((rank, _trim_barriers(view.text, hit)) for rank, hit in hits)
        return [(rank, view.expand_to_characters(hit)) for rank, hit in trimmed if hit]


class _UnchangedCleaner:
    """What leaves every string of an object as it is."""

    def clean_value(self, _name: str, text: str) -> str:
        return text

    def clean_list(self, _name: str, texts: Sequence[str]) -> Sequence[str]:
        return texts


class _RedactingCleaner:
    """What cleans the strings of an object, given what they are called and what stands beside them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def clean_value(self, name: str, text: str) -> str:
        """`text` cleaned, given that it is the value of `name`: {"password": "swordfish"} says what it is."""
        try:
            kind = secret_kind(name, text) if name else None
        except Exception as error:  # noqa: BLE001 - as in find
            raise RedactionFailed(f"redaction stopped on {type(error).__name__}") from None
        if kind:
            return placeholder(kind)
        told = name.lower().endswith(_AUTHORIZATION_SUFFIX) or names_personal_field(name)
        return str(self._redactor.clean_after(f"{name}: ", text) if told else self._redactor.clean(text))

    def clean_list(self, name: str, texts: Sequence[str]) -> Sequence[str]:
        for _ in range(_MAX_ROUNDS):
            read = redact_joined(texts, self._redactor.find_spans)
            if read == texts:
                return texts
            texts = [self.clean_value(name, text) for text in read]
        raise RedactionFailed(f"redaction did not settle in {_MAX_ROUNDS} rounds")


_AUTHORIZATION_SUFFIX: Final = "authorization"  # also Proxy-Authorization


def _insert_placeholders(spans: Sequence[SecretSpan], text: str) -> str:
    """The text with the name of its kind in the place of each span."""
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
    """The span without what is already replaced at its edges; None when nothing is left."""
    start, end = span.start, span.end
    while start < end and text[start] == BARRIER:
        start += 1
    while start < end and text[end - 1] == BARRIER:
        end -= 1
    return SecretSpan(start, end, span.kind) if start < end else None


def _merge_overlaps(hits: list[tuple[int, SecretSpan]]) -> list[SecretSpan]:
    """Disjoint spans in order; overlapping ones become one with the kind of the highest authority."""
    merged: list[tuple[int, SecretSpan]] = []
    for rank, span in sorted(hits, key=lambda hit: (hit[1].start, hit[0])):
        if merged and span.start < merged[-1][1].end:
            best, last = merged[-1]
            if span.kind == EMAIL and last.kind in SECRET_KINDS:
                continue  # the host after user:password@ is nobody's address
            kind = last.kind if best <= rank else span.kind
            merged[-1] = min(best, rank), SecretSpan(last.start, max(last.end, span.end), kind)
        else:
            merged.append((rank, span))
    return [span for _, span in merged]


def _absorb(found: list[SecretSpan], new: list[SecretSpan]) -> list[SecretSpan]:
    """Both lists in order; what lies inside a new span is part of it from now on."""
    if not found:
        return new
    both = sorted([(span.start, 1, span) for span in found] + [(span.start, 0, span) for span in new])
    kept: list[SecretSpan] = []
    for _, _, span in both:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
