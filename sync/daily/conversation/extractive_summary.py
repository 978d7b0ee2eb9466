"""Summarise a conversation by selecting among its own sentences. Pure and deterministic.

A sentence is a fact if it decides, prefers, or names a number, a path or an identifier, and if the user states it.
Questions, requests and code are none. The user's sentences weigh more than the model's; of two that say the same, the
later one counts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from sync.daily.conversation.keywords import is_same_text, keywords, similarity, terms
from sync.daily.model import Code, Content, normalised_content
from sync.log.authorship import one_line
from sync.small_talk import is_small_talk

MAX_SUMMARY_FACTS: Final = 8
MAX_SUMMARY_TAGS: Final = 6
MAX_SUMMARY_BLOCKS: Final = 6
MAX_BLOCK_CHARS: Final = 2_000  # a longer block is a file, not something to remember
MAX_SENTENCE_CHARS: Final = 200
MIN_SENTENCE_CHARS: Final = 4
DEFAULT_TOPIC: Final = "对话记录"

_BLOCK: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n`]*)\n(.*?)\n[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCED: Final = re.compile(r"(`{3,}).*?(?:\1|\Z)", re.DOTALL)  # also in one line, or cut before its end
_ONLY_CODE: Final = re.compile(r"(?:`[^`]*`|〔代码〕|\[(?:代码|code)[^\]]*\]|[\s:：,，.。])+")
_SENTENCE: Final = re.compile(r"[^。！？!?；;\n]+?(?:[。！？!?；;\n]+|\.(?=\s|$)|$)")
_LINE_PREFIX: Final = re.compile(r"^(?:#{1,6}\s+|[-*+•]\s+|\d+[.)、]\s*|>\s*)+")
_POLITE_OPENING: Final = re.compile(
    r"^(?:你好|您好|请问|请|麻烦你?|帮我|帮忙|我想要?|我要|我们来|可以|能不能|"
    r"(?:hi|hello|hey|please|can you|could you|would you|help me(?: to)?|i want to|i would like to|"
    r"let'?s)\b)[\s,，、:：]*",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"决定|选择|选用|采用|改用|改成|改为|使用|存储|位置|方式|部署|必须|一定要|不要|不用|记住|记得|喜欢|偏好|习惯|讨厌|约定|规定|"
    r"结论|原因|因为|修复|解决|端口|路径|版本|截止|生日|名字|叫|"
    r"\b(?:decid\w+|chose|choose|use[sd]?|prefer\w*|always|never|must|should|remember|like[sd]?|because|fixed|solved|"
    r"agreed|deadline|port|version|path|config\w*|my name|switch\w*|instead)\b",
    re.IGNORECASE,
)
_PRECISE: Final = re.compile(r"\d|[A-Za-z_]+[._/][A-Za-z_]|[a-z][A-Z]|`[^`]+`")
_QUESTION: Final = re.compile(
    r"[?？]\s*$|吗[。.]?$|^(?:how|what|why|when|where|which|who|怎么|如何|为什么|什么)\b", re.IGNORECASE
)
_HASHTAG: Final = re.compile(r"(?:^|\s)#([^\s#]{1,40})")


@dataclass(frozen=True, slots=True)
class SummaryTurn:
    """What one side said, with line feeds as line ends."""

    role: Literal["user", "assistant"]
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.replace("\r\n", "\n").replace("\r", "\n"))


class _Sentence(msgspec.Struct, frozen=True):
    role: str
    turn: int
    text: str
    is_question: bool


def summarise(turns: Sequence[SummaryTurn]) -> Content:
    """Extract topic, facts, code blocks and tags."""
    prose = [SummaryTurn(turn.role, _FENCED.sub("\n", _BLOCK.sub("\n", turn.text))) for turn in turns]
    sentences = list(_sentences(prose))
    weights = dict.fromkeys(keywords([turn.text for turn in prose], 20), 1.0)
    topic = _topic(sentences, weights)
    return normalised_content(topic, _facts(sentences, weights, topic), _blocks(turns), _tags(prose, sentences))


def count_rounds(turns: Sequence[SummaryTurn]) -> int:
    """The number of the user's turns, which `min_conversation_length` limits."""
    return sum(turn.role == "user" and bool(turn.text.strip()) for turn in turns)


def quality(summary: Content, turns: Sequence[SummaryTurn]) -> float:
    """Rate a summary, 0 to 1.

    It should cover the conversation's keywords, have facts and a topic, be shorter than the conversation, and not
    repeat itself. Without turns only the latter can be rated.
    """
    text = " ".join(turn.text for turn in turns)
    about = keywords([text], 15)
    words = set(terms(summary.full_text))
    covered = sum(word in words or word in summary.full_text.lower() for word in about) / len(about) if about else 1.0
    length = len(summary.topic) + sum(map(len, summary.facts))
    short = 1.0 if not text or length <= max(0.5 * len(text), 120) else 0.5
    pairs = [similarity(one, other) for at, one in enumerate(summary.facts) for other in summary.facts[:at]]
    topical = 0.0 if summary.topic == DEFAULT_TOPIC or len(summary.topic) < MIN_SENTENCE_CHARS else 1.0
    fact_share = min(len(summary.facts) / 3, 1.0)
    alone = 1 - max(pairs, default=0.0)
    return round(0.45 * covered + 0.2 * fact_share + 0.15 * topical + 0.1 * short + 0.1 * alone, 2)


