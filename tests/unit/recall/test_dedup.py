"""One hit for near copies."""

from sync.recall.dedup import deduplicate
from tests.unit.recall.examples import hit


def test_near_duplicates_are_folded_but_no_other_word_is() -> None:
    same = [hit(1, "买了苹果。"), hit(2, "买了苹果！", kind="message"), hit(3, "买了苹果 5 斤", kind="message")]
    assert [(one.item.item_id, one.duplicate_event_ids) for one in deduplicate(same)] == [(1, ("evt_2",)), (3, ())]
    long = "把部署脚本改成先跑迁移再重启服务"
    cut = [hit(1, long, kind="message"), hit(2, long[:13] + "...", kind="exchange")]
    assert len(deduplicate(cut)) == 1
    assert len(deduplicate([hit(1, "买了苹果"), hit(2, "买了苹果")])) == 2
    assert len(deduplicate([hit(1, "买了苹果"), hit(2, "买了苹果")], same_kind_too=True)) == 1
