"""Find statements of preference in a message of the user, and the section of the document where they belong.

Only what the user states in their own typed words counts (`pasted_text`): no question, quotation, reported speech or
pasted text, and nothing that holds once (这次, today). A clause must begin with a trigger (我喜欢, 以后都, I prefer,
always…). Missing a preference is better than making a rule of a passing remark. The sentence is kept whole.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from sync.document.capture.pasted_text import typed_line
from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import Section
from sync.document.markdown.one_line import escape_markdown, one_line
from sync.document.markdown.template import COMMUNICATION_STYLE, TECHNICAL_PREFERENCES, WORK_HABITS

MAX_MESSAGE_LENGTH: Final = 600  # characters; a longer message was probably pasted
MIN_LETTERS: Final = 4  # letters of a preference
MAX_PREFERENCE_LENGTH: Final = 160  # characters of one preference
MAX_PREFERENCES: Final = 3  # in one message

_CODE: Final = re.compile(r"`[^`\n]*`")
_FIRST_MASK_CHARACTER: Final = 0xE000  # private characters, one for each piece of code in a message
_QUOTED: Final = re.compile(r"“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)")
_SENTENCE: Final = re.compile(r"(?:[^。！!？?；;\n….]|\.(?!\s+[A-Z]))+[。！!？?；;….]*")
_CLAUSE: Final = re.compile(r"[，,]\s*")
_FILLER: Final = re.compile(
    r"(?i)^(?:(?:嗯+|哦|好的?|对了|那么?|其实|另外|还有|顺便(?:说一下)?|记住|请记住|记一下|请?注意|麻烦|总之"
    r"|因为|反正|说实话|请"
    r"|ok(?:ay)?|well|also|so|btw|by the way|please|remember(?: that)?|note(?: that)?|actually|and|but)[\s:：]*)+"
)
# The message is about a text before or after it, whose author is unknown.
_TEXT_TASK: Final = re.compile(
    r"(?i)翻译|改写|润色|续写|改成|扩写|仿写|造句|作文|文案|写一?[封篇首段]|总结(?:一下)?(?:这|下|以下)|以下"
    r"|下面|如下|这[段句篇首]|歌词|台词|^(?:请|帮我|麻烦|你)*(?:检查|修改|改正|纠正|看看)(?:一下)?(?:语法|病句|错别字)"
    r"|\b(?:translate|rewrite|rephrase|paraphrase|proofread|summari[sz]e|write (?:a|an|me|the)|lyrics"
    r"|following|below)\b|^(?:please |can you )?(?:fix|correct|check) (?:the |my )?(?:grammar|spelling|typos?)\b"
)
_REPORTING: Final = re.compile(
    r"(?i)(?:说|表示|写道|问|回答|提到|要求|认为|觉得|say|says|said|told me|asks?|writes?|wrote)$"
)
_QUESTION: Final = re.compile(
    r"(?i)[?？]|[吗呢么]\s*[。！!]*$|什么|怎么|怎样|为何|为啥|哪|谁|多少|几[个点次]|是不是|能不能|可不可以"
    r"|有没有|要不要|会不会|喜不喜欢|对不对"
    r"|^(?:do|does|did|what|why|how|which|who|when|where|is|are|can|could|should|would|will|am)\b"
)
_ONE_TIME: Final = re.compile(
    r"(?i)这次|本次|这一次|今天|今晚|刚才|刚刚|这个|那个|这里|那里|这份|这张|那张|此处|暂时"
    r"|(?<!从)现在(?![起开])|上次|以前|曾经|小时候|昨天|如果|假如|要是|[你他她它这那]们?$"
    r"|\b(?:you|it|this|that|them)$|\b(?:this (?:time|one|file|once|is)|today|tonight|right now|for now"
    r"|that one|used to|yesterday|if)\b"
)
_ADVERB: Final = (
    "(?:比较|更加?|最|很|非常|特别|还是|一直|一般|通常|平时|向来|也|都|真的?|不太?|并不|个人|其实|总是|只)*"
)
_TRIGGER: Final = re.compile(
    rf"(?i)^(?:我{_ADVERB}(?:喜欢|偏好|偏爱|偏向|习惯|讨厌|反感|倾向于?|爱用|爱喝|爱吃|受不了|希望你(?:以后"
    rf"|每次|总|都|能?一直))"
    r"|我的(?:习惯|偏好|原则)是"
    r"|(?:以后|今后|往后|从今(?:以后|往后|天起|天开始)|从现在(?:起|开始)|从此)(?!再说|再看|吧|呢)"
    r"|(?:每次|每回|总是|一律|统一|始终|永远|默认|任何时候)(?!都是)(?:都|要|用|请|不要|别|以|给|先|把|回答|使用|是|不)"
    r"|i (?:(?:really|always|usually|generally|much|strongly|do|would|'d|tend to|only) )*"
    r"(?:prefer|like|love|hate|dislike|don't like|do not like|rather|can't stand|want you to always)\b"
    r"|i'd (?:rather|prefer)\b|my preference is\b"
    r"|(?:always|never|from now on|going forward|in the future|by default|from today on)\b)"
)
# A bare 不要 or 别 is a rule only if it is about how something is said or made.
_PROHIBITION: Final = re.compile(
    r"(?i)^(?:请?不要|请?别|请勿|千万别|不用再|不许|don't|do not)\s*(?:再|老是|总是|总|都|随便|每次|ever|always)?\s*"
    r"(?:用|使用|说|加|写|给我?(?:写|加|发|用)|输出|解释|回答|回复|添加|包含|出现|叫我|称呼|道歉|客套|啰嗦"
    r"|重复|省略|use|add|write|explain|include"
    r"|apologi[sz]e|call me|repeat|say|put|answer|reply)"
)
_TIME_ONLY: Final = re.compile(
    r"(?i)^(?:以后|今后|往后|从今(?:以后|往后|天起|天开始)|从现在(?:起|开始)|从此|from now on|going forward)$"
)
# A clause that can be understood only together with the one before it.
_DEPENDENT: Final = re.compile(
    r"(?i)^(?:always|never|by default|in the future)\b|^(?:请?不要|请?别|请勿|千万别|不用再|不许|don't|do not)"
    r"|^(?:每次|每回|总是|一律|统一|始终|永远|默认|任何时候)"
)
_REQUEST: Final = re.compile(
    r"(?i)^(?:(?:那|你|请|麻烦|能不能|可以|现在|先|再|然后|顺便)*(?:帮|给我|替我|教我|告诉我|看看|看下|看一下|解释一下|讲讲"
    r"|写[个一段首份封]|做[个一份]|列[个一出]|来[个一]|生成|推荐|查一?下|改一?下|总结|翻译|整理|优化|重构|修复|推|介绍)"
    r"|(?:(?:and|then|so|now|just|also|ok|okay|please|kindly) )*(?:please|can you|could you|would you|will you|help"
    r"|write|make|give|show|tell me|explain|fix|refactor|rewrite|generate|create|list|find|check|convert|let's"
    r"|look at|build|run|add)\b)"
    r"|(?:一下|改一改|看一看)[吧呗]?$"
)
_OTHER_SPEAKER: Final = re.compile(
    r"(?i)[他她]|(?:同事|朋友|室友|老板|客户|老师|领导|同学|邻居|妈|爸|老公|老婆|孩子|儿子|女儿|对象)"
    r"|(?:说|写道|要求|认为|觉得|建议|规定)[:：]?$"
    r"|\b(?:he|she|they|his|her|their|everybody|everyone|people|says?|said|told|asks?|writes?|wrote|client|customers?)\b"
    r"|\b(?:my|our) (?!name|own|preference|rule|habit|style|favou?rite|code|default|work|team)\w+"
)

_COMMUNICATION_TERMS: Final = re.compile(
    r"(?i)回答|回复|答复|说话|语气|口吻|解释|称呼|叫我|客套|啰嗦|废话|表情|emoji|道歉|聊天|沟通"
    r"|\b(?:answers?|repl(?:y|ies)|respon(?:d|ses?)|explain|explanations?|tone|verbose|call me|apologi[sz]e|chat)\b"
)
_TECHNICAL_TERMS: Final = re.compile(
    r"(?i)代码|编程|注释|变量|函数|框架|编辑器|测试|命名|缩进|接口|数据库|类型|脚本|终端|命令行|部署|算法|程序"
    r"|分支|提交|依赖|语言写"
    r"|python|javascript|typescript|java\b|rust|golang|c\+\+|react|vue|node|sql|git|docker|linux|\bmac|vim"
    r"|vs ?code|\bapi\b"
    r"|\b(?:code|coding|comments?|functions?|variables?|tests?|tabs?|spaces|types?|commits?|branch|framework"
    r"|database|snake_case)\b"
)
_STYLE_TERMS: Final = re.compile(
    r"(?i)简洁|简短|详细|中文|英文|英语|普通话|markdown|列表|直接|要点|表格|\b(?:brief|concise|short|detailed"
    r"|english|chinese|bullet|format)"
)


@dataclass(frozen=True, slots=True)
class StatedPreference:
    """One statement: its line in the document, without the bullet, and its section."""

    text: str
    section: Section

    @property
    def entry_id(self) -> str:
        """Derived from the words, whatever spaces and punctuation: the same statement is one entry on every device."""
        return derived_entry_id("preference", _alphanumerics(self.text))


def find_preferences(message: str) -> tuple[StatedPreference, ...]:
    """The preferences stated in a redacted message, at most `MAX_PREFERENCES`."""
    if len(message) > MAX_MESSAGE_LENGTH or _TEXT_TASK.search(message):
        return ()
    code: dict[int, str] = {}

    def masked(match: re.Match[str]) -> str:
        code[_FIRST_MASK_CHARACTER + len(code)] = match[0]
        return chr(_FIRST_MASK_CHARACTER + len(code) - 1)

    own = _QUOTED.sub("\ufffc", _CODE.sub(masked, typed_line(message)))
    found: dict[str, StatedPreference] = {}
    for sentence in _SENTENCE.findall(own):
        text = _preference_in_sentence(sentence.strip()).translate(code)
        if text and len(text) <= MAX_PREFERENCE_LENGTH:
            preference = StatedPreference(escape_markdown(one_line(text)), _section_for(text))
            found.setdefault(preference.entry_id, preference)
    return tuple(found.values())[:MAX_PREFERENCES]


def _preference_in_sentence(sentence: str) -> str:
    """The preference in a sentence, with its dependent clauses; empty if there is none."""
    if _QUESTION.search(sentence):
        return ""
    clauses = list(map(str.strip, _CLAUSE.split(sentence.rstrip("。！!；;…. "))))
    said = [_FILLER.sub("", clause) for clause in clauses]
    start = next((at for at, clause in enumerate(said) if _is_preference(clause)), None)
    if start is None or (start > 0 and _REPORTING.search(clauses[start - 1])):
        return ""
    taken = [said[start]]
    if _DEPENDENT.search(said[start]):
        head = [_FILLER.sub("", clauses[0]), *clauses[1:start]] if start else []
        if any(_REQUEST.search(one) or _OTHER_SPEAKER.search(one) or _ONE_TIME.search(one) for one in head):
            return ""
        taken = [*head, said[start]]
    for clause, own in zip(clauses[start + 1 :], said[start + 1 :], strict=True):
        if _REQUEST.search(own) or _ONE_TIME.search(own) or _OTHER_SPEAKER.search(own):
            break
        taken.append(clause)
    return _join_clauses(taken)


def _join_clauses(clauses: list[str]) -> str:
    """Join clauses into one line; leave out the last ones if it becomes too long."""
    while len(clauses) > 1 and sum(map(len, clauses)) + 2 * len(clauses) > MAX_PREFERENCE_LENGTH:
        clauses = clauses[:-1]
    text = "，".join(clauses) if any(not clause.isascii() for clause in clauses) else ", ".join(clauses)
    if _TIME_ONLY.search(text) or len(_alphanumerics(text)) < MIN_LETTERS or "\ufffc" in text:
        return ""
    return text


def _is_preference(clause: str) -> bool:
    return bool(_TRIGGER.search(clause) or _PROHIBITION.search(clause)) and not _ONE_TIME.search(clause)


def _section_for(text: str) -> Section:
    if _COMMUNICATION_TERMS.search(text):
        return COMMUNICATION_STYLE
    if _TECHNICAL_TERMS.search(text):
        return TECHNICAL_PREFERENCES
    return COMMUNICATION_STYLE if _STYLE_TERMS.search(text) else WORK_HABITS


def _alphanumerics(text: str) -> str:
    """The letters and digits in one case, which two spellings of a statement share."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
