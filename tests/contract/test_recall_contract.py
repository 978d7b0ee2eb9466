"""The JSON of recall, pinned value for value, and as its published types say."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from sync.context.model import Candidate, Outcome, Reason, TurnContext
from sync.contract import recall as contract
from sync.contract.recall import ContextJson, SearchJson
from sync.log.authorship import Author, Authorship
from sync.recall.model import Hit, ScoreParts, SearchResult, StoredItem, TalkPart
from sync.recall.relevance.calibration import ItemEvidence

FILE: Final = Path(__file__).with_name("golden") / "recall.json"
KEPT: Final = StoredItem(
    item_id=12,
    event_id="evt_1",
    entry_id="ent_a",
    kind="entry",
    text="早上喝绿茶",
    date="2026-01-08",
    ts="2026-01-08T07:49:12.000Z",
    ts_ms=1_767_858_552_000,
    project_id="proj_global",
    project_path=None,
    session_id="sess_1",
    device_id="device-a",
    origin="user-typed",
    written=Authorship(Author.USER, "device-a", "hand"),
    importance=0.5,
    marks=("important",),
)
OWN: Final = ("device-a",)
HITS: Final = (
    Hit(
        KEPT,
        0.123456,
        ScoreParts(1.0, 0.5, 0.25, 1.25),
        ("以前呢", "以后呢"),
        ("evt_2",),
        talk_parts=(TalkPart("evt_3", "daily", "早上的习惯"),),
        relevance=0.71234567,
        evidence=ItemEvidence(2.5, 0.5, {"usem3": 0.4}),
    ),
    Hit(KEPT, 0.1, ScoreParts(1.0, None, 0.25, 1.0)),
)
SAMPLES: Final[dict[str, tuple[Any, type]]] = {
    "search": (
        contract.search_to_json(SearchResult(HITS, "used", 1_767_858_552_000, None, includes_old=False), OWN),
        SearchJson,
    ),
    "superseded": (contract.search_to_json(SearchResult(HITS[1:], "off"), OWN, {KEPT.item_id}), SearchJson),
    "nothing": (contract.search_to_json(SearchResult((), "off", None, 2**62), OWN), SearchJson),
    "context": (contract.context_to_json(TurnContext("<memory-k3v9>…", HITS[:1]), OWN), ContextJson),
    "explained": (
        contract.context_to_json(
            TurnContext("", candidates=(Candidate(HITS[0], Reason.RELEVANT, 0.6, Outcome.BELOW_THRESHOLD),)),
            OWN,
            explain=True,
        ),
        ContextJson,
    ),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_json_is_what_it_was_and_what_its_type_says(name: str) -> None:
    """To accept an intended change: python -m tests.contract.test_recall_contract."""
    value, published = SAMPLES[name]
    assert json.loads(FILE.read_text("utf-8"))[name] == value
    assert msgspec.convert(value, published, strict=True) == value


if __name__ == "__main__":
    values = {name: value for name, (value, _) in SAMPLES.items()}
    FILE.write_text(json.dumps(values, ensure_ascii=False, indent=2, sort_keys=True) + "\n", "utf-8")
