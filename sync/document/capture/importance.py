"""Estimate how much an exchange matters, from 0 to 1, if the caller does not say.

Used for `record.min_importance` only: exchanges below it stay in the log but not in the document. Small talk is about
0.1, a question about 0.4, a decision, rule, date or fix 0.6 and more, a request to remember or a preference 0.9.
"""

import re
from typing import Final

BASELINE: Final = 0.4
SMALL_TALK: Final = 0.1
EXPLICIT_REQUEST: Final = 0.9

_SMALL_TALK: Final = re.compile(
    r"(?i)^(?:你好|您好|嗨|哈喽|早上?好|晚安|在吗|谢谢你?|多谢|辛苦了|好的?|嗯+|哦|可以|收到|明白了?|知道了"
    r"|没事了?|再见|拜拜|哈+|继续"
    r"|hi|hello|hey|thanks?|thank you|ok(?:ay)?|bye|good (?:morning|night)|got it|sure|yes|no|cool"
    r"|nice)[\s。！!~～,，.呀啊哦的了吧]*$"
)
_REMEMBER: Final = re.compile(
    r"(?i)记住|记一下|记下来|别忘|不要忘|很?重要|务必|\b(?:remember|don't forget|important|note that)\b"
)
_SIGNALS: Final = (
    re.compile(r"(?i)决定|选定|约定|规定|原则|方案|定为|采用|改为|\b(?:decid|decision|agree|chose|rule|policy|plan\b)"),
    re.compile(r"\d{1,2}[月:：]\d{1,2}|\d{4}[-/年]\d{1,2}|截止|期限|预算|(?i:\bdeadline|\bdue\b|\bbudget\b)"),
    re.compile(r"(?i)原因是|修复|解决|报错|故障|回滚|\b(?:fix(?:ed)?|root cause|bug|error|solved|workaround)\b"),
    re.compile(r"```|\bdef \w|\bclass \w|[{};]\s*\n|(?i:\bselect\b.+\bfrom\b)"),
)
_SIGNAL_WEIGHT: Final = 0.15
_LONG_MESSAGE_LENGTH: Final = 200  # characters


def estimate_importance(user_message: str, ai_response: str, *, states_preference: bool) -> float:
    """Rounded to two places, because the event stores it."""
    if _SMALL_TALK.match(user_message.strip()):
        return SMALL_TALK
    if states_preference or _REMEMBER.search(user_message):
        return EXPLICIT_REQUEST
    both = f"{user_message}\n{ai_response}"
    weight = BASELINE + _SIGNAL_WEIGHT * sum(bool(sign.search(both)) for sign in _SIGNALS)
    weight += 0.1 if len(user_message) > _LONG_MESSAGE_LENGTH else 0.0
    return round(min(weight, EXPLICIT_REQUEST), 2)
