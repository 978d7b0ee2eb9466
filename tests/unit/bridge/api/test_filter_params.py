"""Times and projects as callers write them."""

from datetime import datetime, timedelta

import pytest

from bridge.api.filter_params import resolve_project_id, since_ms, until_ms
from bridge.cli.arguments import folder_option, project_option
from sync.clock import to_unix_ms
from sync.errors import InvalidInput
from sync.log.model import project_id_for
from tests.support import CHINA, FixedClock

CLOCK = FixedClock(datetime(2026, 2, 4, 9, 0, tzinfo=CHINA))
MIDNIGHT = to_unix_ms(datetime(2026, 2, 4, tzinfo=CHINA))


def test_a_day_is_meant_from_its_beginning_to_its_end() -> None:
    assert since_ms("2026-02-04", CLOCK) == MIDNIGHT
    assert until_ms("2026-02-04", CLOCK) == MIDNIGHT + timedelta(1) // timedelta(milliseconds=1)


def test_a_time_is_that_time_and_nothing_is_no_bound() -> None:
    assert since_ms("2026-02-04T00:00:00+08:00", CLOCK) == until_ms("2026-02-03T16:00:00Z", CLOCK) == MIDNIGHT
    assert (since_ms(None, CLOCK), until_ms(None, CLOCK), until_ms("9999-12-31", CLOCK)) == (None, None, None)


@pytest.mark.parametrize("wrong", ["soon", "2026-02-30", "2026-02-04T10:00"])
def test_what_is_neither_is_refused_by_name(wrong: str) -> None:
    with pytest.raises(InvalidInput) as since:
        since_ms(wrong, CLOCK)
    with pytest.raises(InvalidInput) as until:
        until_ms(wrong, CLOCK)
    assert (since.value.field, until.value.field) == ("since", "until")


def test_a_malformed_day_is_refused_with_the_right_format() -> None:
    for wrong in ("2026-02-31", "soon"):
        with pytest.raises(InvalidInput, match="write it as 2026-02-02, or"):
            since_ms(wrong, CLOCK)
    with pytest.raises(InvalidInput, match="no time zone"):
        since_ms("2026-02-04T10:00", CLOCK)


def test_a_path_is_a_project_of_its_own_name_and_an_id_is_one_already() -> None:
    assert resolve_project_id("/home/me/app") == project_id_for("/home/me/app")
    assert (resolve_project_id("proj_1"), resolve_project_id(None)) == ("proj_1", None)


def test_on_the_command_line_a_folder_has_one_name_wherever_a_command_is_given(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("app")
    monkeypatch.chdir(here)
    assert {folder_option(name) for name in (".", str(here), f"{here}/", f"../{here.name}")} == {str(here)}
    assert {project_option(name) for name in (".", "./", f"../{here.name}")} == {str(here)}
    assert folder_option("src") == str(here / "src")
    assert (project_option("proj_1"), project_option(None), folder_option(None)) == ("proj_1", None, None)
    assert folder_option("") is None
