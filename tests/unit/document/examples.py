"""Documents in the format of the original app, and shorthands the document's tests share."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from sync.document.markdown.edits import NewExchange, insert_exchanges
from sync.document.markdown.model import Snapshot, Version
from sync.document.markdown.parse import parse

NOW = datetime(2026, 1, 8, 15, 49, 12, tzinfo=UTC)

FULL = """\
# AI 对话记忆

## 用户偏好

### 工作习惯
- （待补充）

### 沟通风格
- （待补充）

### 技术偏好
- （待补充）

---

## 重要对话记录

### 2026/1/8
- 用户问：上次说到哪里了
- AI 答：我先看看之前的记录...

- 用户问：这台机器的编号是什么
- AI 答：编号来自硬件，不会变...

### 2026/1/7
- 用户问：启动太慢怎么办
- AI 答：可以缩短启动画面的时间...

---

## 常用操作

### 日常任务
- （待补充）

### 常用命令
- （待补充）

---

**最后更新**：2026/1/8 15:49:12
"""

SHORT = "# AI 对话记忆\n## 用户偏好\n- （待补充）\n## 重要对话记录\n- （待补充）\n## 常用操作\n- （待补充）"


def snapshot_of(text: str) -> Snapshot:
    """The snapshot of a text; its entries are called e0, e1…"""
    document = parse(text.encode())
    return Snapshot(document, tuple(f"e{at}" for at in range(len(document.entries))))


def with_exchange(
    snapshot: Snapshot, day: str, question: str, answer: str, ids: tuple[str, str] = ("q", "a")
) -> Snapshot:
    return insert_exchanges(snapshot, [NewExchange(ids, day, question, answer)])


def text_of(snapshot: Snapshot) -> str:
    return snapshot.document.data.decode()


def version(number: int, snapshot: Snapshot) -> Version:
    return Version.of(number, snapshot)


def numbered(prefix: str = "n") -> Callable[[], str]:
    """A source of ids: n1, n2…"""

    def count() -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"{prefix}{number}"

    ids = count()
    return lambda: next(ids)
