"""One hit for a conversation that was kept in several ways."""

from sync.recall.model import TalkPart
from sync.recall.ranking.conversations import group_conversations
from tests.unit.recall.examples import hit

TALK = "讨论了 API 重构，决定使用 FastAPI"


def test_the_daily_record_of_an_exchange_is_a_part_of_it() -> None:
    exchange, record = hit(1, TALK, kind="exchange"), hit(2, "API 重构：决定使用 FastAPI", kind="daily")
    (grouped,) = group_conversations([exchange, record])
    assert grouped.item.item_id == 1
    assert grouped.talk_parts == (TalkPart("evt_2", "daily", "API 重构：决定使用 FastAPI"),)
    (turned,) = group_conversations([record, exchange])
    assert (turned.item.item_id, turned.talk_parts[0].kind) == (2, "exchange")


def test_what_says_something_else_stays_a_hit_of_its_own() -> None:
    one, two = hit(1, TALK, kind="exchange"), hit(2, "周末去黄山爬山", kind="exchange")
    assert len(group_conversations([one, two])) == 2, "two exchanges"
    assert len(group_conversations([one, hit(3, "周末去黄山爬山", kind="daily")])) == 2, "another conversation"
    assert len(group_conversations([one, hit(3, TALK, kind="daily", session_id="t")])) == 2, "another session"
    assert len(group_conversations([hit(1, TALK), hit(3, TALK, kind="daily")])) == 2, "a fact is no conversation"
