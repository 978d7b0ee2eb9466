"""Passports, permits, licence plates, SSNs, WeChat ids, foreign phone numbers and addresses.

None has a check digit, so either a word names it or its form is unmistakable: a plate's province, a plus sign with a
country code, a road with a house number below a city.
"""

from collections.abc import Iterator
from typing import Final

from sync.redaction.model import (
    ACCOUNT,
    ADDRESS,
    DOCUMENT,
    EMAIL,
    LANDLINE,
    PASSPORT,
    PASSWORD,
    PERMIT,
    PLATE,
    SSN,
    WECHAT,
    SecretSpan,
)
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import is_word_character, may_end
from sync.redaction.rules.pattern_rules import PatternRule, find_values
from sync.redaction.rules.secret_names import word_set

_GAP: Final = r"[^0-9a-z\n]{0,8}(?:is[ :]{1,2})?"
_NUMBER: Final = r"(?:[ _]?(?:number|num|no|id)\b|#)?"
_PERMIT: Final = r"(?:港澳|台湾|内地|大陆)[^0-9a-z\n，。；]{0,8}通行证|通行证|回乡证|台胞证|home return permit"
# A word names the value; groups by kind. Chinese passports: E or G with 8 digits, two letters with 7.
_LABELLED_NUMBER: Final = Pattern(
    rf"(?i)(?:护照|passport{_NUMBER})(?:号码?|编号)?{_GAP}(?P<passport>[a-z]{{1,2}}[0-9]{{6,8}}|[0-9]{{9}}|[a-z][0-9][0-9a-z]{{5,7}})"
    rf"|(?:{_PERMIT})(?:号码?|编号)?{_GAP}(?P<permit>[chmwt][a-z]?[0-9]{{7,10}}|[0-9]{{8}}(?:[0-9]{{2}})?)"
    rf"|(?:\bssn|social security{_NUMBER}|社会安全号码?){_GAP}(?P<ssn>[0-9]{{3}}[ \-]?[0-9]{{2}}[ \-]?[0-9]{{4}})"
    rf"|(?:\bcv[vc]2?|信用卡安全码|卡背后?三位数?){_GAP}(?P<cvv>[0-9]{{3,4}})"
    r"|(?:\b(?:tel|phone|mobile|cell|call|text|fax)|电话|手机|座机)[^0-9a-z\n+(]{0,6}(?:at |is )?"
    r"(?P<local>[2-9][0-9]{2}[.\- ][2-9][0-9]{2}[.\- ][0-9]{4})"
)
# Other documents, and accounts of messengers: the names of Presidio's recognisers and of Chinese documents.
_DOCUMENT_NUMBER: Final = Pattern(
    r"(?i)(?:驾驶证|驾照|行驶证|军官证|士兵证|警官证|社保|社会保障卡?|医保|居住证|居留证|学生证|车架号|\bvin\b|档案编?号"
    r"|driver'?s? licen[cs]e|aadhaar|national (?:id|insurance)|\bni(?:no)?\b|\bcpf\b|\bnif\b|\bnric\b|medicare)"
    rf"卡?(?:号码?|编号)?{_NUMBER}{_GAP}"
    r"([\p{Han}]字第[0-9]{4,10}号|[a-z]{0,5}[0-9](?:[ \-]?[0-9a-z]){5,19}|[a-z]{2}(?: ?[0-9]{2}){3} ?[a-d])"
)
_ACCOUNT: Final = Pattern(
    r"(?i)\bqq(?:号码?)?[ :=是为|(（]{0,4}(?:is )?([1-9][0-9]{4,10})"
    r"|(?:支付宝|淘宝|抖音|微博|钉钉|\b(?:alipay|telegram|whatsapp|skype|instagram|discord)\b)(?:账号|帐号|号|id)?"
    r"[ ]?[:=是为][ ]?(@?[a-z0-9_.\-]{5,32})"
)
_BEFORE_NAME: Final = Pattern(r"([EGDSPegdsp][A-Za-z]?[0-9]{7,8})[^0-9A-Za-z\n，。；]{0,6}护照")
# After a card that was replaced: its expiry date and check number.
_EXPIRY: Final = Pattern("\ue000[ ,，/|]{1,3}(?:0[1-9]|1[0-2]) ?/ ?(?:20)?[2-4][0-9][ ,，/|]{1,3}([0-9]{3,4})")

