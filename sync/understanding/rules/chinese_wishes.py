"""Chinese requests to the assistant that are meant to last: about answers, code, documents."""

import re
from typing import Final

from sync.understanding.model import FactKind
from sync.understanding.rules.reading import Reading
from sync.understanding.rules.topics import is_about_replies, reply_topic

_NEGATION: Final = re.compile(
    r"(?:不|没|别|勿|戒|停了|取消|讨厌|反感|受不了)(?!错|过(?!敏)|久|断|仅|同|管|论|得不|好意思)"
)


def is_negative(clause: str) -> bool:
    """Whether a clause denies something."""
    return _NEGATION.search(clause) is not None


_STANDING: Final = re.compile(
    r"以后|今后|往后|从今|从现在(?:起|开始)|从此|每次|每回|一律|统一|统统|总是|始终|永远|默认|任何时候|凡是"
    r"|但凡|只要是|所有|任何|别再|不要再|不用再|别老|别总(?!结)|甭再|再也别|一直|平时|长期|动不动"
    r"|没有?特殊|除非|一后(?=都|请|要|就|别)|能[^，,]{1,2}就[^，,]{1,2}|请都|越[^，,]{1,3}越好|(?:我|所有|每[个条份]"
    r"|全部"
    r"|给我"
    r"|平时)[^，,]{0,12}都(?:用|按|附|带|标|加|请|要|写|给|以|放|走|不要|别)|(?<![大家们])都(?:请|要用|给我)"
    r"|时候?[，,]?(?:都"
    r"|请|先|多|少|别|不要|不用|千万|直接|尽量)"
)
_MANNER: Final = re.compile(  # how the assistant speaks: such a request lasts without saying so
    r"(?i)回[答复]|答复|说话|语气|口吻|(?:解释|讲解)(?=[^，,]{0,4}(?:时|尽量|都|得|越))|称呼|叫我|喊我|称我"
    r"|客套|客气|啰嗦|罗嗦|废话|表情|emoji|道歉|人话|大白话|长篇大论|[跟和对]我说|问我(?!要)|默认我|当我"
    r"|^别(?:再)?[给跟对]我(?:发|推(?!荐)|讲|说|来|安利)(?!这|那|了)|卖萌|恭维"
    r"|拍马屁|别夸|绕弯子|打比方"
)
_ADVICE: Final = re.compile(r"别(?:再)?(?:给我)?推荐|术语|提醒我")  # lasts too, unless a fact before it is its reason
_WEAK: Final = re.compile(r"请|都|尽量|别|不要|按|用|先|给我|只|少|记得|务必|千万|不用|就写|写")
_DOCUMENT_RULE: Final = re.compile(
    r"(?i)^(?:以后)?(?:提交信息|commit message|变量名?|函数名|类名|分支名|表名|字段名|文件名|包名|注释)(?:都"
    r"|请|要|统一|一律|我|就)*(?:用|写)|^写(?:代码|前端|后端|脚本|SQL|函数|测试)(?:时|的时候)?(?:请|要|都|别"
    r"|不要|不用|必须|一律)|^[^，,我你他]{2,8}(?:就)?(?:别|不要|不用)再?[^，,]{1,6}了$"
)
_DIRECTIVE: Final = re.compile(
    r"^(?:你|您|请|麻烦您?|希望[你您]|望(?=今后|以后)|拜托|烦请|劳烦|还请|务必|千万|就|也|都|直接|另外|那|以后|今后"
    r"|往后"
    r"|从今(?:天起|往后)?|从现在(?:起|开始)|每次|凡是|默认|统一|一律|尽量|没有?[^，,]{0,6}的话|可以的话|最好"
    r"|还是|，|,|\s)*"
    r"(?:请|别|不要|不用|勿|甭|不准|不许|少|多|用|使用|按|以|给我?|叫我|称|喊我|写|说|讲|回[答复]|答|回|先"
    r"|直接|附|加|带|注明|标|列|输出|解释|举|推荐|提醒|当我|默认|默认我|把|跟我|和我|对我|保持|控制|改|继续"
    r"|尽量|能短就短|简短|简洁|简单|详细|统一|一律|记住|记得|放|发|问|叫|拿|换)(?!得|了)"
)
_WISH_VERB: Final = re.compile(
    r"你就?(?:用|按|以|叫)[^，,]{1,8}(?:就行|就好)|(?<![大家们])(?:统一|一律|统统|全都?|都)(?:请|要)?(?:用|使用|写|按"
    r"|加|附|带|标|保留|以|给我|配|抄送|命名|存|发|别|不要"
    r"|不用|翻)(?!了|过|户)|请(?:都|加|附|带|用|按|标|写明|注明|保留|尽量)|我?(?:希望|想|要求|更想|宁愿|喜欢|偏好"
    r"|习惯)(?:你|您|以后|今后|每次|回[答复]|答案)|(?:回[答复]|解释|说话|语气|输出|代码|注释|变量名?|函数名?"
    r"|提交信息|commit message|文档|表格|列表|建议|方案|金额|日期(?:格式)?|时间|单位|标题|例子|数字|价格|术语"
    r"|图表?|录屏|报价|邮件|周报)[^，,]{0,10}?(?:请|都|尽量|一律|统一|要|就|用|写|别|不要|不用|按|控制|越|先"
    r"|给|简|短|详|附|带|加|配|得)"
)
_NO_WISH: Final = re.compile(
    r"^(?:带|加|放|来|给)[点些几]|^(?:就)?(?:别|不要|不用)(?!再|老|总是)[^，,]{1,4}了$|^(?:以后|今后)?(?:都"
    r"|就)?(?:这样|如此|照此|这么办)|^都用"
    r"|^把(?![^，,]*(?:以后|每次|我))|我要(?:发|交|给|贴|打印)|^(?:你)?(?:要不要)|^(?:请)?(?:回[答复]"
    r"|答复)?不要解释$|^(?:请|你|再|那)*(?:解释|讲解|提醒我|问我|介绍|讲讲|说说)(?![^，,]{0,6}(?:的时候|时[，,])"
    r"|的?时|要|尽量|都|别|请)"
    r"|(?:里|中|上)的?(?:所有|全部|每[个行列])|(?:统一|全部|都|一律|全)(?:改|换|删|去掉|替换"
    r"|转成)(?![^，,]*(?:以后|每次))|所有[^，,]{1,6}(?:改|删|去掉|换|标红|加粗|替换)|注意下?$|注意一下$|别的"
    r"|包涵|自我介绍|以后(?:再|的事|吧|会|就知道|怎)|你[^，,]{0,6}得(?:很|太|真|挺|不错|好)|^(?:你)?(?:总是"
    r"|老是|每次)(?:都)?(?:报错|说得|这样|失败|出错|忘)|^(?:别|不要)(?:闹|急|怕|担心|生气|难过|走|吵|慌|了"
    r"|这样|那样)|^默认(?:密码|值|端口|用户)"
)
_ONCE: Final = re.compile(
    r"这[位些几只头]|这[次回一]?(?:次|回|遍|趟)|这一?(?:段|句|篇|份|张|封|条|首|页|步|题|道|行|处|版)|就?这个(?!项目"
    r"|仓库"
    r"|系统|团队|公司|组|人|习惯|平台|群|程序)|那(?:次|个|段|份|张|条)|本次|此处|这里|刚才|刚刚|今[天晚早]"
    r"|明[天早晚]|昨[天晚]|暂时|临时|待会|等会|一会儿?|马上|这[两几]天"
    r"|这会儿|眼下|先(?:用|别|不|给我看|到|把|这)|第[一二三四五\d]+[点段个步章]|这版|该(?:段|函数|文件|页)|重新生成"
    r"|再(?:来|详细|写|给)|接着|继续写|这周|本周|这阵子"
    r"|现在先"
)
_POSITION: Final = re.compile(r"上面|下面|结尾|开头|封面|正文|首页|落款|附件")  # of the text at hand, unless 以后
_REQUEST: Final = re.compile(
    r"^(?:那|你|请|麻烦|能不能|可以|现在|先|再|然后|顺便|所以|就|您|给|一下|，)*(?:帮|给(?:些|点|几)|给我(?:一|些|点"
    r"|几|个|看|找|写|做"
    r"|推荐|讲|列|出|翻)|替我|教我|告诉我|看看|看下|看一下|解释一下|讲讲|写[个一段首封篇条份下]|做[个一份]"
    r"|列[个一出]|来[个一份点]|生成|推荐[一两三几五十]|查一?下|改一?下"
    r"|优化|重构|修复|整理|介绍|算|搜|找|订|翻译|总结|统计|设计|画|安排|规划|起个|想[个几]|出[个份]|导出|打开"
    r"|关闭|删|把|将|换一|换家)|(?:一下|改一改|看一看|行不|好吗|可以吗)[吧呗]?$"
)


