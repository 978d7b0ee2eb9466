"""What the strings of a list say only as a whole: a command and its arguments, the lines of a private key."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile

from sync.redaction.model import SECRET_KINDS, SecretSpan, placeholder


def redact_joined(texts: Sequence[str], find_spans: Callable[[str], list[SecretSpan]]) -> list[str]:
    """`texts` without what is secret in them when they are read one behind the other.

    Numbers and addresses are looked for in each by itself: in a row, two halves would make one that nobody wrote.
    """
    read = list(texts)
    for joint in _separators(texts):
        spans = [span for span in find_spans(joint.join(read)) if span.kind in SECRET_KINDS]
        if spans:
            read = list(_replace_spans(spans, read, len(joint)))
    return read


def _separators(texts: Sequence[str]) -> Iterator[str]:
    """What would stand between the strings in a text, where that makes a difference."""
    if any("private" in text.lower() for text in texts):
        yield "\n"
    if any(_is_option(text) for text in texts):
        yield " "


def _is_option(text: str) -> bool:
    return text.startswith("-") and text.lstrip("-")[:1].isalpha()


def _replace_spans(spans: Sequence[SecretSpan], texts: Sequence[str], separator_length: int) -> Iterator[str]:
    """Each of the texts with the name of its kind for its part of each span; the spans are those of the whole."""
    begin = first = 0
    for text in texts:
        pieces: list[str] = []
        done = 0
        while first < len(spans) and spans[first].end <= begin:
            first += 1
        for span in takewhile(lambda span: span.start < begin + len(text), islice(spans, first, None)):  # noqa: B023 - used at once
            start, end = max(span.start - begin, 0), span.end - begin
            if text[start:end].strip():
                pieces += (text[done:start], placeholder(span.kind))
                done = min(end, len(text))
        yield "".join((*pieces, text[done:]))
        begin += len(text) + separator_length
