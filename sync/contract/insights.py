"""The insights as JSON."""

from collections.abc import Iterable, Sequence
from typing import Literal, cast

from sync.clock import moment, timestamp
from sync.insights import paper
from sync.insights.report import Report
from sync.insights.views import Judged, Next, Profile, Step
from sync.published.insights import (
    CountJson,
    InstinctJson,
    InstinctsJson,
    NextJson,
    ProfileJson,
    ReportJson,
    StepJson,
)


def following(value: Next, watermark: int) -> NextJson:
    return {
        "scope": value.scope or None,
        "sessionId": value.session_id,
        "stage": value.stage,
        "type": value.type,
        "stages": _steps(value.stages),
        "types": _steps(value.types),
        "sourceWatermark": watermark,
    }


def profile(value: Profile, watermark: int) -> ProfileJson:
    return {
        "projectId": value.project_id,
        "events": value.events,
        "languages": _counts(value.languages),
        "tools": _counts(value.tools),
        "stages": _counts(value.stages),
        "hours": _counts(value.hours),
        "preferences": [
            {"text": item.text, "count": item.count, "evidence": list(reversed(item.evidence))}
            for item in value.preferences
        ],
        "sourceWatermark": watermark,
    }


def instincts(values: Iterable[Judged], watermark: int) -> InstinctsJson:
    return {"instincts": [_instinct(value) for value in values], "sourceWatermark": watermark}


def report(value: Report, form: Literal["markdown", "html"]) -> ReportJson:
    text = paper.page(value) if form == "html" else paper.markdown(value)
    return {"format": form, "text": text, "sourceWatermark": value.source_watermark}


def _instinct(value: Judged) -> InstinctJson:
    return {
        "instinctId": value.instinct_id,
        "kind": cast("Literal['correct', 'keep', 'fails']", value.kind),
        "text": value.text,
        "stage": value.stage,
        "projectId": value.project_id,
        "status": cast("Literal['promoted', 'candidate', 'retired']", value.status),
        "confidence": value.confidence,
        "count": value.count,
        "lastAt": timestamp(moment(value.last_at_ms)),
        "evidence": list(reversed(value.speak_for)),
        "against": list(reversed(value.speak_against)),
    }


def _steps(values: Sequence[Step]) -> list[StepJson]:
    return [
        {"step": value.step, "share": value.share, "count": value.count, "evidence": list(value.evidence)}
        for value in values
    ]


def _counts(values: Iterable[tuple[str, int]]) -> list[CountJson]:
    return [{"name": name, "count": count} for name, count in values]
