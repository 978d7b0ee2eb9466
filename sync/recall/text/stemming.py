"""Stop words of English and Chinese, and English stems. Pure.

Queries drop stop words, the index keeps them: a query of stop words alone still finds something.
In Chinese they also cut a run of characters into words, so that no pair of characters spans two words.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

MIN_STEMMED_CHARS: Final = 4
MAX_CACHED_STEMS: Final = 16_384
ENGLISH_STOP_WORDS: Final = frozenset(
    """
a about above after again against ain all also am an and any are aren as at be because been before being below
between both but by can cannot could couldn d did didn do does doesn doing don down during each else ever for from
further get gets getting got had hadn has hasn have haven having he her here hers herself hey hi him himself his
how i if in into is isn it its itself just let like ll m ma maybe me might mine more most much must my myself no
nor not now of off oh ok okay on once one only or other our ours ourselves out over own please quite rather re
really s same shall she should shouldn so some such t than thank thanks that the their theirs them themselves then
there these they this those through to too under until up upon us ve very was wasn we well were weren what when
where which while who whom whose why will with won would wouldn yeah yes yet you your yours yourself
""".split()
)

_PHRASES: Final = """
为什么 怎么样 是不是 有没有 能不能 可不可以 不好意思 没关系 今天 昨天 明天 现在 刚才 刚刚 最近 以前 以后 之前 之后 上次
下次 知道 觉得 感觉 真的 非常 特别 超级 十分 比较 一个 一些 一下 一点 一起 有点 什么 怎么 怎样 哪些 哪个 哪里 多少
可以 可能 因为 所以 但是 不过 如果 然后 还是 还有 就是 不是 没有 这个 那个 这些 那些 这样 那样 这么 那么 这里 那里
我们 咱们 你们 他们 她们 它们 自己 大家 的话 时候 应该 需要 想要 希望 能够 已经 正在 其实 确实 当然 或者 而且 并且
以及 关于 对于 谢谢 请问 你好 您好 再见 告诉 帮我 对了 是的 好的 好啊 对呀 对啊 哈哈 记得
""".split()
_PARTICLES: Final = "的了是我你您他她它这那在有和就都也不很会能把被让给着过还又再吗吧呢啊呀哦哈嘿哇哎诶耶啦嘛嗯请"
CHINESE_STOP_WORDS: Final = re.compile("|".join((*sorted(_PHRASES, key=len, reverse=True), f"[{_PARTICLES}]")))

_IRREGULAR: Final = {  # forms that no suffix rule of a stemmer reaches
    form: stem
    for stem, forms in (
        line.split(":")
        for line in """be:were been|become:became|begin:began begun|bite:bit bitten|blow:blew blown|break:broke broken
bring:brought|build:built|buy:bought|catch:caught|child:children|choose:chose chosen|come:came|cost:costs|dig:dug
draw:drew drawn|dream:dreamt|drink:drank drunk|drive:drove driven|eat:ate eaten|fall:fell fallen|feel:felt|fight:fought
find:found|fly:flew flown|foot:feet|forget:forgot forgotten|forgive:forgave forgiven|freeze:froze frozen|give:gave given
go:went gone goes|grow:grew grown|hang:hung|hear:heard|hide:hid hidden|hold:held|keep:kept|know:knew known
lead:led|leave:left|lend:lent|life:lives|lose:lost|make:made|man:men|mean:meant|meet:met|mouse:mice|pay:paid
person:people|ride:rode ridden|ring:rang rung|rise:rose risen|run:ran|say:said|see:saw seen|sell:sold|send:sent
shake:shook shaken|shoot:shot|show:shown|sing:sang sung|sink:sank|sit:sat|sleep:slept|speak:spoke spoken|spend:spent
stand:stood|steal:stole stolen|stick:stuck|strike:struck|swim:swam swum|take:took taken|teach:taught|tell:told
think:thought|throw:threw thrown|tooth:teeth|understand:understood|wake:woke woken|wear:wore worn|wife:wives
win:won|woman:women|write:wrote written""".replace("\n", "|").split("|")
    )
    for form in forms.split()
}


@lru_cache(maxsize=MAX_CACHED_STEMS)
def stem(word: str) -> str:
    """The form under which the index keeps a lower-case Latin word. A word with digits or marks stays as it is."""
    word = _IRREGULAR.get(word, word)
    if len(word) < MIN_STEMMED_CHARS or not (word.isascii() and word.isalpha()):
        return word
    stemmed: str = _stemmer()(word)
    return stemmed


@cache
def _stemmer() -> Callable[[str], Any]:
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415  # imports all languages, 10 ms

    return lambda word: EnglishStemmer().stemWord(word)  # one for each word: it has state, and threads share this
