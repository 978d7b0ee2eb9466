"""Read what kind of message this is, from its words alone: small talk, about the user, about the past. Pure."""

import re
from functools import lru_cache
from typing import Final

import msgspec

from sync.recall.semantic.embedder import is_dense
from sync.recall.text.tokenizer import normalise

MAX_MENTIONS: Final = 4  # mentions of the user that count; more say no more
MAX_SMALL_TALK_CHARS: Final = 80  # a longer message has a subject

_SOCIAL_CHINESE: Final = """
你好 您好 大家好 哈喽 嗨 喂 早 早安 早上好 上午好 中午好 下午好 晚上好 晚安 好久不见 在吗 在不在
在么 有人吗 打扰 打扰了 打扰一下 问个问题 想问个问题 谢谢 谢啦 谢了 多谢 感谢 非常感谢 太感谢了 辛苦
辛苦了 麻烦 麻烦了 麻烦你了 不客气 没事 没关系 不好意思 抱歉 对不起 再见 拜拜 回见 回头见 明天见
下次见 下次聊 先这样 先到这儿 先到这里 就到这里 就这样 就这些 没有了 没了 不用了 不用 不需要了 可以停了
停 到此为止 好 好的 好滴 好嘞 好啊 好呀 好吧 好耶 好了 行 行吧 可以 可以的 可以了 嗯 嗯嗯 哦 噢
对 对的 对啊 是 是的 是啊 没错 不 不是 不对 不对吧 不行 不要 ok okay 收到 明白 明白了 知道
知道了 知道啦 了解 了解了 懂了 清楚了 记住了 没问题 当然 听起来不错 挺好 很好 真好 不错 太好了 太棒了
真棒 棒 厉害 厉害了 牛 妙 妙啊 优秀 完美 赞 继续 接着 接着说 接着写 往下说 往下写 然后 然后呢 还有
还有吗 下一个 下一步 再来 再来一个 再来一次 再说一遍 再讲一遍 重来 换一个 开始 开始吧 那开始吧 等 等等
等一下 稍等 别急 不着急 不用着急 慢慢来 一步一步来 从头来 哈 呵 嘿 嘻 哇 哇塞 啊 呀 哎 唉 咦 呃
嗯哼 啧 啧啧 嘛 啦 呢 吧 吗 了 的 呜 噗 笑死 笑死我了 绝了 原来如此 原来是这样 这样啊 是这样啊
真的 真的吗 真的假的 假的吧 不会吧 不可能吧 是吗 确实 确定吗 你确定吗 为什么 怎么会 怎么说 什么
什么意思 啥意思 听不懂 没听懂 没看懂 看不懂 完全没想到 没想到 太离谱了 离谱 离谱了 好家伙 天哪 天啊
我的天 我去 我晕 服了 无语 涨知识了 学到了 长见识了 有意思 有道理 好冷 好笑 敷衍 一般 一般般 还行
新年快乐 春节快乐 生日快乐 节日快乐 圣诞快乐 中秋快乐 周末愉快 祝你 祝您 你是谁 你是机器人吗 你是人吗
你叫什么 你叫什么名字 你会什么 你能做什么 今天过得怎么样 过得怎么样 怎么样 你呢 那 就 请 麻烦你 帮我
一下 哟 哒 哦哦 耶 嗯好 太 真 很 都 也 先 再 又
"""
_SOCIAL_PIECES: Final = sorted(set(_SOCIAL_CHINESE.split()), key=len, reverse=True)
_SMALL_TALK_CHINESE: Final = re.compile(f"(?:{'|'.join(map(re.escape, _SOCIAL_PIECES))})*")
_SOCIAL_ENGLISH: Final = frozenset(
    """
a about absolutely agreed ah aha all alright am amazing and another anything appreciate appreciated are awesome
awful back bad be bet better bingo bit both bravo brilliant but bye can cannot care carry catch cheers christmas
clear click clicks come confused continue cool correct could course crazy day definitely do does done easier easy
else enough even evening everything exactly excellent explain fair fantastic fine first for forget funny get glad go
god going good goodbye goodnight gosh got gotcha great guess ha haha hahaha happy have haven hello help here hey hi
hilarious hm hmm hold holidays hope how huh i if impressive in indeed interesting is it its joke just keep kidding
knew know later laugh learned let lol lost lot lovely luck makes many maybe me mean meant meh merry mine minute
moment more morning much nah neat never new next nice night no nope not nothing now of off oh ohh ok okay omg on
once one only ooh oops or other ought pardon perfect please pleasure pls point quite ready real really respect right
rofl say sec second see seems sense seriously shall short should show simpler sir slowly so some sorry sound sounds
stuff sup super sure surprise surprising sweet take talk tell thank thanks that the them then there these thing
things think third this though three thumbs thx time tired to today tomorrow tonight too true try twist two ty u ugh
um understand understood up very wait was way we week weekend welcome well were what whatever when whoa why will
wise wish with wonderful word works would wow wrong ya yay yeah year yep yes yet you your yours yup
""".split()
)
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
_MARKS: Final = re.compile(r"[\W_]+")
_LATIN_WORD: Final = re.compile(r"[a-z']+")


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


def is_small_talk(text: str) -> bool:
    """Whether a message has no subject: greetings, thanks, reactions, short commands; also marks and numbers alone."""
    if len(text) > MAX_SMALL_TALK_CHARS:
        return False
    folded = text.lower().replace("’", "'")
    words = _LATIN_WORD.findall(folded)
    rest = _MARKS.sub("", _LATIN_WORD.sub("", re.sub(r"\d+", "", folded)))
    is_social = all(word.partition("'")[0] in _SOCIAL_ENGLISH for word in words)
    return is_social and _SMALL_TALK_CHINESE.fullmatch(rest) is not None and not _is_number_task(folded)


def _is_number_task(folded: str) -> bool:
    """Whether digits are the subject: a calculation or a number of several digits."""
    return len(re.findall(r"\d", folded)) > 3 or re.search(r"\d\s*[-+*/^×÷=%]", folded) is not None
