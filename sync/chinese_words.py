"""Cut Chinese text into words, with the segmenter of the extra `embeddings`.

Without it the callers cut by characters. The segmenter takes 33 MB, so it is loaded with the first text.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Final

# Tags of the segmenter's dictionary for words that name nothing: pronouns, particles, adverbs, numbers, idioms …
_EMPTY_TAGS: Final = frozenset("r d p c u uj ul uv uz ud ug f q m mq t y e o x zg k h b a z i l df vd vg rr rz".split())
_EMPTY_WORDS: Final = frozenset(
    """
一起 不能 东西 事情 今天 介绍 作为 你好 使用 例如 再聊 分享 加油 包括 叫做 可能 听说 告诉 喜欢 回答 因为 地方
如果 尝试 希望 帮助 建议 开始 得到 情况 想要 感到 感觉 应该 成为 我会 打算 找到 找我聊 提供 推荐 方式 方法 方面
时候 明天 昨天 是否 有所 有没有 有着 期待 比如 没有 注意 现在 相信 看到 看看 知道 确实 祝你 继续 考虑 聊天 聊聊
能够 觉得 认为 记得 试试 谢谢 起来 还有 进行 这是 遇到 问题 需要 了解 变得
""".split()
)


@cache
def _segmenter() -> Callable[[str], Sequence[tuple[str, str]]] | None:
    if find_spec("rjieba") is None:
        return None
    import rjieba  # noqa: PLC0415 - at its first use

    tag: Callable[[str], Sequence[tuple[str, str]]] = rjieba.tag
    return tag


def content_words(text: str) -> list[str] | None:
    """The words of a text that name something, from two characters; None without a segmenter."""
    tag = _segmenter()
    if tag is None:
        return None
    words = ((word.strip(), kind) for word, kind in tag(text))
    return [word for word, kind in words if len(word) > 1 and kind not in _EMPTY_TAGS and word not in _EMPTY_WORDS]
