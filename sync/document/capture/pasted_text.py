"""The words of a message that its sender clearly typed, without pasted material.

A message of one line counts, alone or beside complete code fences. Other messages of several lines may be
pasted, and so may a line with an address, tag, heading, list mark, indent, table row, time stamp, code, or a mention of
a text (这个网页, this e-mail). Text after a colon counts only after openings such as 请记住：. In doubt none.
"""

import re
from typing import Final

_FENCE: Final = re.compile(r"^(`{3,}|~{3,})[^`\n]*\n(?:.*\n)??\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_ADDRESSES_ASSISTANT: Final = re.compile(r"(?i)[我你您咱]|\b(?:i|i'\w+|my|me|we|our|you|your)\b")
_PASTE_SIGNS: Final = re.compile(
    r"""(?mx)
    ://|\bwww\.|[\w.+-]@[\w-]+\.                          # addresses
    |</?[A-Za-z!?|｜][^<>]*>|\[/?[A-Za-z_ ]{2,20}\]|\[\d|-{3,}|={3,}      # tags and frames
    |\bDear[ ]\w|尊敬的|[★©]|\s\#{1,6}\s                    # a letter, a page
    |^(?:[ ]{2,}|[ ]?[\t\u3000])                           # an indent
    |^[ ]?(?:\#|[-*+•·>|【\[({]|\d{1,3}[.)、][ ]?\D|\$[ ]|//|/\*|")        # headings, lists, quotes
    |^[ ]?[A-Za-z0-9_.-]+[=|\t;]|[\t{}|｜]|\w=\S|\\n        # rows of a table and code
    |[A-Za-z0-9_][,;][^\s\d]|^[^,，。\s]{1,12},[^,，。\s]{1,12},\S|(?:\S[,;]\S[^,;]*){4}    # a row of values
    |\d{1,2}:\d{2}:\d{2}|\d{4}-\d{1,2}-\d{1,2}|\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b    # a log
    |^[ ]?(?:From|To|Cc|Subject|Date|Re|Fwd?|发件人|收件人|抄送|主题|日期|转发|回复)[ ]?[:：]         # an e-mail
    """
)
_MENTIONS_PASTED_TEXT: Final = re.compile(
    r"(?ix)(?:这|那|该|此|下面|上面|上述|以上|以下|有)[个份封段篇条页张些里几是则]*"
    r"(?:网页|页面|网站|网址|链接|邮件|电子邮件|来信|信(?!息)|文章|帖子|博客|日志|公告|通知|评论|评价|readme|issue|工单|聊天|对话|截图|新闻|论文"
    r"|原文|报道|记录|弹幕|笔记|段?话(?!说|题))"
    r"|(?:网页|页面|链接|邮件|文章|帖子|日志|公告|readme|issue|文档|文件|网站|说明书?)(?:上|里|中|里面)?(?:的?内容|写|说|要求|提到|复制|显示)"
    r"|粘贴|复制(?:过来|下来|自|的)|贴(?:给|出|过|个|一|你|上|下)|转发|摘自|引自|内容(?:如下|是|为|[:：])|如下|写道|写着"
    r"|工具(?:返回|输出|结果)|返回的|输出的|识别出|转文字|逐字稿"
    r"|\b(?:this|that|these|those|following|attached|the[ ](?:above|following))[ ](?:\w+[ ])?"
    r"(?:web ?page|page|site|website|article|e-?mails?|letter|readme|logs?|issue|ticket|post|thread|transcript|review"
    r"|newsletter|changelog|excerpt|quote|message|output|text|note|document|notice|snippet)\b"
    r"|\b(?:pasted?|copied[ ]from|forwarded|excerpt|transcript|according[ ]to)\b|\b(?:says?|reads):"
    r"|\b(?:the|this)[ ]users?\b(?![ ]interface)|\b(?:assistants?|agents?)[ ](?:must|should|shall|always|never|can)\b"
    r"|(?:助手|智能体|模型|该?用户)们?(?:必须|应当?|须|都|要|始终|喜欢|偏好|希望)"
)
_OWN_LEAD_IN: Final = re.compile(
    r"(?i)(?:记住|注意|记一下|记下|说明|提醒|补充|另外|还有|顺便|对了|其实|偏好|习惯|要求|原则|note|remember|btw|also"
    r"|one thing|preference|please)(?: that)?$"
)
_COLON: Final = re.compile(r"[:：](?!\d|\\|/)")


def typed_line(message: str) -> str:
    """The one line that the sender clearly typed, up to the first pasted part; empty in doubt."""
    message = message.replace("\r\n", "\n")
    rest = _FENCE.sub("\n", message)
    lines = [line for line in rest.splitlines() if line.strip()]
    if len(lines) != 1 or _PASTE_SIGNS.search(lines[0]) or _MENTIONS_PASTED_TEXT.search(lines[0]):
        return ""
    line = lines[0].strip()
    if rest != message and not _ADDRESSES_ASSISTANT.search(line):
        return ""
    named = next(
        (mark for mark in _COLON.finditer(line) if not _OWN_LEAD_IN.search(line[: mark.start()].rstrip())), None
    )
    return line if named is None else line[: named.start()]
