"""The wordings of spoken commands, Chinese and English, as regular expressions; one wording a line."""

import re
from enum import StrEnum
from typing import Final


class CommandKind(StrEnum):
    """What the user asks for."""

    SAVE = "save"
    SKIP = "skip"
    SENSITIVE = "sensitive"
    SEARCH = "search"
    SHOW = "show"
    DELETE = "delete"
    CLEAN = "clean"
    SETTINGS = "settings"
    UNDO = "undo"


# What "this" may be: the conversation, or what was just said.
_THIS_ZH: Final = (
    r"(?:这个|这些|这段|这条|这点|这次|本次|这件事|这些话|(?:这个|这段|这次|本次|当前|刚才的?|上面的?)(?:对话|聊天|会话|话|内容)|"
    r"刚才(?:说的|聊的|这些)|上面(?:说的|这些))"
)
_THIS_EN: Final = r"(?:this|that|it|these|(?:this|the|our) (?:conversation|chat|session|discussion|part))"
_KEEP_ZH: Final = r"(?:记住|记下来?|记录下来?|记录一下|记一下|记一记|保存下来|保存一下|保存|存下来|存一下|存起来)"
_NOT_ZH: Final = r"(?:不要|不用|不必|不需要|无需|用不着|别|不|请勿)"
_NO_KEEP_ZH: Final = rf"{_NOT_ZH}(?:再|给我)?(?:保存|记录|记住|记下来?|记|存下来?|存|留下?记录|留存)(?:了|下来)?"
_NOT_EN: Final = r"(?:don'?t|do not|never|no need to|you (?:needn't|don'?t need to|shouldn't|should not))"
_KEEP_EN: Final = r"(?:save|remember|record|keep|store|log|note(?: down)?|memori[sz]e|write down)"
# "忘记我对花生过敏": a fact of the user, as they would state it; not a password, and not what was said a moment ago.
_ME_EN: Final = r"(?:i|i'm|i've|i'd|my|we|we're|our)\b"
_FORGET_ZH: Final = (
    r"(?:(?<!你)|(?<=请你)|(?<=麻烦你)|(?<=帮你))"
    r"(?:(?:忘记|忘掉|忘了|抹掉|删掉)|(?:别|不要|不用|不必)再?(?:记着|记得|记住))(?:一下)?"
)
_STATED_ZH: Final = (
    r"(?:我|咱|俺|我们)(?!吧|们吧|$|的?(?:密码|账号|口令|手机号码?)|不记得|是谁|了)"
    r"(?![刚才跟和对]*你?(?:说|讲|问|提|发|写))"
    r"(?![^，,]*(?:怎么|什么|吗|呢|咋|为何|的事情?$|那件事$|(?:的)?(?:记忆|记录)$|了?没有?$))[^，,。？?]{2,}"
)
_NOT_SAYING_EN: Final = r"(?! (?:said|say|asked|ask|mentioned|told|wrote|sent|just|was saying)\b)"
_OWN_THING_EN: Final = (
    r"my (?!(?:last|previous|earlier|first|original|question|request|message|password|pin|login|mistake|bad|point|idea"
    r"|comment|suggestion|example|code|file|answer)\b)\w[\w' -]{2,60}"
)
_DAY: Final = r"今[天日]|昨[天日]|前天|\d{4}-\d{2}-\d{2}|today|yesterday"

