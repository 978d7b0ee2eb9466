"""Hostile events of coding agents: a sample."""

from pathlib import Path

from tests.fuzz.hook_input import HOOKS


async def test_no_event_of_a_host_stops_a_hook_and_the_sidecar_accepts_what_is_sent(tmp_path: Path) -> None:
    await HOOKS.probe(tmp_path)
