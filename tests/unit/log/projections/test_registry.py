"""Every row of `watermarks` is an offset of a projection, local state, or an offset of another program."""

import ast
from typing import Final

import pytest

from sync.db.schema import RECOVERY_STARTED, VERSION_ON_DISK
from sync.log import local_state
from sync.log.event_catalogue import EVENT_TYPES
from sync.log.event_types import MESSAGE, TOOL_CALL
from sync.log.local_state import is_local_state, rules_name
from sync.log.projections.registry import DAILY, INSIGHTS, PROJECTIONS, RECALL, ProjectionEntry, projection_of
from tests.support import REPOSITORY, event

DEVICE: Final = "device-a"


def test_no_projection_has_the_name_of_local_state() -> None:
    assert [name for name in PROJECTIONS if is_local_state(name)] == []
    assert PROJECTIONS.keys() == {entry.name for entry in PROJECTIONS.values()}


@pytest.mark.parametrize("name", [RECOVERY_STARTED, VERSION_ON_DISK, rules_name(RECALL.name), "document.order"])
def test_versions_flags_and_counters_are_local_state(name: str) -> None:
    assert is_local_state(name)


def test_an_unknown_name_is_a_program_that_reads_every_event() -> None:
    entry = projection_of("dashboard")
    assert (entry, is_local_state("dashboard")) == (ProjectionEntry("dashboard"), False)
    assert entry.reads(event(1, type=TOOL_CALL, device="device-b"), DEVICE)


def test_daily_records_read_the_conversations_of_their_own_device() -> None:
    assert DAILY.reads(event(1, type=MESSAGE), DEVICE)
    assert not DAILY.reads(event(1, type=TOOL_CALL), DEVICE)
    assert not DAILY.reads(event(1, type=MESSAGE, device="device-b"), DEVICE)


def test_projections_read_only_types_of_the_catalogue() -> None:
    assert {name for entry in PROJECTIONS.values() for name in entry.event_types} <= EVENT_TYPES.keys()


def test_no_other_module_spells_the_name_of_a_row() -> None:
    rows = {name for name in PROJECTIONS if "." in name} | {
        value for name, value in vars(local_state).items() if name.isupper() and isinstance(value, str)
    }
    homes = {"sync/log/local_state.py", "sync/log/projections/registry.py", "sync/db/schema.py"}
    spelled = {
        f"{path}: {node.value}"
        for file in (REPOSITORY / "sync").rglob("*.py")
        if (path := str(file.relative_to(REPOSITORY))) not in homes
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in rows
    }
    assert spelled == set()


def test_insights_keep_their_offset_elsewhere_so_retention_does_not_wait_for_them() -> None:
    assert not INSIGHTS.delays_retention
