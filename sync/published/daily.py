"""What `daily/*` and `memory/command` answer."""

from typing import Any, Literal, NotRequired, TypedDict

from sync.published.recall import HitJson

DailyMarkJson = Literal["important", "outdated", "reviewed", "expired"]


class DailyCodeJson(TypedDict):
    language: str
    text: str


class DailyRecordJson(TypedDict):
    """What is kept of one session. `quality` is that of the summary, 0 to 1; null where a hand wrote it."""

    id: str
    date: str
    time: str
    session: int
    topic: str
    facts: list[str]
    code: list[DailyCodeJson]
    tags: list[str]
    marks: list[DailyMarkJson]
    quality: float | None
    author: Literal["extractive", "caller", "hand"]
    sessionId: str | None
    projectId: str
    projectPath: str | None
    deviceId: str


class DailyOutcomeJson(TypedDict):
    """`eventId` is the deed, for `daily/undo`; `reason` says why there is none."""

    record: DailyRecordJson | None
    reason: str | None
    eventId: str | None


class DailyRecordsJson(TypedDict):
    records: list[DailyRecordJson]


class DailyPageJson(TypedDict):
    """`text` is the page; empty where the day has none."""

    date: str
    text: str
    records: list[DailyRecordJson]


class DailyQuestionJson(TypedDict):
    record: DailyRecordJson
    why: Literal["outdated", "doubtful", "old"]
    text: str


class DailyReviewJson(TypedDict):
    """`due`: whether it is time to ask."""

    due: bool
    questions: list[DailyQuestionJson]


class DailyFoldJson(TypedDict):
    into: str
    topic: str
    folded: list[str]


class DailyMergedJson(TypedDict):
    dryRun: bool
    folds: list[DailyFoldJson]


class DailyCleanedJson(TypedDict):
    dryRun: bool
    records: list[DailyRecordJson]


class DailyConfigJson(TypedDict):
    """`options` as they hold; `problem` where the file cannot be read, so that the defaults hold."""

    path: str
    options: dict[str, Any]
    problem: str | None


class DailyStatusJson(TypedDict):
    """`notices`: pages that were left as they are, and why."""

    records: int
    days: int
    today: int
    due: int
    reviewDue: bool
    home: str
    notices: dict[str, str]


class CommandJson(TypedDict):
    """`command` is null where the message is none; `recall`: whether the memory should be asked for it.

    `message` is for the person, in the language of the command. What else there is depends on the command.
    """

    command: Literal["save", "skip", "sensitive", "search", "show", "delete", "clean", "settings", "undo"] | None
    done: bool
    message: str
    recall: bool
    records: NotRequired[list[DailyRecordJson]]
    hits: NotRequired[list[HitJson]]
    page: NotRequired[str]
    config: NotRequired[DailyConfigJson]
    eventId: NotRequired[str | None]