# Recognised as the text before a colon; those about saving also as a clause of a longer message.
PHRASES: Final[dict[CommandKind, tuple[str, ...]]] = {
    CommandKind.SAVE: (
        rf"{_KEEP_ZH}{_THIS_ZH}",
        r"保存(?:这次对话|本次对话|当前对话|对话)",
        rf"把{_THIS_ZH}(?:都|也|给我)?{_KEEP_ZH}",
        rf"{_THIS_ZH}(?:都|也|先|帮我|给我)*(?:记|记录|保存|存)(?:住|一下|下来|起来)",
        rf"(?:别忘了|不要忘记|别忘记){_THIS_ZH}",
        (
            rf"(?:save|remember|record|store|note"
            rf"(?: down)?|memori[sz]e|write down) {_THIS_EN}(?: down)?(?: conversation| chat)?"
        ),
        rf"(?:make|take) a note of {_THIS_EN}",
        rf"keep {_THIS_EN} in (?:mind|memory)",
        rf"(?:don'?t|do not) forget {_THIS_EN}",
        rf"(?:add|save|commit) {_THIS_EN} to (?:your |my |the )?memory",
    ),
    CommandKind.SKIP: (
        rf"(?:{_THIS_ZH})?(?:对话)?(?:就|都|先|可以)?{_NOT_ZH}再?(?:保存|记录|记住)(?:了)?(?:{_THIS_ZH}|[这本]?次?对话)?",
        rf"{_THIS_ZH}(?:就|都|先|也|可以)?{_NO_KEEP_ZH}",
        rf"{_NOT_ZH}[记存]{_THIS_ZH}",
        rf"{_NOT_ZH}把?{_THIS_ZH}(?:给我)?(?:{_KEEP_ZH}|记|存)(?:进记忆)?",
        rf"(?:{_NOT_EN}) {_KEEP_EN}(?: {_THIS_EN})?(?: conversation| chat| one)?(?: down)?",
        rf"(?:keep )?{_THIS_EN} (?:is |stays |should stay )?off the record",
    ),
    CommandKind.SENSITIVE: (
        r"(?:标记为?)?(?:这是)?敏感(?:对话|内容)",
        r"(?:this is |mark (?:this |it )?as )?(?:a )?sensitive(?: conversation)?",
    ),
    CommandKind.SEARCH: (
        r"(?:搜索|查找|检索)(?:一下)?(?:我的)?记忆",
        r"(?:search|find in) (?:my |the )?memor(?:y|ies)(?: for)?",
    ),
    CommandKind.SHOW: (
        r"(?:查看|看看|显示|打开)?(?:一下)?(?:今日|今天的?)(?:的)?记忆",
        r"(?:查看|看看|显示|打开)(?:一下)?(?:我的)?记忆",
        r"(?:show |view |see |open )?(?:me )?today'?s (?:memory|memories)",
        r"(?:show|view|open) (?:me )?(?:my |the )?memor(?:y|ies)",
    ),
    CommandKind.DELETE: (
        r"删除(?:这条|我的)?记忆",
        r"(?:delete|remove|forget) (?:my |the )?memor(?:y|ies)",
    ),
    CommandKind.CLEAN: (
        r"(?:清理|清除|清掉)(?:一下)?(?:我的)?(?:旧|过期|老)的?记忆",
        r"把(?:旧|过期|老)的?记忆(?:清理|清除|清掉)(?:一下)?",
        r"clean(?: up)? (?:my |the )?(?:old|expired) memor(?:y|ies)",
        r"clear (?:out )?(?:my |the )?(?:old|expired) memor(?:y|ies)",
    ),
    CommandKind.SETTINGS: (
        r"(?:打开|查看|看看|显示|修改|更改|调整)?(?:一下)?(?:我的)?记忆(?:功能)?(?:的)?设置",
        r"设置(?:一下)?记忆",
        r"(?:open |show |view |change |edit )?(?:me )?(?:my |the )?memory settings",
    ),
    CommandKind.UNDO: (
        r"撤[销消回](?:一下)?(?:刚才的?|上一?[次步]的?|记忆)?(?:的)?(?:删除|清理|上一步|操作|命令)?",
        r"(?:恢复|还原)(?:刚才|刚刚)?(?:删除|删掉|删)的(?:那条)?(?:记忆|记录|内容)?",
        r"把(?:刚才|刚刚)(?:删除|删掉|删)的(?:那条)?(?:记忆|记录|内容)?(?:恢复|还原|找回来)",
        r"undo(?: that| it| this| (?:the|my) (?:last )?(?:deletion|delete|one|action|change|command))?",
        r"(?:restore|bring back) (?:what (?:i|you) (?:just )?(?:deleted|removed)|the (?:deleted|removed) memory)",
    ),
}
# Only as the whole message, because as a clause they may be about something else: 公式很长，不用记.
WHOLE_PHRASES: Final[dict[CommandKind, tuple[str, ...]]] = {
    CommandKind.SAVE: (
        _KEEP_ZH,
        rf"把它{_KEEP_ZH}",
    ),
    CommandKind.SKIP: (
        _NO_KEEP_ZH,
        r"(?:keep (?:this|it) )?off the record",
        r"nothing of this (?:should|needs to) be (?:saved|kept)",
    ),
    CommandKind.SENSITIVE: (
        rf"{_THIS_ZH}(?:很|比较|有点|是)?(?:敏感|私密|机密|保密)的?",
        r"this (?:conversation|chat|part) is (?:sensitive|confidential|private)",
    ),
}
# The whole message, with an argument inside the sentence.
FRAMED_ARGUMENTS: Final[dict[CommandKind, tuple[str, ...]]] = {
    CommandKind.SHOW: (
        rf"(?:查看|看看|显示|打开)?(?:一下)?(?P<about>{_DAY})的?记忆",
        rf"(?P<about>{_DAY})(?:你)?(?:都)?(?:记|记住|记录|保存|记下)了?(?:些|哪些)?(?:什么|啥|内容)",
        rf"你(?P<about>{_DAY})(?:都)?(?:记|记住|记录|保存|记下)了?(?:些|哪些)?(?:什么|啥|内容)",
        rf"(?:show |view |see |open )?(?:me )?(?P<about>{_DAY})'?s memor(?:y|ies)",
        rf"what did you (?:save|remember|record|note)(?: down)? (?P<about>{_DAY})",
        rf"what (?:was|have you|did we) (?:saved?|remembered|recorded) (?P<about>{_DAY})",
    ),
    CommandKind.SEARCH: (
        r"(?:搜索|查找|检索|搜|查)(?:一下)?(?:我的)?记忆(?:里|中)?(?: |关于|有关)+(?P<about>.+?)(?:的(?:内容|记录))?",
        r"(?:在|从)(?:我的)?记忆(?:里|中)(?:搜索?|找|查找?|检索)(?:一下|找)?(?P<about>.+)",
        r"(?:我的)?记忆(?:里|中)有没有(?:关于|提到)?(?P<about>.+?)(?:的(?:内容|记录))?",
        r"(?:找|查|搜|搜索|查找)(?:一?下|找)?(?:关于|有关)?(?P<about>[^，,]+?)的记忆",
        r"search (?:my |the |your )?memor(?:y|ies) (?:for|about|on) (?P<about>.+)",
        r"(?:find|look up|look for|search(?: for)?) (?P<about>.+) in (?:my |the |your )?memor(?:y|ies)",
        r"what do you remember about (?P<about>.+)",
    ),
    CommandKind.DELETE: (
        r"(?:删除|删掉|清除|忘掉|忘记|去掉)(?:所有|全部)?(?:关于|有关)(?P<about>.+?)的(?:所有|全部)?(?:记忆|记录|内容|事情?|一切)",
        r"(?:忘掉|忘记)(?:关于)?(?P<about>.+?)(?:那件事|这件事|那回事|的事情?)",
        r"把(?:所有|全部)?(?:关于|有关)?(?P<about>.+?)的(?:记忆|记录)(?:都|全部?)?(?:删除|删掉|删了|清除|忘掉|忘了)",
        r"(?:删除|删掉|清除|忘掉)(?P<about>[^，,]+?)的记忆",
        (
            r"(?:forget|delete|remove|erase) (?:everything|all(?: (?:of )?(?:my |the )?memor(?:y|ies))?|anything|what "
            r"(?:i|we) (?:said|told you)|(?:my |the |all )?memor(?:y|ies)) (?:about|of|on) (?P<about>.+)"
        ),
        rf"{_FORGET_ZH}(?P<stated>{_STATED_ZH})",
        rf"(?:forget|unlearn) (?:that |the fact that )(?P<stated>{_ME_EN}{_NOT_SAYING_EN}.+)",
        (
            r"(?:don'?t|do not) (?:remember|keep|save|store)(?: anymore)? that "
            rf"(?P<stated>{_ME_EN}{_NOT_SAYING_EN}.+)"
        ),
        rf"(?:you (?:can|may|should) )?(?:forget|unlearn) (?:about )?(?P<about>{_OWN_THING_EN})",
        r"forget about (?P<about>(?!(?:it|this|that|them|him|her|me|you|us)\b)\w+(?: \w+){0,3})",
    ),
}

_PREFIX: Final = (
    r"(?:请|麻烦|帮我|给我|你|我想|我要|好的|那|那就|嗯|可以|能不能|"
    r"please |ok |okay |can you |could you |hey |now |just |let's )*"
)
_SUFFIX: Final = r"(?:吧|了|哦|啊|呀|哈|一下|好吗|谢谢|吗| please| now| for me| thanks)*"


def _compile(phrases: dict[CommandKind, tuple[str, ...]]) -> dict[CommandKind, re.Pattern[str]]:
    return {kind: re.compile(f"{_PREFIX}(?:{'|'.join(each)}){_SUFFIX}") for kind, each in phrases.items()}


PATTERNS: Final = _compile(PHRASES)
WHOLE_PATTERNS: Final = _compile(WHOLE_PHRASES)
FRAMED_PATTERNS: Final = tuple(
    (kind, re.compile(f"{_PREFIX}(?:{phrase}){_SUFFIX}", re.IGNORECASE))
    for kind, phrases in FRAMED_ARGUMENTS.items()
    for phrase in phrases
)
