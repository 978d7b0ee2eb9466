"""Many exchanges in one pass give the bytes and ids that one after another would."""

import pytest

from sync.document.markdown.edits import NewExchange, insert_exchange, insert_exchanges
from sync.document.markdown.model import Snapshot, encode
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document

SHORT = "# AI 对话记忆\n## 用户偏好\n- （待补充）\n## 重要对话记录\n- （待补充）\n## 常用操作\n- （待补充）"
BARE = "我自己的笔记\r\n\r\n没有标题\r\n"
OPEN_FENCE = "# AI 对话记忆\n\n```\n没有结束的代码\n"


def exchanges() -> list[NewExchange]:
    days = ["2026/1/8", "2026/1/8", "2026/1/9", "2026/1/7", "2026/1/9", "2025/12/31", "2026/1/8"]
    return [
        NewExchange((f"{number}.q", f"{number}.a"), day, f"问题 {number}\n## 不是标题", f"回答 {number}")
        for number, day in enumerate(days)
    ]


@pytest.mark.parametrize("text", [empty_document("2026/1/8 15:49:12").decode(), SHORT, BARE, OPEN_FENCE, ""])
def test_one_pass_is_the_same_as_one_after_another(text: str) -> None:
    document = parse(text.encode())
    start = Snapshot(document, tuple(f"old{number}" for number in range(len(document.entries))))
    step_by_step = start
    for new in exchanges():
        step_by_step = insert_exchange(step_by_step, ids=new.ids, day=new.day, question=new.question, answer=new.answer)
    at_once = insert_exchanges(start, exchanges())
    assert encode(at_once.document) == encode(step_by_step.document)
    assert at_once.ids == step_by_step.ids
    assert at_once.document == step_by_step.document
