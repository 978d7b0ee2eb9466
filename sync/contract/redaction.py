"""What the rules of redaction answer, as JSON: what stands in the place of a value, and counts; never the value."""

from sync.published.redaction import RedactedFileJson, RedactionCheckJson
from sync.redaction import Examined


def checked(value: Examined) -> RedactionCheckJson:
    return {"text": str(value.text), "counts": value.counts, "total": sum(value.counts.values())}


def redacted_file(source: str, value: Examined, written: str | None) -> RedactedFileJson:
    return {"source": source, "counts": value.counts, "total": sum(value.counts.values()), "written": written}