# GA 36-2018: province, letter of the office, five characters; six for new energy with D or F first or last.
_PLATE: Final = Pattern(
    "[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-NP-Za-hj-np-z][·•・. \\-]?"
    "(?:[DFdf][A-HJ-NP-Za-hj-np-z0-9][0-9]{4}|[0-9]{5}[DFdf]|[A-HJ-NP-Z0-9]{4}[A-HJ-NP-Z0-9挂学警港澳]|[a-hj-np-z0-9]{5})"
)
_PLATE_DIGITS: Final = 3  # at least; GA 36 allows two letters among the five characters

# Country code -> digits of a number behind it (ITU-T E.164 and the national plans).
_COUNTRIES: Final = {
    **dict.fromkeys(("852", "853", "65"), (8,)),
    **dict.fromkeys(("886", "61", "33", "60"), (9,)),
    **dict.fromkeys(("1", "44", "81", "91", "7"), (10,)),
    **dict.fromkeys(("82", "49"), (9, 10, 11)),
}
_FOREIGN_PHONE: Final = Pattern(
    r"(?:\+|\(\+?|\b00)(?:852|853|886|65|61|33|60|44|81|91|82|49|7|1)\)?[ .\-]?\(?[0-9](?:[ .\-()]{0,2}[0-9]){7,10}"
    r"|\b(?:852|853)[ \-][2-9][0-9]{3}[ \-]?[0-9]{4}"
    r"|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[.\-][0-9]{4}"
)

_ID: Final = r"[A-Za-z][A-Za-z0-9_\-]{5,19}"
_WECHAT: Final = Pattern(
    rf"(?i)(?:(?:微信(?:号码?|id)|wechat[ _]?id|weixin[ _]?hao)(?P<named>[^0-9a-z_\n]{{0,6}}(?:is )?)"
    rf"|(?:微信|\b(?:vx|wx|wechat))(?P<gap>(?:号|id)?[ ]?[:：是为][ ]?|[ ]))({_ID})"
)
_WXID: Final = Pattern(r"\b(?:wxid_[A-Za-z0-9]{6,20}|gh_[0-9a-f]{12})\b")
_NOT_WECHAT_IDS: Final = word_set(
    "wechat weixin login logout wechatpay openid unionid appid string example username number"
)
_SPOKEN_EMAIL: Final = Pattern(
    r"(?i)[a-z0-9_][a-z0-9._%+\-]{0,63} ?艾特 ?[a-z0-9\-]{1,63}(?: ?(?:点|\.|dot) ?[a-z0-9\-]{2,20}){1,3}"
    r"|[a-z]+[0-9._\-][a-z0-9._\-]{0,60} at [a-z0-9\-]{1,63}(?: dot [a-z]{2,10}){1,2}\b"
)

_PROVINCES: Final = (
    "北京|天津|上海|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|青海|台湾"
    "|内蒙古|广西|西藏|宁夏|新疆|香港|澳门"
)
_NUMERAL: Final = "[0-9一二三四五六七八九十百零甲乙丙丁]"
_ROADS: Final = "(?:大道|道|路|街|巷|弄|胡同|里|村|条|镇|园|苑|庄|坊|小区|社区|花园|公寓|新城|广场|大厦)"
# A road or an estate with a number, then building, unit and room.
_HOUSE: Final = (
    rf"{_ROADS}(?:[东南西北中]段?|[一二三四五六七八九十]{{1,2}}[巷里弄])? ?{_NUMERAL}{{1,5}}(?:[\-之][0-9]{{1,4}})? ?"
    r"(?:号院|号楼|号|弄|栋|幢|座|单元|期)"
    rf"(?:[ ,，]?(?:[\p{{Han}}]{{2,10}}?)??[ ]?[0-9A-Za-z一二三四五六七八九十甲乙丙丁\-]{{1,6}} ?"
    r"(?:号楼|号|栋|幢|座|单元|楼|层|室|房|户|门)){0,5}"
    r"(?:[ ]?[0-9]{3,4}\b)?"
)
_ADDRESS: Final = Pattern(
    rf"(?:中国)?(?:{_PROVINCES})(?:省|市|(?:壮族|回族|维吾尔)?自治区|特别行政区)?[ ]?"
    rf"(?:[\p{{Han}}]{{1,8}}?(?:自治州|地区|市|区|县|旗|镇|乡|街道)[ ]?){{1,4}}[\p{{Han}}A-Za-z0-9 ]{{1,16}}?{_HOUSE}"
    rf"|(?:地址|住址|住在|家住|寄到|寄往|送到|收货地|address)[^0-9a-zA-Z\n]{{0,3}}?"
    rf"(?P<named>[\p{{Han}}]{{2,16}}{_HOUSE})"
)

