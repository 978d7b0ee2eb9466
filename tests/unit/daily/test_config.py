"""The folder's own options."""

from typing import Any

import pytest

from sync.daily import config
from sync.errors import InvalidInput


class TestConfig:
    def test_the_seed_s_own_file_with_its_comments_holds_the_defaults(self) -> None:
        text = """{"version": "1.0", // a comment
          "storage": {"location": "project-first", "retention_days": 90, "max_file_size_mb": 10},
          "recording": {"auto_save": true, "min_conversation_length": 3}, "note": "https://kept"}"""
        value, raw = config.parse_config(text)
        assert value == config.DEFAULT_CONFIG
        assert raw["note"] == "https://kept"

    def test_one_option_is_changed_and_what_is_not_known_stays(self) -> None:
        raw = config.with_option({"future": 1, "recording": {"x": 2}}, "recording.auto_save", value=False)
        assert raw == {"future": 1, "recording": {"x": 2, "auto_save": False}}
        assert not config.parse_config(config.to_text(raw))[0].recording.auto_save

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("nothing.of_it", 1),
            ("version", "2"),
            ("storage.location", "elsewhere"),
            ("recording.auto_save", "maybe"),
            ("retrieval.max_results", 0),
            ("retrieval.time_decay_rate", 2),
        ],
    )
    def test_what_is_no_option_or_no_value_is_refused_by_name(self, option: str, value: Any) -> None:
        with pytest.raises(InvalidInput):
            config.with_option({}, option, value)

    @pytest.mark.parametrize("text", ["{", "[]", '{"storage": {"location": 1}}', "[" * 100_000])
    def test_an_invalid_file_is_refused_with_a_reason(self, text: str) -> None:
        with pytest.raises(InvalidInput):
            config.parse_config(text)
