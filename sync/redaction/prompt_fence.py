"""Neutralise remembered text before it becomes part of a prompt. Pure.

Headings, speakers, chat-template tags, tool calls, the end of the fence and invisible characters stay readable and lose
their effect. A sentence that simply asks is not affected; the fence and its rules deal with that. An emoji keeps its
joiners and a flag its tags.
"""

import re
import unicodedata
from typing import Final

from sync.redaction.line_breaks import UNUSUAL_BREAKS

_AS_SPACE: Final = "\0\n"  # a line end for the patterns below that becomes a space; NUL is removed from all text
_INVISIBLE: Final = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f)"
    "|[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
    r"|(?<![^\w\s])\u200d|\u200d(?![^\w\s])"
)
_LINE_PREFIX: Final = r"^((?:[ \t\u00a0\u3000>]|(?:[-*+]|\d{1,9}[.)])[ \t])*)"
_HEADING: Final = re.compile(_LINE_PREFIX + r"(#{1,6})(?=\s|$)", re.MULTILINE)
_HORIZONTAL_RULE: Final = re.compile(
    r"^[ \t>]*(?:(?:-[ \t]*)+|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*)$", re.MULTILINE
)
_CODE_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_GENERIC_TYPE: Final = (  # the parameter of a generic type: `List<String>`
    r"(?-i:[A-Z][a-z][A-Za-z0-9]*|[A-Z][0-9]?|[iuf](?:8|16|32|64|128|size)|[iu]size|int|integer|long|short|byte|char|float"
    r"|double|bool|boolean|str|string|number|bytes|object|any|void|unknown|never|undefined|null|dyn|const|typename|class)"
)
_TAG: Final = re.compile(  # known names and closing tags anywhere; others if closed and not a generic type
    r"<(?=[|｜]|/?\s*(?:memory|system|user|human|assistant|developer|tool|function|instruction|antml|im_|s>|\w*prompt"
    r"|(?:img|image|iframe|video|audio|picture|source|embed|object|svg|link|script|style|input)[\s/]))"
    rf"|<(?=[/!?])|(?<![A-Za-z0-9_)<])<+(?=[a-z])|<(?=[a-z_][^<>]{{0,300}}>)(?!{_GENERIC_TYPE}[\s\[\]?&*]*[,<>|])",
    re.IGNORECASE,
)
_ROLE_BRACKETS: Final = re.compile(
    r"[\[【](?=/?\s*(?:INST|SYS|system|user|human|assistant|developer|系统|助手|用户|开发者|管理员)"
    r"(?:message|prompt|消息|提示词?|指令)?\s*[\]】])",
    re.IGNORECASE,
)
_TOOL_CALL_KEYS: Final = re.compile(r"""(["'])(role|tool_calls?|tool_use|function_call)\1(?=\s*:)""", re.IGNORECASE)
_SPEAKER_LINE: Final = re.compile(_LINE_PREFIX + r"([^\n:：﹕∶]{1,60})(?=[:：﹕∶])", re.MULTILINE)
_SPEAKER_NAME: Final = re.compile(
    r"(?:system|user|human|assistant|developer|tool|function|ai|chatgpt|gpt|claude|gemini|model|admin|administrator|root"
    r"|系统|助手|ai助手|助理|用户|人类|开发者|管理员|模型|工具|函数)"
    r"(?:message|prompts?|instructions?|note|override|消息|提示词?|指令|说|提醒)?"
)
_REFERENCE: Final = re.compile(r"^([ \t>]*\[[^\]]{1,300}\]):", re.MULTILINE)  # of a link or an image, to its address
_LOOKALIKES: Final = str.maketrans("аеорсухіѕԁтмнвкαορυι", "aeopcyxisdtmhbkaopui")  # Cyrillic and Greek letters


def neutralise(content: str, fence: str) -> str:
    """Remove the fence's word, and marks that could pass for structure, roles or the fence.

    Only LF, CR and CRLF end a line. After another break, which becomes a space, marks lose their effect as well.
    """
    text = _INVISIBLE.sub(lambda match: match[1] or "", content).replace("\r\n", "\n").replace("\r", "\n")
    text = UNUSUAL_BREAKS.sub(_AS_SPACE, text)
    if fence:
        text = re.sub(re.escape(fence), lambda match: "·" * len(match[0]), text, flags=re.IGNORECASE)
    text = _SPEAKER_LINE.sub(_quote_speaker, text)
    text = _HEADING.sub(lambda match: match[1] + "＃" * len(match[2]), text)
    text = _HORIZONTAL_RULE.sub("———", text)
    text = _REFERENCE.sub(r"\1：", _CODE_FENCE.sub("'''", text))
    linked, closing, rest = text.rpartition("](")
    text = linked.replace("![", "！[") + closing + rest  # an image would be fetched by a page that shows the text
    text = _ROLE_BRACKETS.sub("［", _TAG.sub(lambda match: "＜" * len(match[0]), text))
    return _TOOL_CALL_KEYS.sub(r"\1「\2」\1", text).replace(_AS_SPACE, " ")


def _quote_speaker(match: re.Match[str]) -> str:
    """Put a speaker's name into quotation marks. It is recognised as a reader sees it, look-alikes included."""
    name = match[2].strip(" \t#＃*_~`\"'()（）[]【】{}<>|\\“”‘’")
    seen = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    if not _SPEAKER_NAME.fullmatch(re.sub(r"[\W_]+", "", seen)):
        return match[0]
    return f"{match[1]}「{name}」"
