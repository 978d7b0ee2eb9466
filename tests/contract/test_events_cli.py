"""The event store's command line answers byte for byte as it did."""

from pathlib import Path

from tests.contract.events_cli_transcript import FILE, transcript


def test_the_conversation_of_seed_002_is_what_it_was(tmp_path: Path) -> None:
    """To accept an intended change: python -m tests.contract.events_cli_transcript."""
    assert transcript(tmp_path) == FILE.read_text("utf-8")
