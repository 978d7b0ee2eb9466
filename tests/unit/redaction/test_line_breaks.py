"""Which line breaks an accepted text has."""

from hypothesis import given
from hypothesis import strategies as st

from sync.redaction.line_breaks import with_line_feeds


@given(st.text())
def test_only_a_line_feed_ends_a_line_of_an_accepted_text(text: str) -> None:
    accepted = with_line_feeds(text)
    assert f"{accepted}.".splitlines() == f"{accepted}.".split("\n")
    assert with_line_feeds(accepted) == accepted


def test_every_text_of_a_payload_is_accepted_so_and_other_values_stay() -> None:
    payload = {"a": ["x\r\ny\rz", 1, None], "b": {"c": "p\u2028q\x1er"}}
    assert with_line_feeds(payload) == {"a": ["x\ny z", 1, None], "b": {"c": "p q r"}}