# 地铁 2 号线, 路条 3 号文件
_NOT_HOUSE_SUFFIXES: Final = ("线", "文", "桩", "出口", "方案", "令", "公告", "议案", "通知")


def _is_number(value: str) -> bool:
    """Whether an id has enough digits: five, or two behind a letter or @."""
    return sum(map(str.isdecimal, value)) >= (5 if value[:1].isdecimal() else 2)


_DOCUMENTS: Final = (
    PatternRule(_LABELLED_NUMBER, (PASSPORT, PERMIT, SSN, PASSWORD, LANDLINE), begins=True, ends=True),
    PatternRule(_BEFORE_NAME, (PASSPORT,), begins=True, ends=True),
    PatternRule(_DOCUMENT_NUMBER, (DOCUMENT,), begins=True, ends=True, is_value=_is_number),
    PatternRule(_ACCOUNT, (ACCOUNT, ACCOUNT), ends=True, is_value=_is_number),
    PatternRule(_EXPIRY, (PASSWORD,), begins=True, ends=True),
    PatternRule(_PLATE, (PLATE,), ends=True, is_value=lambda plate: sum(map(str.isdecimal, plate)) >= _PLATE_DIGITS),
)
_HANDLES: Final = (PatternRule(_WXID, (WECHAT,)), PatternRule(_SPOKEN_EMAIL, (EMAIL,)))


def identity_documents(text: str) -> Iterator[SecretSpan]:
    """Passport, permit, social security and check numbers beside their names, and licence plates."""
    return find_values(text, _DOCUMENTS)


def names_personal_field(name: str) -> bool:
    """Whether a field's name names a personal number, id or address."""
    return len(name) <= _LONGEST_NAME and _FIELD.fullmatch(name)


_LONGEST_NAME: Final = 60  # characters
_FIELD: Final = Pattern(
    r"(?i)(?:.*[_\-. ])?(?:passport|ssn|cv[vc]2?|wechat|weixin|vx|phone|mobile|tel|telephone|fax|address|id_?card)"
    r"(?:[_\- ]?(?:no|number|num|id))?"
    r"|.*(?:护照|身份证|证件|卡号|微信|通行证|回乡证|台胞证|地址|住址|电话|手机|座机|社会安全)(?:号码?|编号)?"
)


def contact_details(text: str) -> Iterator[SecretSpan]:
    """Phone numbers outside mainland China, WeChat ids, and e-mail addresses with 艾特 for the @."""
    for (start, end), *_ in _FOREIGN_PHONE.find_all(text):
        if may_end(text, end) and not is_word_character(text[start - 1 : start]) and _is_foreign_phone(text[start:end]):
            yield SecretSpan(start, end, LANDLINE)
    for _, named, _, (start, end) in _WECHAT.find_all(text):
        value = text[start:end]
        telling = named[0] >= 0 or any(not char.isalpha() and char != "-" for char in value)
        if (
            telling
            and may_end(text, end)
            and value.lower() not in _NOT_WECHAT_IDS
            and text[end : end + 1] not in ("(", ".")
        ):
            yield SecretSpan(start, end, WECHAT)
    yield from find_values(text, _HANDLES)


def postal_addresses(text: str) -> Iterator[SecretSpan]:
    """Chinese addresses down to the number of the house."""
    if text.isascii():
        return
    for whole, named in _ADDRESS.find_all(text):
        if not text.startswith(_NOT_HOUSE_SUFFIXES, whole[1]):
            yield SecretSpan(*(named if named[0] >= 0 else whole), ADDRESS)


def _is_foreign_phone(written: str) -> bool:
    digits = "".join(filter(str.isdecimal, written)).removeprefix("00")
    if written.startswith("(") and len(digits) == 10:
        return True
    return any(digits.startswith(code) and len(digits) - len(code) in counts for code, counts in _COUNTRIES.items())
