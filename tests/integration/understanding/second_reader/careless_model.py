"""A language model that knows the labels and answers as real models do, behind an HTTP API.

`python -m` this module with labelled files: what the product makes of their messages with it. It says every labelled
statement, and as many inventions, and doubts what was read beside them. Its answers have prose, fences, thoughts and
lists around them, or are cut off; a third of its operations have a field in another form.
"""

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from sync.db.engine import Transaction
from sync.log.model import AppendResult, EventDraft, Origin
from sync.understanding.capture import fact_extractor
from sync.understanding.model import FactStatus
from sync.understanding.projection import FactProjection
from sync.understanding.second_reader.api_model import ApiModel
from sync.understanding.second_reader.model_extraction import ModelExtraction
from tests.bench.bench_understanding import is_same_text
from tests.support import REDACTOR, Device, new_server, open_device

COMPLETION: Final = {"choices": [{"message": {"content": "{}"}}], "usage": {"total_tokens": 7}}
Row = dict[str, Any]


class FakeApi(ThreadingHTTPServer):
    """Answers every request with `answer`, or with what it returns for the request, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.answer: Any = COMPLETION
        self.refused_fields: tuple[str, ...] = ()
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        api = self.server
        assert isinstance(api, FakeApi)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api.requests.append((self.path, self.headers["Authorization"], body))
        is_refused = any(name in json.dumps(body) for name in api.refused_fields)
        answer = api.answer(body) if callable(api.answer) else api.answer
        answer = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(400 if is_refused else api.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[FakeApi]:
    """An API of a language model on this machine."""
    with FakeApi() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class CarelessModel:
    """Answers an API's requests from labels: the statements of each message."""

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.labels = labels
        self.invented: set[str] = set()
        self.asked = 0

    def __call__(self, body: Mapping[str, Any]) -> Any:
        content = json.loads(body["messages"][-1]["content"])
        operations = [one for event in content["events"] for one in self._operations(event, content["known_facts"])]
        self.asked += 1
        spoiled = [_spoiled(one, number) for number, one in enumerate(operations)]
        return {"choices": [{"message": {"content": _wrapped(spoiled, self.asked)}}], "usage": {"total_tokens": 9}}

    def _operations(self, event: Row, known: Sequence[Row]) -> Iterator[Row]:
        event_id, typed = event["event_id"], event["typed"]
        said = self.labels.get(typed, ())
        for fact in known:
            if fact["statement"] in typed and not any(is_same_text(fact["statement"], one) for one in said):
                yield {"op": "not_a_fact", "event_ids": [event_id], "quote": "", "fact_id": fact["fact_id"]}
        invented = [f"{text}，常常如此" for text in said] or ["我叫王小明", "I live in Timbuktu"]
        self.invented.update(invented)
        for quote in (*said, *invented):
            yield {"op": "add", "event_ids": [event_id], "quote": quote, "kind": "knowledge", "negative": False}