def read_wish(clause: str, *, has_reason: bool, is_heading: bool = False) -> Reading | None:
    """A lasting request about answers, code or documents; not one about the task at hand.

    `has_reason`: the author gave a fact about themselves beside it, so that a plain request is meant to last.
    `is_heading`: a text or a question follows, which a plain request is about: 用一句话回答：….
    """
    standing = _STANDING.search(clause) is not None
    if _ONCE.search(clause) or _NO_WISH.search(clause) or (_POSITION.search(clause) and not standing):
        return None
    if not (_DIRECTIVE.search(clause) or _WISH_VERB.search(clause) or _DOCUMENT_RULE.search(clause)) or (
        _REQUEST.search(clause) and not standing
    ):
        return None
    if is_heading and not standing:
        return None
    standing = standing or _DOCUMENT_RULE.search(clause) is not None
    if not (standing or _MANNER.search(clause) or _ADVICE.search(clause) or (has_reason and _WEAK.search(clause))):
        return None
    is_about = is_about_replies(clause) or re.search(r"[句字页段行]|长|短", clause) is not None
    slot = reply_topic(clause) if is_about else None
    if slot is None and re.search(r"提交信息|commit", clause):
        slot = "vcs.commit"
    return Reading(FactKind.PREFERENCE, slot, is_negative(clause))


def lasts_alone(clause: str) -> bool:
    """Whether a lasting request holds whatever the reason beside it: it says so, or is about answers."""
    return _STANDING.search(clause) is not None or _MANNER.search(clause) is not None


_POLITE: Final = re.compile(
    r"^(?:你|您)?(?:以后|今后|往后|每次)[^，,]{0,8}?(?:能不能|能否|可不可以|可以|能|麻烦你?)(?!取代|不能"
    r"|再)(?P<wish>[^，,吗？?]+)"
)


def read_polite_wish(clause: str) -> Reading | None:
    """A lasting request about answers in the form of a question: 以后能不能别用英文回答我？"""
    match = _POLITE.search(clause)
    if (
        match is None
        or not _MANNER.search(clause)
        or _ONCE.search(clause)
        or re.search(r"会不会|什么|怎么|为什么|影响", clause)
    ):
        return None
    return Reading(FactKind.PREFERENCE, reply_topic(clause), is_negative(match["wish"]))
