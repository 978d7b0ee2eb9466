"""Read what kind of message this is, from its words alone: small talk, about the user, about the past. Pure."""

import re
from functools import lru_cache
from typing import Final

import msgspec

from sync.recall.semantic.embedder import is_dense
from sync.recall.text.tokenizer import normalise
from sync.small_talk import is_small_talk

MAX_MENTIONS: Final = 4  # mentions of the user that count; more say no more

# In a request the user is no subject: 帮我, "tell me".
_REQUEST: Final = re.compile(
    r"(?:帮|给|替|为|告诉|教|跟|和|让)我(?:们)?|我们来|\b(?:tell|give|help|show|teach|let|remind) (?:me|us)\b",
    re.IGNORECASE,
)
_SELF: Final = re.compile(r"我|咱|\b(?:i(?!\s*[-+<>=;,)\]%])|i'm|i've|i'd|i'll|my|me|mine|we|our|us)\b", re.IGNORECASE)
_REFERS_TO_PAST: Final = re.compile(
    r"之前|上次|上回|上一次|昨天|前天|上周|上个?月|以前|曾经|那次|还记得|记不记得|记得(?:我|吗|上)"
    r"|(?:说|提|提到|讲|聊|谈|讨论|决定|约定|问|告诉|推荐|分享)过"
    r"|\b(?:last (?:time|week|month)|previous(?:ly)?|earlier|before|yesterday|remember|recall"
    r"|did (?:i|we)|have (?:i|we)|i (?:told|said|mentioned)"
    r"|we (?:talked|discussed|decided|agreed)|you (?:told|said|recommended|suggested))\b",
    re.IGNORECASE,
)
_STOPPED: Final = (
    r"(?:上次|上回|昨天|前天|之前|刚才)(?:我们)?(?:说|聊|做|谈|讲|讨论|写|改|弄|进行)?到?了?(?:哪里?|什么地方|什么进度)"
)
_CONTINUES: Final = re.compile(
    rf"^(?:我们|咱们|请|来|那|好|嗯|，|,| )*(?:继续|接着|接上)|{_STOPPED}"
    r"|从(?:上次|昨天|之前)(?:的|停)"
    r"|\b(?:continue|resume|pick up|carry on)\b.*\b(?:yesterday|last|previous|where|with|the|our|my)\b"
    r"|where (?:did we|were we|we) (?:leave|left|stop)",
    re.IGNORECASE,
)
_CONTINUATION_WORDS: Final = re.compile(
    rf"继续|接着|接上|{_STOPPED}了?|(?:上次|上回|昨天|前天|之前)的?|工作|\b(?:continue|resume|pick up|carry on|work)\b"
    r"|where (?:did we|were we|we) (?:leave|left|stop)\w*(?: off)?|\b(?:last time|yesterday|previous|off)\b",
    re.IGNORECASE,
)
_WORK_VERBS: Final = (
    "写 编写 实现 添加 新增 增加 加 做 开发 创建 新建 搭 搭建 设计 重构 修改 改 优化 生成 封装 补 部署 起草 整理"
)
_WORK_OBJECTS: Final = (
    "函数 方法 代码 脚本 程序 页面 组件 接口 模块 类 功能 服务 测试 用例 表单 列表 按钮 项目 应用 网站 后端 前端"
    " 数据库 表结构 查询 爬虫 插件 工具 提交 文档 邮件 周报 日报 报告 总结 方案 纪要 api demo sql"
)
_WORK_REQUEST: Final = re.compile(
    rf"(?:{_WORK_VERBS.replace(' ', '|')})[^。！？!?\n]{{0,24}}?(?:{_WORK_OBJECTS.replace(' ', '|')})"
    r"|\b(?:write|implement|add|create|build|make|develop|refactor|design|generate|set up|draft)\b[^.!?\n]{0,60}?"
    r"\b(?:function|method|code|script|program|page|component|endpoint|module|class|feature|service|tests?|form|button"
    r"|project|app|website|backend|frontend|database|query|crawler|plugin|tool|command|commit|docs?|documentation|e-?mail"
    r"|report|summary|api|cli|hook)\b",
    re.IGNORECASE,
)


class MessageSignals(msgspec.Struct, frozen=True):
    """What a message is like. `self_mentions`: how often the user speaks of themselves, at most `MAX_MENTIONS`."""

    is_small_talk: bool
    is_dense: bool
    self_mentions: int
    refers_to_past: bool
    continues: bool
    is_work_request: bool


@lru_cache(maxsize=64)
def read_signals(message: str) -> MessageSignals:
    """The signals of a message as the user typed it."""
    text = normalise(message)
    return MessageSignals(
        is_small_talk=is_small_talk(text),
        is_dense=is_dense(text),
        self_mentions=min(len(_SELF.findall(_REQUEST.sub("", text))), MAX_MENTIONS),
        refers_to_past=_REFERS_TO_PAST.search(text) is not None,
        continues=_CONTINUES.search(text) is not None,
        is_work_request=_WORK_REQUEST.search(text) is not None,
    )


def asks_for_memory(message: str, *, is_first: bool) -> bool:
    """Whether a message is the first of its session, or refers to the past."""
    signals = read_signals(message)
    return bool(message.strip()) and (is_first or signals.refers_to_past or signals.continues)


def without_continuation(message: str) -> str:
    """A message without the words that only say that it goes on with something: 继续, 上次说到哪, "continue with"."""
    return _CONTINUATION_WORDS.sub(" ", normalise(message))