def _spoiled(operation: Row, number: int) -> Row:
    """Every third operation has one field in another form."""
    quote, ids = operation["quote"], operation["event_ids"]
    faults: list[Row] = [
        {"kind": "health", "section": "个人情况"},
        {"kind": None, "section": None, "negative": None, "fact_id": None, "valid_until": "next month"},
        {"event_ids": ids[0]},
        {"event_ids": None, "event_id": ids[0]},
        {"op": "ADD"},
        {"quote": quote + "。"},
        {"quote": f" “{quote}” "},
        {"quote": quote.replace("，", ",").replace("'", "’")},
        {"quote": "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in quote)},
        {"quote": quote.upper()},
        {"quote": "  ".join(quote.split(" "))},
    ]
    return operation if number % 3 else operation | faults[number // 3 % len(faults)]


def _wrapped(operations: Sequence[Row], number: int) -> str:
    """An answer in one of the forms in which models give it."""
    whole = json.dumps({"operations": operations}, ensure_ascii=False)
    lines = [json.dumps(one, ensure_ascii=False) for one in operations]
    forms = [
        whole,
        f"Sure! Here are the operations:\n```json\n{whole}\n```\nLet me know if {{x}} is unclear [1].",
        f'<think>The user says {{x}}. Draft: {{"op": "add", "event_ids": [], "quote": "nonsense"}}</think>\n{whole}',
        f"[{', '.join(lines)}]",
        "\n".join(lines),
        f'{{"operations": [{", ".join(lines)},]}}',
        json.dumps({"result": {"operations": operations}}, indent=2),
        whole[: len(whole) - len(lines[-1]) // 2],
    ]
    return forms[number % len(forms)]


@dataclass(slots=True)
class Score:
    """What became of labelled statements: of each whether it was found, of each reading whether it is right."""

    wrong: list[str] = field(default_factory=list)
    wanted: list[bool] = field(default_factory=list)
    active: list[bool] = field(default_factory=list)
    candidates: list[bool] = field(default_factory=list)

    def __str__(self) -> str:
        parts = (("recall", self.wanted), ("active right", self.active), ("candidates right", self.candidates))
        return ", ".join(f"{name} {sum(of) / max(1, len(of)):.3f} of {len(of)}" for name, of in parts)


def labels_of(row: Row) -> list[str]:
    """The lasting statements of the user in a labelled message."""
    spans = row.get("spans", ())
    lasting = [one["text"] for one in spans if one["owner"] == "user" and one["lasting"]]
    return lasting or [one["statement"] for one in row.get("expect", ())]


async def measure(device: Device, rows: Sequence[Row], api: FakeApi) -> tuple[Score, CarelessModel]:
    """Let the product and the model read these messages."""
    api.answer = model = CarelessModel({row["message"]: labels_of(row) for row in rows})
    extraction = ModelExtraction(device.log, REDACTOR, FactProjection(), device.clock)
    extraction.offer(ApiModel(api.url, "careless", lambda: None), source="api", max_calls_per_day=100_000)
    of_event: dict[str, Row] = {}
    for number, row in enumerate(rows):
        of_event[await _say(device, extraction, row["message"])] = row
        if number % 20 == 0:
            await extraction.ask()
    while (await extraction.status()).waiting:
        await extraction.ask()
    facts = await device.database.read(FactProjection().read)
    score = Score()
    for event_id, row in of_event.items():
        read = [one for one in facts.facts if event_id in one.evidence]
        texts = {status: [one.statement for one in read if one.status is status] for status in FactStatus}
        found = [*texts[FactStatus.ACTIVE], *texts[FactStatus.CANDIDATE], *texts[FactStatus.SUPERSEDED]]
        labels = labels_of(row)
        score.wanted += [any(is_same_text(text, one) for text in found) for one in labels]
        score.wrong += [f"MISSED {one}" for one in labels if not any(is_same_text(text, one) for text in found)]
        for text in texts[FactStatus.ACTIVE]:
            score.wrong += [] if any(is_same_text(text, one) for one in labels) else [f"ACTIVE {text}"]
        score.active += [any(is_same_text(text, one) for one in labels) for text in texts[FactStatus.ACTIVE]]
        score.candidates += [any(is_same_text(text, one) for one in labels) for text in texts[FactStatus.CANDIDATE]]
    return score, model


async def _say(device: Device, extraction: ModelExtraction, message: str) -> str:
    payload = REDACTOR.clean_payload({"question": message, "answer": "好"})
    add_facts = fact_extractor(message, REDACTOR, device.clock)

    def build(connection: Transaction) -> list[EventDraft]:
        return add_facts(connection, [EventDraft("exchange_recorded", payload, origin=Origin.MODEL)])

    def keep(connection: Transaction, recorded: Sequence[AppendResult]) -> None:
        extraction.add(connection, recorded[0].event)

    recorded, _ = await device.log.append_and_count(build, keep)
    return recorded[0].event.event_id


async def main(paths: Sequence[Path]) -> None:
    """Print the figures of each labelled file."""
    for path in paths:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        with tempfile.TemporaryDirectory() as folder, serving() as api:
            async with open_device(Path(folder), new_server(), single_threaded=True) as device:
                score, _ = await measure(device, rows, api)
        print(f"{path.parent.name}/{path.name}: {score}", *score.wrong, sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main([Path(one) for one in sys.argv[1:]]))
