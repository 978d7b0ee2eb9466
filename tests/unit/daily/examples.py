"""Records, a page and a conversation that tests of the daily record share."""

from typing import Any

from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import Code, Content, Record, normalised_content

DAY = "2026-01-29"


SEED = """# 2026-01-29 对话记忆

## Session 1 - 10:30:45

### 主题
Memory Skill 设计讨论

### 关键信息
- 用户希望创建长期记忆功能
- 存储位置：.cursor/skills/memories/

### 代码/配置
```json
{
  "storage": "project-first",
  "auto_save": true
}
```

### 标签
#skill #memory #design

---

## Session 2 - 14:20:00

### 主题
重构
"""


FIRST = Content(
    "Memory Skill 设计讨论",
    ("用户希望创建长期记忆功能", "存储位置：.cursor/skills/memories/"),
    (Code("json", '{\n  "storage": "project-first",\n  "auto_save": true\n}'),),
    ("skill", "memory", "design"),
)


KNOWN = ("rec_1", "rec_2")


def record(number: int = 1, topic: str = "题目", *, day: str = DAY, **more: Any) -> Record:
    values: dict[str, Any] = {
        "record_id": f"rec_{day}_{number}",
        "event_id": f"evt_{number}",
        "date": day,
        "time": f"10:{number:02}:00",
        "number": number,
        "content": more.pop("content", None) or normalised_content(topic, more.pop("facts", ())),
        "project_id": "proj_global",
        "project_path": None,
        "device_id": "device-a",
    }
    return Record(**{**values, **more})


def talk(*said: str) -> list[SummaryTurn]:
    """What a person and a model said in turn."""
    return [SummaryTurn("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(said)]
