"""`redact` and `redaction/check`: what the rules would do, without doing it; and doing it, whole or not at all."""

import json
import stat
from pathlib import Path

import pytest

from tests.sidecar import Home, Sidecar

PHONE = "138" + "00138000"
TEXT = f"\ufeff电话 {PHONE}\r\n另一个 {PHONE}，邮箱 li_si@example.com\r\n工号 A-17 也去掉\r\n"
CLEAN = "\ufeff电话 [手机号]\r\n另一个 [手机号]，邮箱 [邮箱]\r\n工号 [自定义] 也去掉\r\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a", REDACTION__PATTERNS=json.dumps(["工号 (A-[0-9]+)"]))


@pytest.fixture
def notes(home: Home) -> Path:
    notes = home.folder / "notes.md"
    notes.write_bytes(TEXT.encode())
    notes.chmod(0o640)
    return notes


def test_a_dry_run_counts_by_kind_and_changes_nothing(home: Home, notes: Path) -> None:
    told = home.json("redact", str(notes))

    assert told["counts"] == {"手机号": 2, "邮箱": 1, "自定义": 1}
    assert (told["total"], told["written"]) == (4, None)
    assert notes.read_bytes() == TEXT.encode()
    shown = home.run("redact", str(notes)).stdout
    assert "什么也没有改动" in shown
    assert PHONE not in shown


def test_the_text_without_it_goes_into_another_file(home: Home, notes: Path) -> None:
    out = home.folder / "clean.md"

    assert home.json("redact", str(notes), "--write", str(out))["written"] == str(out)

    assert out.read_bytes() == CLEAN.encode()
    assert notes.read_bytes() == TEXT.encode()


def test_in_place_keeps_the_mode_and_every_other_byte(home: Home, notes: Path) -> None:
    home.run("redact", str(notes), "--in-place")

    assert notes.read_bytes() == CLEAN.encode()
    assert stat.S_IMODE(notes.stat().st_mode) == 0o640
    assert [path.name for path in home.folder.iterdir() if path.name.startswith(".notes")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["notes.md", "--write", "clean.md", "--in-place"],
        ["--log", "notes.md"],
        ["--log", "--write", "clean.md"],
        ["--log", "--in-place"],
    ],
    ids=" ".join,
)
def test_what_would_leave_out_a_part_of_what_was_asked_is_refused(
    home: Home, notes: Path, arguments: list[str]
) -> None:
    given = [str(home.folder / one) if one.endswith(".md") else one for one in arguments]

    ended = home.run("redact", *given, check=False)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert notes.read_bytes() == TEXT.encode()
    assert not (home.folder / "clean.md").exists()


def test_standard_input_is_filtered_and_the_counts_stay_out_of_it(home: Home) -> None:
    filtered = home.run("redact", "-", stdin=f"电话 {PHONE}")

    assert filtered.stdout == "电话 [手机号]"
    assert "手机号 1" in filtered.stderr
    assert home.json("redact", "-", stdin=f"电话 {PHONE}")["text"] == "电话 [手机号]"


@pytest.mark.parametrize(("name", "data"), [("gone.md", None), ("gb.md", "电话".encode("gb18030"))])
def test_what_cannot_be_read_is_reported_and_left_alone(home: Home, name: str, data: bytes | None) -> None:
    path = home.folder / name
    if data is not None:
        path.write_bytes(data)

    ended = home.run("redact", str(path), "--in-place", check=False)

    assert ended.returncode == 2
    assert name in ended.stderr
    assert not path.exists() if data is None else path.read_bytes() == data


def test_a_bad_pattern_is_named_before_anything_starts(home: Home, notes: Path) -> None:
    home.settings["REDACTION__PATTERNS"] = json.dumps(["(?=x)"])

    ended = home.run("redact", str(notes), check=False)

    assert ended.returncode == 1
    assert "redaction.patterns" in ended.stderr


def test_a_client_can_ask_what_would_be_kept_of_a_text(home: Home) -> None:
    with Sidecar(home) as sidecar:
        told = sidecar.call("redaction/check", text=f"打 {PHONE}")

    assert told == {"text": "打 [手机号]", "counts": {"手机号": 1}, "total": 1}
