"""The versions of the rule sets, each with a digest of its answers on a golden log: `python -m tests.rule_versions`.

The command records `rule_versions.json`. A digest that moves although the number did not means that stored results
differ from what the rules give now, and nothing makes them again: raise the number, then record.
"""

import asyncio
import json
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sync.insights import state as insights
from sync.jsonl import projection as jsonl
from sync.lessons import projection as lessons
from sync.log.event_catalogue import DEVICE_LOCAL_TYPES, EVENT_TYPES, INTERNAL_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.model import Event, EventDraft, Query
from sync.recall.index import indexer
from sync.recall.index.extraction import index_changes
from sync.recall.text.tokenizer import index_terms
from sync.redaction import Redactor, redactor
from tests import redaction_corpus
from tests.property.redaction.test_redaction_examples import lines
from tests.support import REDACTOR, new_server, open_device
from tests.unit.lessons.lesson_tables import error_lesson

FILE: Final = Path(__file__).with_name("rule_versions.json")
SEED: Final = 7
CASES: Final = 400  # of each generated set
LESSON_TABLES: Final = ("lesson_items", "lesson_keys", "lesson_terms", "lesson_calls", "lesson_feedback")
_LESSON: Final = error_lesson(1, "No module named 'requests'", "pip install requests", error_type="ImportError")
_SAMPLES: Final[dict[str, Any]] = {
    "role": "user",
    "content": "以后都用 pnpm 安装依赖，React 组件写成函数",
    "details": {"command": "npm test", "file_path": "src/app.ts", "exit_code": 1},
    "fact_type": "preference",
    "feedback_type": "correction",
    "section": ["用户偏好", "工作习惯"],
    "tags": ["构建", "pnpm"],
    "facts": ["端口从 80 改成 8080"],
    "code": [{"language": "sh", "text": "docker compose up -d"}],
    "marks": ["important"],
    "date": "2026-02-02",
    "time": "10:00:00",
    "importance": 0.9,
    "tool": "Bash",
    "stage": "test",
    "success": False,
    "also_ids": ["evt_1"],
    "evidence": ["evt_1"],
}


def versions() -> dict[str, int]:
    """The number of each rule set."""
    return {
        "redaction": redactor.RULES_VERSION,
        "insights": insights.FORMAT,
        "recall": indexer.SCHEMA_VERSION,
        "lessons": lessons.RULES_VERSION,
        "jsonl": jsonl.FORMAT_VERSION,
    }


def digests() -> dict[str, str]:
    """The digest of each rule set's answers."""
    return asyncio.run(_digests())


def recorded() -> dict[str, dict[str, Any]]:
    """What the command stored."""
    stored: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return stored


def current() -> dict[str, dict[str, Any]]:
    """What the command would store."""
    found = digests()
    return {name: {"version": number, "digest": found[name]} for name, number in versions().items()}


async def _digests() -> dict[str, str]:
    with TemporaryDirectory() as folder:
        async with open_device(Path(folder) / "device", new_server(), single_threaded=True) as device:
            await device.log.append(_golden_log())
            events = list((await device.log.read(Query(limit=1_000))).events)
            await device.database.write(lambda connection: lessons.rebuild(connection, device.clock))
            tables = [await device.rows(f"select * from {name} order by 1, 2") for name in sorted(LESSON_TABLES)]
            files = jsonl.JsonlProjection(Path(folder) / "files", device.log)
            await files.rebuild(events[-1].position, None)
            found = sorted(path for path in files.root.rglob("*") if path.is_file())
            written = [(str(path.relative_to(files.root)), path.read_text("utf-8")) for path in found]
    return {
        "redaction": _digest(_redacted()),
        "insights": _digest(_insights(events)),
        "recall": _digest([(change, _terms(change)) for event in events for change in index_changes(event)]),
        "lessons": _digest(tables),
        "jsonl": _digest(written),
    }


def _golden_log() -> list[EventDraft]:
    """One event of each type that programs append, with samples in all its fields, and a lesson's life."""
    builder = DraftBuilder(REDACTOR, store_messages=True)
    values: list[dict[str, Any]] = []
    for name, kind in EVENT_TYPES.items():
        fields = {field.rstrip("?#").partition(".")[0] for field in kind.payload if " " not in field}
        payload = {field: _SAMPLES.get(field, f"{field} 的内容") for field in sorted(fields)}
        if name not in DEVICE_LOCAL_TYPES | INTERNAL_TYPES:
            values += [{"type": name, "payload": payload | ({"tags": ["构建"]} if "tags" in fields else {})}] * 2
    learned = {"lesson_id": _LESSON.lesson_id, "kind": "error", "source": "said", "content": _LESSON.content}
    values += [{"type": "lesson_learned", "payload": learned}]
    values += [{"type": "lesson_counted", "payload": {"lesson_id": _LESSON.lesson_id, "counter": "helped", "by": 1}}]
    values += [{"type": "of_tomorrow", "payload": {"text": "周末去黄山爬山 hiking at 8:30"}}]
    fixed = {"session_id": "s1", "ts": "2026-02-02T10:00:00.000Z", "local_date": "2026-02-02", "utc_offset": 480}
    return [builder.build({**value, **fixed, "event_id": f"evt_{at}"}) for at, value in enumerate(values)]


def _redacted() -> list[str]:
    corpus = redaction_corpus
    generated = [islice(cases(SEED), CASES) for cases in (corpus.readme, corpus.vendors, corpus.tokens, corpus.people)]
    texts = [*lines("secrets.txt"), *lines("look_alikes.txt"), *(case.text for case in chain(*generated))]
    cleaner = Redactor()
    return [cleaner.clean(text.replace("‹", "").replace("›", "")) for text in texts]


def _insights(events: list[Event]) -> bytes:
    state = insights.InsightsState()
    for event in events:
        state.apply(event)
    return insights.encode(state)


def _terms(change: object) -> list[str]:
    return index_terms(getattr(change, "text", ""))


def _digest(answers: object) -> str:
    return sha256(repr(answers).encode()).hexdigest()[:16]


if __name__ == "__main__":
    FILE.write_text(json.dumps(current(), indent=2) + "\n", "utf-8")
