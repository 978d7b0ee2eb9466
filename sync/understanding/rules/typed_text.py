"""The sentences of a message that its sender clearly typed, with quotations and code hidden.

Pasted material is recognised by its form. A message of several lines counts only if none of them looks pasted, each
speaks of its author, and no line but the last asks something: the text that it is about may follow. In doubt nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_MESSAGE_LENGTH: Final = 2000  # characters; a longer message was pasted in good part
MAX_TYPED_LINES: Final = 6
MAX_CLAUSE_LENGTH: Final = 160  # characters; a longer one states nothing, and patterns need not run on it
MAX_HIDDEN: Final = 0.8  # of a statement; one of which a quotation is more says little of its author
HIDDEN: Final = "\ufffc"  # replaces one character of a quotation or of code

_FENCE: Final = re.compile(r"^(`{3,}|~{3,})[^`\n]*\n(?:.*\n)??\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_QUOTED: Final = re.compile(
    r"“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"\n]*\"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))*'(?!\w)"
    r"|`[^`\n]*`"
)
_MACHINE_TEXT: Final = re.compile(
    r"""(?x)
    ://|</?[A-Za-z!?|｜][^<>]*>|\[/?[A-Za-z_ ]{2,20}\]|\[/?系统|-{4,}|={3,}|[★©]|\\n|\\t
    |^[ ]?(?:\#|>|[|]|\$[ ]|//|/\*|\*/|\#!|--[ ]|@\w+[ ]|\.\w+rc\b)
    |\b\d{1,2}:\d{2}:\d{2}\b|\bERR!|\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[ :\]]
    |[{};]\s*$|\w[ ]?={1,3}[ ]?["'\w]|\w\.\w+\(|console\.
    |[{\[]\s*"|\w\(\)|=>|===?
    |\b(?:const|def|function|return|assert|import|SELECT|INSERT)\b[ (]
    |^[ ]?(?:From|To|Cc|Subject|Date|Re|Fwd?|发件人|收件人|抄送|主题|日期|转发)[ ]?[:：]
    """
)
_PASTED_LINE: Final = re.compile(r"^(?: {2,}| ?[\t\u3000]| ?[-*+•·] |\d{1,6}[,;]\S)")  # an indent, a list mark, a row
_PASTE_SIGNS: Final = re.compile(  # beside these a line of several is not clearly typed
    r"""(?mx)
    \bwww\.|[\w.+-]@[\w-]+\.|\[\d|\bDear[ ]\w|^尊敬的|\s\#{1,6}\s|^(?:[ ]{2,}|[ ]?[\t\u3000])
    |^[ ]?(?:[-*+•·【\[({]|\d{1,3}[.)、][ ]?\D|")
    |^[ ]?[A-Za-z0-9_.-]+[=|\t;]|[\t{}|｜]|\w=\S
    |^[^,，。\s]{1,12}[,;][^,，。\s]{1,12}[,;]\S|^[ ]?[^\s:：，。]{1,12}[:：]
    |\d{4}-\d{1,2}-\d{1,2}
    """
)
_MENTIONS_PASTED_TEXT: Final = re.compile(
    r"(?ix)(?:这|那|该|此|下面|上面|上述|以上|以下|有)[个份封段篇条页张些里几是则]*"
    r"(?:网页|页面|网站|网址|链接|邮件|电子邮件|来信|信(?!息)|文章|帖子|博客|日志|公告|通知|评论|评价|readme"
    r"|issue|工单|聊天|对话"
    r"|截图|新闻|论文|原文|报道|记录|弹幕|笔记|说明书|脚本|代码|表|文档|注释|输出|结果|会议|段?话(?!说|题))"
    r"|粘贴|复制(?:过来|下来|自|的)|贴(?:给|出|过|个|一|你|上|下)|转发|摘自|引自|如下|写道|写着|逐字稿|转文字|节选"
    r"|工具(?:返回|输出|结果)|返回的|输出的|识别出|来信|群聊|录音"
    r"|\b(?:this|that|these|those|following|attached|the[ ](?:above|following))[ ](?:\w+[ ])?"
    r"(?:web ?page|page|site|website|article|e-?mails?|letter|readme|logs?|issue|ticket|post|thread|transcript|review"
    r"|newsletter|changelog|excerpt|quote|message|output|text|note|document|notice|snippet|recipe|code|script|file)\b"
    r"|\b(?:pasted?|copied[ ]from|forwarded|excerpt|transcript|according[ ]to|gave[ ]me[ ]this|result)\b"
)
_CLAIMS_ABOUT_USER: Final = re.compile(
    r"(?i)\b(?:the|this) users?\b(?! interface)|\b(?:assistants?|agents?) (?:must|should|shall|always|never|can)\b"
    r"|(?:助手|智能体|模型|该?用户)们?(?:必须|应当?|须|都|要|始终|喜欢|偏好|希望|习惯|已)"
    r"|(?:忽略|无视)(?:之前|以上|前面|所有)|\bignore (?:all|any|the|previous|prior|your)\b|系统提示|system prompt"
    r"|越狱|jailbreak|developer mode|开发者模式"
)
_ASKS_TO_FORGET: Final = re.compile(
    r"(?i)(?<![别勿没要会能])忘(?:掉|记|了)(?=我|吧|$|这)|(?:别|不要|不用)再?记(?:住|得|下|录)?(?=我|了?[。！!]*$)"
    r"|^(?:please |just |ok,? |can you |could you |you can )*forget (?:that|about|i|i'\w+|my)\b"
    r"|\b(?:don't|do not) (?:remember|save|store|record) (?:that i|this|it)\b"
)
_ASKS: Final = re.compile(
    r"(?i)[?？]\s*$|[吗呢么不没]\s*$|什么|怎么|哪|谁|多少|为啥|帮我|帮忙|看看|看下|翻|译|总结|解释|统计|列"
    r"|排序|检查|计算|算下|写"
    r"|^(?:what|which|who|how|why|when|where|is|are|can|could|do|does|did|please|convert|summari[sz]e"
    r"|translate|fix|check"
    r"|explain|draft|make|find|tidy|phishing|second|any|spot)\b"
)
_SPEAKS_OF_SELF: Final = re.compile(
    r"(?i)[我咱你您]|本人|以后|今后|\b(?:i|i'\w+|im|my|me|we|our|you|your|always|never|please)\b"
)
_SPEAKER: Final = re.compile(r"(?:^|[\s。！？!?])[^\s:：，。,!！?？]{1,10}[:：](?!//|\d)")
_SENTENCE: Final = re.compile(
    r"(?:[^。！!？?\n….～~]|\.(?=\w)|(?<=\w)\.(?=[\w/])|\.(?!\s|$|[\u3400-\u9fff]))+[。！!？?….～~]*"
)
_ABBREVIATION: Final = re.compile(r"\b(?:e\.g|i\.e|vs|mr|mrs|dr|ms|st|etc)\.$", re.IGNORECASE)
_COLON: Final = re.compile(r"(?:(?<!\d)[:：]|[:：](?!\d))(?![\\/])")
_BREAK: Final = re.compile(r"\s[-–—]{1,2}\s|——?|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff]{4})")
# The text before a colon that its writer's own words may follow.
_OWN_HEAD: Final = re.compile(
    r"(?i)我|咱|本[人组所司校院店]|目标|情况|约定|结论|决定|拍.?板|敲定|通过|要求|规矩|规则|原则|习惯|偏好"
    r"|补充|说明|请教|咨询|问问|记住|记一下|记下|记得"
    r"|提醒|注意|更正|纠正|另外|还有|其实|对了|顺便|备注|问题是|原因|根因|正事|背景|计划|安排|分工|配置|技术栈"
    r"|架构|选型|新规|红线|底线"
    r"|前提|限制|条件|事实|总之|也就是|两件事|几点|一点|忌口|过敏|爱好|现状|方案|流程|栈"
    r"|\b(?:i|my|me|we|our|note|remember|btw|also|thing|things|question|situation|preference|preferences|rule|rules"
    r"|goal|goals"
    r"|correction|please"
    r"|decided|decision|reminder|context|background|update|facts?|fyi|heads[ -]up|money|it|problem|cause"
    r"|turned out|setup"
    r"|stack)\b"
)
_FOREIGN_HEAD: Final = re.compile(  # a text to work on, a speaker, an example follows
    r"(?i)(?:写|改|看|润色|精简|优化|检查|修改|完善|缩短|起草)[^，,。]{0,6}(?:自我介绍|简介|简历|作文|信|邮件"
    r"|文案|稿|声明|评语|发言|致辞|检讨|日记|帖子|文章|论文|总结|通知|公告)|精简|简介|作文|帮我(?:写|改|看)"
    r"|翻译|译成|译文|[翻译][成为]|改写|改[成得为]|润色|续写|扩写|缩写|仿写|校对|检查|语法|总结|概括|归纳|提炼"
    r"|[写编造拟][个段一首封篇条句份]|填空"
    r"|写一下|写成|[合并]成|这[两几三](?:句|段)|这(?:句|段|首|篇|封|条|则|份)|那(?:句|段|首|篇|封|条|则)|下[面列]"
    r"|以下|上面|如下|根据"
    r"|出[题三]|阅读|造句|格式|主角|台词|旁白"
    r"|独白|意思|怎么[说读念]|评论|评价|短评|弹幕|日志|报错|输出|返回|自白|文案|标题|签名|简历|求职信|歌词"
    r"|字幕|例句|例如|比如|譬如|作文|开头"
    r"|正则|匹配|字符串|断言|代码|输入|变量|(?:说|讲|告诉|表示|回[复答]|问|喊|道|称|叫|发|留言|发言|原话)(?:我"
    r"|我们|大家|他|她|过|了|的)?\s*$"
    r"|\b(?:translate|rewrite|rephrase|paraphrase|proofread|summari[sz]e|write|turn|fix|correct|lyrics"
    r"|following|below|edit|merge|combine|these two|make it"
    r"|says?|said|told|asked|wrote|goes|reads?|tweet|caption|headline|slogan|poem|haiku|story|dialogue|script"
    r"|sentence"
    r"|paragraph|text|quote|letter|review|example|convert|into|polish|shorten|subtitle|regex|string|input"
    r"|output|error|essay|mistakes|typos|homework|composition|(?:more|less) (?:formal|casual|polite|friendly|concise)"
    r"|shorter|catchier"
    r"|name a|copied|pasted|docs|documentation|manual|readme|note says|novel|character|resume|cv|cover letter"
    r"|bio|speech|toast|draft)\b"
)
_TEXT_AT_HAND: Final = re.compile(  # before a dash or a gap that a text follows
    r"(?i)^\W*(?:please |can you |could you |now )?(?:make|shorten|rewrite|rephrase|fix|correct|improve|polish"
    r"|translate"
    r"|summari[sz]e|proofread|reword|simplify|edit|expand)\b.{0,12}\b(?:this|it|text|sentence|line|paragraph|below)\b"
    r"[^-]{0,24}$|^[^，,。]{0,12}(?:翻译|润色|重写|重述|改写|校对|缩写|扩写|概括|总结|精简|修改|译|加标点|断句|分段"
    r"|纠错|改错|朗读)[^，,。]{0,8}$"
)
_TEXT_TASK: Final = re.compile(  # a request about a text in the same message without a colon
    r"(?i)^\W*[^，,。我]{0,6}(?:下面|以下|下列)(?:的|这|几|一)?(?:通知|句|话|段|文|内容|邮件|公告|材料|标题|回复|评论)"
    r"|^\W*(?:please )?(?:give|add|put|find|suggest) (?:this|the following) (?:notice|text|paragraph|post|message"
    r"|email|letter|story|poem)\b"
    r"|^\W*(?:(?:请|麻烦|帮我|帮忙|你|能不能|可以)\s*)*(?:把)?(?:翻译|润色|改写|校对|续写|扩写|缩写|仿写"
    r"|朗读|改一?下|译)(?!.{0,12}(?:之前|前)[先，,])"
    r"(?:一?下)?(?:这(?!一?[个段份条]? ?(?:脚本|代码|函数|查询|配置|接口|正则|[A-Za-z]))|下|以下|成|为)"
    r"|^\W*(?:(?:请|麻烦|帮我|帮忙|你|能不能|可以)\s*)*(?:修?改|润色|优化|检查|完善|看看?)(?:一?下)?(?:我的"
    r"|这份|这篇)?(?:简历|求职信|自我介绍|作文|邮件|稿子|文案|个人陈述|自我评价)"
    r"|^\W*(?:please |can you |could you )?(?:edit|improve|polish|fix|check|tweak|shorten|review|rework"
    r"|update) (?:my|this) (?:cover letter|resume|cv|bio|essay|email|letter|statement|speech|text|sentence"
    r"|paragraph|draft|application|profile)"
    r"|^\W*(?:please |can you |could you )?(?:translate|proofread|rephrase|paraphrase|rewrite|polish"
    r"|summari[sz]e)\b(?! (?:this|the|my|our) (?:query|function|code|script|sql|regex|loop|class|component"
    r"|test|config|formula|macro)\b)"
)


@dataclass(frozen=True, slots=True)
class TypedSentence:
    """A sentence of the message: its words, and the same with quotations and code hidden, of equal length."""

    text: str
    visible: str
    is_heading: bool = False  # a colon follows, and the text that it announces

    @property
    def is_question(self) -> bool:
        return self.visible.rstrip().endswith(("?", "？"))


def typed_sentences(message: str) -> list[TypedSentence]:
    """The sentences that the sender typed, in their order; none in doubt."""
    if len(message) > MAX_MESSAGE_LENGTH:
        return []
    lines = _typed_lines(message.replace("\r\n", "\n"))
    return [sentence for line in lines for sentence in _sentences(line)]


def _typed_lines(message: str) -> list[str]:
    rest = _FENCE.sub("\n", message)
    lines = [line for line in rest.splitlines() if line.strip()]
    if len(lines) > MAX_TYPED_LINES or _CLAIMS_ABOUT_USER.search(message) or _ASKS_TO_FORGET.search(message):
        return []
    if any(_MACHINE_TEXT.search(_QUOTED.sub("", line)) or "\t" in line or _PASTED_LINE.search(line) for line in lines):
        return []
    if rest != message and (len(lines) != 1 or _ASKS.search(lines[0]) or _MENTIONS_PASTED_TEXT.search(lines[0])):
        return []
    if len(lines) > 1:
        if not all(_SPEAKS_OF_SELF.search(line) for line in lines):
            return []
        if any(_PASTE_SIGNS.search(line) or _MENTIONS_PASTED_TEXT.search(line) for line in lines):
            return []
        if any(_ASKS.search(line) or _announces_foreign_text(line) for line in lines[:-1]):
            return []
    if sum(len(_SPEAKER.findall(line)) for line in lines) > 1:
        return []
    return lines


def _sentences(line: str) -> Iterator[TypedSentence]:
    """The sentences of a line up to text that another person may have written."""
    visible = _QUOTED.sub(lambda match: HIDDEN * len(match[0]), line)
    if _TEXT_TASK.search(visible):
        return
    start = 0
    for match in _SENTENCE.finditer(visible):
        if _ABBREVIATION.search(match[0]) and match.end() < len(visible):
            continue
        foreign = _foreign_colon(visible[start : match.end()])
        end = match.end() if foreign is None else start + foreign.start()
        yield TypedSentence(line[start:end], visible[start:end], is_heading=foreign is not None)
        if foreign is not None and (foreign[0] not in ":：" or _FOREIGN_HEAD.search(visible[start:end])):
            return
        start = match.end()


def _announces_foreign_text(line: str) -> bool:
    """Whether a line says that the lines after it are another's: Here is what my boss wrote:."""
    return line.rstrip().endswith((":", "：")) and _foreign_colon(line) is not None


def _foreign_colon(sentence: str) -> re.Match[str] | None:
    """The colon after which another person may speak: the text before it does not announce the user's own words."""
    for mark in _COLON.finditer(sentence):
        head = sentence[: mark.start()]
        if _FOREIGN_HEAD.search(head) or not _OWN_HEAD.search(head):
            return mark
    return next((mark for mark in _BREAK.finditer(sentence) if _TEXT_AT_HAND.search(sentence[: mark.start()])), None)
