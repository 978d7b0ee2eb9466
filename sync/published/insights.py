"""What `insights/*` answers. Evidence is ids of events, newest first."""

from typing import Literal, TypedDict


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
    """`kind` correct: a user's correction; keep: what was approved; fails: a tool call that goes wrong."""

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


class InstinctsJson(TypedDict):
    instincts: list[InstinctJson]
    sourceWatermark: int


class ReportJson(TypedDict):
    """`text` is the whole document."""

    format: Literal["markdown", "html"]
    text: str
    sourceWatermark: int