def _sentences(turns: Sequence[SummaryTurn]) -> Iterator[_Sentence]:
    for number, turn in enumerate(turns):
        for match in _SENTENCE.finditer(turn.text):
            text = one_line(_LINE_PREFIX.sub("", match.group().strip())).rstrip("。；;")
            asks = _QUESTION.search(text) is not None
            is_code = text.count("`") % 2 == 1 or _ONLY_CODE.fullmatch(text) is not None
            if len(text) >= MIN_SENTENCE_CHARS and terms(text) and not is_code:
                yield _Sentence(turn.role, number, text, asks)


def _topic(sentences: Sequence[_Sentence], weights: dict[str, float]) -> str:
    """The user's best sentence among the first, by its keywords; earlier ones are preferred."""
    own = [sentence for sentence in sentences if sentence.role == "user"] or list(sentences)
    first = own[:4]
    if not first:
        return DEFAULT_TOPIC
    best = max(
        enumerate(first), key=lambda item: _keyword_weight(item[1].text, weights) - 2.0 * item[1].turn - 0.6 * item[0]
    )[1]
    text = best.text
    while (shorter := _POLITE_OPENING.sub("", text)) != text and len(shorter) >= MIN_SENTENCE_CHARS:
        text = shorter
    cut = "…" if text.endswith(("...", "…")) else ""
    return _truncate(text.rstrip("?？!！。.,，…"), 60 - len(cut)) + cut


def _facts(sentences: Sequence[_Sentence], weights: dict[str, float], topic: str) -> list[str]:
    scored = [
        (_sentence_score(sentence, weights), at, sentence)
        for at, sentence in enumerate(sentences)
        if not sentence.is_question and sentence.text != topic
    ]
    chosen: list[tuple[int, _Sentence]] = []
    for worth, at, sentence in sorted(scored, key=lambda item: (-item[0], item[1])):
        if worth < 1.0:
            break
        same = next((n for n, (_, old) in enumerate(chosen) if is_same_text(sentence.text, old.text)), None)
        if same is None:
            chosen += [(at, sentence)] if len(chosen) < MAX_SUMMARY_FACTS else []
        elif at > chosen[same][0] and (sentence.role == "user" or chosen[same][1].role != "user"):
            chosen[same] = at, sentence
    return [_truncate(sentence.text, MAX_SENTENCE_CHARS) for at, sentence in sorted(chosen, key=lambda item: item[0])]


def _sentence_score(sentence: _Sentence, weights: dict[str, float]) -> float:
    worth = 1.0 if _DECISION.search(sentence.text) else 0.0
    worth += 0.5 if _PRECISE.search(sentence.text) else 0.0
    worth += min(_keyword_weight(sentence.text, weights) * 0.15, 0.6)
    worth += 0.3 if sentence.role == "user" else 0.0
    if sentence.role == "user" and not _POLITE_OPENING.match(sentence.text) and not is_small_talk(sentence.text):
        worth = max(worth, 1.0)  # what they agreed to, whatever its words
    return worth if len(sentence.text) <= 2 * MAX_SENTENCE_CHARS else worth - 0.5


def _keyword_weight(text: str, weights: dict[str, float]) -> float:
    return sum(weights.get(word, 0.0) for word in set(terms(text)))


def _blocks(turns: Sequence[SummaryTurn]) -> list[Code]:
    blocks = [
        Code(match.group(2).strip().split(" ")[0], match.group(3))
        for turn in turns
        for match in _BLOCK.finditer(turn.text)
        if match.group(3).strip() and len(match.group(3)) <= MAX_BLOCK_CHARS
    ]
    return list(dict.fromkeys(blocks))[-MAX_SUMMARY_BLOCKS:]  # the latest versions


def _tags(turns: Sequence[SummaryTurn], sentences: Sequence[_Sentence]) -> list[str]:
    explicit = [tag for turn in turns if turn.role == "user" for tag in _HASHTAG.findall(turn.text)]
    said = [one for one in sentences if not is_small_talk(one.text)]
    own = keywords([one.text for one in said if one.role == "user"], MAX_SUMMARY_TAGS)
    every = keywords([one.text for one in said], MAX_SUMMARY_TAGS)
    return list(dict.fromkeys([*explicit, *own, *every]))[:MAX_SUMMARY_TAGS]


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
