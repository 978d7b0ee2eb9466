"""How labelled messages are judged."""

import json
from pathlib import Path

import pytest

from tests.bench.bench_understanding import Tally, judge_row, main


def judge(row: dict[str, object]) -> Tally:
    tally = Tally()
    judge_row(row, tally)
    return tally


@pytest.mark.parametrize(
    "row",
    [
        {"message": "我对花生过敏", "expect": [{"statement": "对花生过敏", "kind": "constraint"}], "class": "positive"},
        {
            "message": "我对花生过敏",
            "importance": "high",
            "spans": [{"text": "我对花生过敏", "owner": "user", "lasting": True, "kind": "constraint"}],
        },
    ],
)
def test_both_forms_of_labels_are_judged_alike(row: dict[str, object]) -> None:
    tally = judge(row)

    assert tally.ratio("expected") == tally.ratio("expected active") == tally.ratio("kind") == 1
    assert tally.counts["expected"] == tally.counts["extracted right"] == 1


def test_of_an_unlabelled_message_what_is_read_is_wrong() -> None:
    tally = judge({"message": "我对花生过敏", "class": "chat"})

    assert (tally.counts["neutral"], tally.counts["neutral certain"], tally.ratio("quiet")) == (1, 1, 0)


def test_a_share_has_its_standard_error_and_lower_bound() -> None:
    tally = Tally()
    for right in (True, True, True, False):
        tally.note("kind", right, "")

    assert tally.share("kind") == "0.750 ± 0.217, at least 0.433 (3 of 4)"


def test_the_report_says_what_was_fitted_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"message": "hello there"}, {"messages": ["我住在杭州"], "stay": ["住在杭州"], "end": [], "never": []}]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")

    assert main([str(tmp_path)]) == 0

    printed = capsys.readouterr().out
    assert "fitted on: tests/data/statements/zh.jsonl" in printed
    assert "wrong in 1,000 of 1 neutral messages" in printed
    assert "changes right: 1.000" in printed


def test_a_folder_without_labelled_rows_is_an_error(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
