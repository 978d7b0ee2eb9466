"""Answers of insights, and how they become JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict, cast

from sync.clock import from_unix_ms, timestamp
from sync.contract.lessons import HintJson
from sync.insights import render
from sync.insights.queries import ActivityProfile, NextStep, NextSteps, ScoredInstinct
from sync.insights.report import Report
from sync.texts.language import Language


class StepJson(TypedDict):
    """`share`: of the `count`s of all steps seen from there."""

    step: str
    share: float
    count: int
    evidence: list[str]


class NextJson(TypedDict):
    """`scope`: the project whose own steps these are; null where all projects together answer."""

    scope: str | None
    sessionId: str | None
    stage: str | None
    type: str | None
    stages: list[StepJson]
    types: list[StepJson]
    sourceWatermark: int


class CountJson(TypedDict):
    name: str
    count: int


class PreferenceJson(TypedDict):
    text: str
    count: int
    evidence: list[str]


class ProfileJson(TypedDict):
    projectId: str | None
    events: int
    languages: list[CountJson]
    tools: list[CountJson]
    stages: list[CountJson]
    hours: list[CountJson]
    preferences: list[PreferenceJson]
    sourceWatermark: int


class InstinctJson(TypedDict):
    """`kind` correct: a user's correction; keep: what was approved; fails: a tool call that goes wrong.

    `lessons`: of a correction, its lesson; of a call that fails, how its errors were solved, newest first.
    """

    instinctId: str
    kind: Literal["correct", "keep", "fails"]
    text: str
    stage: str | None
    projectId: str
    status: Literal["promoted", "candidate", "retired"]
    confidence: float
    count: int
    lastAt: str
    evidence: list[str]
    against: list[str]
    lessons: list[HintJson]


class InstinctsJson(TypedDict):
    instincts: list[InstinctJson]
    sourceWatermark: int


class ReportJson(TypedDict):
    """`text` is the whole document."""

    format: Literal["markdown", "html"]
    text: str
    sourceWatermark: int


def next_steps_to_json(value: NextSteps, watermark: int) -> NextJson:
    return {
        "scope": value.scope or None,
        "sessionId": value.session_id,
        "stage": value.stage,
        "type": value.type,
        "stages": _steps_to_json(value.stages),
        "types": _steps_to_json(value.types),
        "sourceWatermark": watermark,
    }


def profile_to_json(value: ActivityProfile, watermark: int) -> ProfileJson:
    return {
        "projectId": value.project_id,
        "events": value.events,
        "languages": _counts_to_json(value.languages),
        "tools": _counts_to_json(value.tools),
        "stages": _counts_to_json(value.stages),
        "hours": _counts_to_json(value.hours),
        "preferences": [
            {"text": item.text, "count": item.count, "evidence": list(reversed(item.evidence))}
            for item in value.preferences
        ],
        "sourceWatermark": watermark,
    }


def instincts_to_json(
    values: Iterable[ScoredInstinct], watermark: int, lessons: Mapping[str, Sequence[HintJson]]
) -> InstinctsJson:
    """`lessons`: those of each instinct, by its id."""
    instincts = [_instinct_to_json(one, lessons.get(one.instinct_id, ())) for one in values]
    return {"instincts": instincts, "sourceWatermark": watermark}


def report_to_json(value: Report, form: Literal["markdown", "html"], language: Language) -> ReportJson:
    text = render.render_html(value, language) if form == "html" else render.render_markdown(value, language)
    return {"format": form, "text": text, "sourceWatermark": value.source_watermark}


def _instinct_to_json(value: ScoredInstinct, lessons: Sequence[HintJson]) -> InstinctJson:
    return {
        "instinctId": value.instinct_id,
        "kind": cast("Literal['correct', 'keep', 'fails']", value.kind),
        "text": value.text,
        "stage": value.stage,
        "projectId": value.project_id,
        "status": cast("Literal['promoted', 'candidate', 'retired']", value.status),
        "confidence": value.confidence,
        "count": value.count,
        "lastAt": timestamp(from_unix_ms(value.last_at_ms)),
        "evidence": list(reversed(value.supporting_events)),
        "against": list(reversed(value.opposing_events)),
        "lessons": list(lessons),
    }


def _steps_to_json(values: Sequence[NextStep]) -> list[StepJson]:
    return [
        {"step": value.step, "share": value.share, "count": value.count, "evidence": list(value.evidence)}
        for value in values
    ]


def _counts_to_json(values: Iterable[tuple[str, int]]) -> list[CountJson]:
    return [{"name": name, "count": count} for name, count in values]
