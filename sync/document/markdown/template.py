"""The document of a new memory, and the titles of its sections."""

from typing import Final

from sync.document.markdown.model import Section

TITLE: Final = "AI 对话记忆"
PREFERENCES: Final = "用户偏好"
RECORDS: Final = "重要对话记录"
OPERATIONS: Final = "常用操作"
SECTIONS: Final = (PREFERENCES, RECORDS, OPERATIONS)  # in document order

WORK_HABITS: Final[Section] = (PREFERENCES, "工作习惯")
COMMUNICATION_STYLE: Final[Section] = (PREFERENCES, "沟通风格")
TECHNICAL_PREFERENCES: Final[Section] = (PREFERENCES, "技术偏好")
PREFERENCE_SECTIONS: Final = frozenset({WORK_HABITS, COMMUNICATION_STYLE, TECHNICAL_PREFERENCES})
DAILY_TASKS: Final[Section] = (OPERATIONS, "日常任务")
COMMON_COMMANDS: Final[Section] = (OPERATIONS, "常用命令")

PLACEHOLDER: Final = "- （待补充）"
SEPARATOR: Final = "---"
QUESTION_PREFIX: Final = "- 用户问："
ANSWER_PREFIX: Final = "- AI 答："


def footer_line(label: str) -> str:
    """The last line of the document, without a line ending."""
    return f"**最后更新**：{label}"


def empty_document(label: str) -> bytes:
    """An empty memory with `label` in its footer."""
    return f"""\
# {TITLE}

## {PREFERENCES}

### {WORK_HABITS[-1]}
{PLACEHOLDER}

### {COMMUNICATION_STYLE[-1]}
{PLACEHOLDER}

### {TECHNICAL_PREFERENCES[-1]}
{PLACEHOLDER}

{SEPARATOR}

## {RECORDS}

{PLACEHOLDER}

{SEPARATOR}

## {OPERATIONS}

### {DAILY_TASKS[-1]}
{PLACEHOLDER}

### {COMMON_COMMANDS[-1]}
{PLACEHOLDER}

{SEPARATOR}

{footer_line(label)}
""".encode()
