"""What a statement says about an older one: that it replaces, corrects or ends it, and the former value it names."""

import re
from typing import Final

from sync.understanding.model import Change

_REPLACES: Final = re.compile(
    r"(?i)改(?:用|成|为|回|走|喝|吃|在|到|开|坐|写|叫|订|做|由)|换(?:成|到|了|回|用|掉|去|来)|替换|取代|代替"
    r"|切换?[到回成]|迁[到移去]|升级[到成]|转(?:到|去|岗|学|行|成|正|专业)|调(?:到|去|回|岗)|搬(?:到|去|来|回"
    r"|进|家)|跳槽"
    r"|接到.{1,6}(?:住|来|家)|已经是|升(?:到|为|成|任|了)|提(?:到|高到|前到)|推迟|延[到期后]|增[加至到]"
    r"|(?<![写加用要放])太[少多长短].{0,3}[，,]?"
    r"|\b(?:moved?(?: over)? (?:to|into|in with)|have moved|has moved|switched (?:to|over|from)|(?:moved"
    r"|changed|migrated) from|changed (?:to"
    r"|it to)|replace[ds]?|instead(?: of)?|migrated|upgraded|promoted|transferred"
    r"|too (?:little|much|long|short|few|many)|no longer .{1,30}\bbut|gone back to"
    r"|back to)\b"
)
# What holds now may be new without an older one: 我现在在学吉他.
_NOW: Final = re.compile(
    r"(?i)(?:^|我|家|们)(?:们|家)?(?:现在|如今|目前)|现在(?:都|是|住|用|在|租|只|已经|改|我)"
    r"|\b(?:these days|nowadays)\b|(?<!from )\bnow\b(?! on)"
)
_CORRECTS: Final = re.compile(
    r"(?i)纠正|更正|订正|记错|说错|打错|搞错|弄错|写错|算错|看错|讲错|口误|说岔|漏[数说写]|换算错|不对[，,]"
    r"|(?:^|[，,。])其实(?:我|是|他|她|不)|应该是|准确(?:地|来)?说|确切(?:地|来)?说|之前(?:说|讲|写)的|搞混"
    r"|翻了|(?:^|[，,])不是[^，,]{1,10}[，,](?:而)?是"
    r"|\b(?:correction|i misspoke|misspoke|got that wrong|i was wrong|my mistake|my bad|i meant"
    r"|actually(?:,)? (?:i|my|it|we|the)|scratch that|typo|mistyped|misread|not .{1,20}, (?:it's|but))\b"
)
_ENDS: Final = re.compile(
    r"(?i)不再|不想再|再也不|别再|不用再|放弃|退订|飞走|作废|下架|撤(?:了|掉)|关(?:了|掉)$|治好|痊愈|死了|离职"
    r"|断(?:了|掉)|(?:不|没)(?!过|久)[^，,。不]{1,8}了(?![解得])|戒(?:了|掉|咖|烟|酒|糖)|停了|停掉|取消|作废"
    r"|分手|离婚|去世|走了$|走了[，,]|没了|卖(?:了|掉)|辞(?:了|掉|职)|退(?:了|掉|订|租|出)|注销|拆了|丢了|坏了"
    r"|结束了|治好|好了[，,]|一口都不|不.{0,4}过敏"
    r"|\b(?:no longer|any ?more|anymore|no more|stopped|stop (?:with )?the|you can stop|quit|gave up|given up"
    r"|got rid of|sold|cancel(?:led|ed)?|called off|died|passed away|broke up|divorced|don't have any"
    r"|never again|not going|dropped|retired)\b"
)
_FORMER: Final = (
    re.compile(r"(?:替换|取代|代替|替代|顶替)(?:掉|了)?\s*(?P<f>[^，,。！]{1,20}?)(?:[，,。！]|$)"),
    re.compile(r"从\s*(?P<f>[^，,。]{1,16}?)\s*(?:换|改|迁|转|切|搬|升)"),
    re.compile(r"不是\s*(?P<f>[^，,。]{1,16}?)\s*[，,]\s*(?:而)?是"),
    re.compile(r"(?:，|,)\s*不是\s*(?P<f>[^，,。]{1,16})"),
    re.compile(r"(?P<f>[^，,。我]{1,12}?)(?:已经|都|我)?(?:换成|换到|换了|改成|改用|搬到|迁到|转到|改为)"),
    re.compile(r"(?:不再|再也不|不)(?:想|喜欢|用|吃|喝|玩|去|养|学)*(?P<f>[^，,。了]{1,12}?)了"),
    re.compile(r"(?:戒|取消|停)(?:了|掉)?\s*(?P<f>[^，,。]{1,12})"),
    re.compile(r"(?i)\breplace[ds]? (?P<f>[\w+#. -]{1,24}?) (?:with|by)\b"),
    re.compile(r"(?i)\binstead of (?P<f>[\w+#. -]{1,24})"),
    re.compile(r"(?i)\bfrom (?P<f>[\w+#. -]{1,24}?) to\b"),
    re.compile(r"(?i)\bno more (?P<f>[\w+#. -]{1,24}?)(?: for\b|$|[,.])"),
    re.compile(
        r"(?i)\b(?:stop(?:ped)?|quit|gave up|sold|cancelled|dropped|got rid of) (?:with )?(?:the |my "
        r"|our )?(?P<f>[\w+#. -]{1,24}?)(?: now\b|$|[,.])"
    ),
    re.compile(r"(?i)\bno longer (?P<f>[\w+#. -]{1,24}?)(?:$|[,.])"),
)


def find_change(text: str, *, context: str = "") -> tuple[Change | None, str | None]:
    """The change that a statement names, and the former value; `context` is the sentence around it."""
    if _CORRECTS.search(context or text):
        change: Change | None = Change.CORRECTS
    elif _REPLACES.search(text):
        change = Change.REPLACES
    elif _ENDS.search(text):
        change = Change.ENDS
    elif _NOW.search(text):
        change = Change.NOW
    else:
        return None, None
    former = next((match["f"].strip() for pattern in _FORMER if (match := pattern.search(text))), None)
    return change, former or None


def is_change(text: str) -> bool:
    """Whether a text names a change at all."""
    return bool(_CORRECTS.search(text) or _REPLACES.search(text) or _ENDS.search(text) or _NOW.search(text))


def is_correction(text: str) -> bool:
    """Whether a text says that something said before is wrong."""
    return _CORRECTS.search(text) is not None
