"""Text → terms: what the index holds and what a query asks for, by the same rules. Pure.

Decisions
    Scripts without spaces (Chinese, kana, Hangul, Thai) are kept as pairs of characters and as single ones: a word of
    one or two characters is found, and no dictionary has to know it.
    Identifiers are kept whole and in parts: `fetchUserById`, `retry_count`, `src/app.py`, `E1001`.
    Full-width forms, case and the common traditional characters are folded; the table is small, because a character
    that is not in it costs one character of a match.
    Most texts need little of that, and are looked at for it first: a search for a set of characters costs a tenth of
    the folding.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from operator import add
from typing import Final, NamedTuple

from sync.recall.text.stemming import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS, stem

MAX_TERM_CHARS: Final = 64  # characters of one term; what is longer is a blob that nobody types again
MAX_TEXT_CHARS: Final = 20_000  # characters of one item that are indexed
MAX_UNCUT_RUN: Final = 3  # a run this short is a word that somebody typed: its function words stay

_TRADITIONAL: Final = """
們们 個个 這这 來来 時时 說说 會会 對对 後后 學学 國国 發发 過过 還还 沒没 與与 為为 無无 樣样 頭头 點点 開开 關关
問问 間间 門门 見见 觀观 覺觉 現现 實实 經经 濟济 業业 務务 產产 員员 動动 電电 腦脑 網网 絡络 線线 連连 進进 運运
遠远 選选 邊边 達达 邏逻 輯辑 資资 訊讯 貨货 費费 買买 賣卖 讀读 書书 寫写 筆笔 記记 錄录 錯错 誤误 試试 驗验 測测
設设 計计 劃划 畫画 圖图 標标 題题 類类 別别 種种 歲岁 兒儿 歡欢 愛爱 親亲 媽妈 爺爷 師师 傅傅 園园 區区 縣县 鄉乡
鎮镇 號号 碼码 鑰钥 單单 雙双 數数 據据 庫库 緩缓 儲储 檔档 案案 夾夹 鍵键 盤盘 視视 窗窗 聲声 樂乐 戲戏 劇剧 飯饭
館馆 廳厅 廚厨 雞鸡 鴨鸭 魚鱼 麵面 條条 餅饼 湯汤 鍋锅 燒烧 麼么 應应 該该 當当 從从 給给 讓让 請请 謝谢 誰谁 幾几
兩两 萬万 億亿 東东 車车 機机 場场 飛飞 島岛 灣湾 廣广 長长 張张 陳陈 劉刘 趙赵 吳吴 鄭郑 孫孙 馬马 黃黄 楊杨 葉叶
蘇苏 許许 蕭萧 羅罗 龍龙 鳥鸟 貓猫 豬猪 獅狮 體体 醫医 藥药 療疗 護护 養养 傷伤 髮发 臉脸 淚泪 腳脚 氣气 環环 節节
約约 結结 構构 組组 織织 統统 領领 導导 訓训 練练 習习 慣惯 優优 勢势 勝胜 負负 責责 勞劳 職职 權权 義义 證证 簽签
協协 議议 論论 討讨 談谈 話话 語语 詞词 詩诗 調调 處处 變变 換换 轉转 遞递 傳传 輸输 離离 啟启 閉闭 舊旧 錢钱 銀银
財财 報报 稅税 價价 額额 購购 訂订 幣币 貴贵 賤贱 輕轻 鬆松 緊紧 壓压 縮缩 寬宽 遲迟 難难 興兴 奮奋 憂忧 慮虑 煩烦
惱恼 懷怀 擔担 憶忆 戀恋 禮礼 獎奖 賽赛 競竞 爭争 戰战 敗败 贏赢 備备 復复 複复 製制 確确 認认 識识 檢检 險险 幫帮
趕赶 蘋苹 鐘钟 鐵铁 鋼钢 燈灯 雲云 陽阳 陰阴 霧雾 顏颜 紅红 綠绿 藍蓝 紀纪 級级 紙纸 絲丝 細细 終终 續续 繼继 維维
編编 緣缘 橋桥 樓楼 歷历 滿满 熱热 獨独 環环 療疗 癢痒 聯联 聽听 聰聪 臺台 舉举 艱艰 莊庄 華华 蟲虫 補补 裝装 規规
訪访 評评 詳详 誠诚 課课 諾诺 貝贝 貢贡 貧贫 賬账 跡迹 躍跃 軟软 載载 辦办 農农 適适 郵邮 鄰邻 釋释 針针 銷销 鏡镜
陸陆 隊队 階阶 隨随 雜杂 雖虽 靈灵 靜静 響响 項项 順顺 預预 顧顾 風风 餓饿 驚惊 驗验 鬥斗 鬧闹 鮮鲜 麗丽 齊齐 齒齿
""".split()
_SIMPLIFIED: Final = str.maketrans({pair[0]: pair[1] for pair in _TRADITIONAL})
_TRADITIONAL_CHARACTER: Final = re.compile(f"[{''.join(map(chr, _SIMPLIFIED))}]")
_FULL_WIDTH: Final = re.compile("[\uff01-\uff5e]")  # the full-width forms of !..~, most of what NFKC changes in Chinese
_FULL_WIDTH_OFFSET: Final = 0xFEE0

_UNSPACED: Final = (
    "\u0e00-\u0e7f\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_LETTER: Final = rf"[^\W{_UNSPACED}]"
_RUNS: Final = re.compile(rf"([{_UNSPACED}]+)|({_LETTER}(?:(?:{_LETTER}|[./#+@:\-])*{_LETTER})?(?:\+\+|#)?)")
_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")


class TermKind(Enum):
    """What a term is made of."""

    PAIR = "pair"
    SINGLE = "single"
    WORD = "word"
    PART = "part"  # of an identifier that is a term itself


class Term(NamedTuple):
    text: str
    kind: TermKind


def normalise(text: str) -> str:
    """One spelling for what a person takes for the same text; case stays, because it divides identifiers."""
    narrow = _FULL_WIDTH.sub(lambda wide: chr(ord(wide[0]) - _FULL_WIDTH_OFFSET), text[:MAX_TEXT_CHARS])
    plain = unicodedata.normalize("NFKC", narrow)
    return plain.translate(_SIMPLIFIED) if _TRADITIONAL_CHARACTER.search(plain) else plain


def tokenize(text: str) -> Iterator[Term]:
    """Every term of a text, in order, with repetitions: what the index holds."""
    for dense, word in _runs(normalise(text)):
        yield from _unspaced_terms(dense) if dense else _word_terms(word)


def index_terms(text: str) -> list[str]:
    """The texts of `terms` in any order: what is indexed, thrice as fast as with a `Term` for each."""
    found: list[str] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            found += dense
            found += map(add, dense, dense[1:])
        else:
            found += _word_forms(word)
    return found


def content_terms(text: str) -> list[Term]:
    """The terms of a query without its function words; all of them where it has no others."""
    found: list[Term] = []
    for dense, word in _runs(normalise(text)):
        if dense:
            found += _content_pieces(dense)
        elif word.lower() not in ENGLISH_STOP_WORDS:
            found += _word_terms(word)
    return found or list(tokenize(text))


def _runs(text: str) -> list[tuple[str, str]]:
    """What stands together, each a run of a script without spaces or a word; the other of the two is empty."""
    return _RUNS.findall(text)


def _unspaced_terms(text: str) -> Iterator[Term]:
    for at, character in enumerate(text):
        if at:
            yield Term(text[at - 1 : at + 1], TermKind.PAIR)
        yield Term(character, TermKind.SINGLE)


def _content_pieces(run: str) -> Iterator[Term]:
    pieces = [piece for piece in CHINESE_STOP_WORDS.split(run) if piece]
    if len(run) <= MAX_UNCUT_RUN and pieces:
        pieces = [run]
    for piece in pieces:
        yield from _unspaced_terms(piece)


def _word_terms(run: str) -> Iterator[Term]:
    whole, *parts = _word_forms(run)
    yield Term(whole, TermKind.WORD)
    for part in parts:
        yield Term(part, TermKind.PART)


def _word_forms(run: str) -> list[str]:
    """A word, or an identifier and its parts, as they are kept."""
    whole = run.lower()[:MAX_TERM_CHARS]
    parts = _PARTS.findall(run)
    if len(parts) < 2:
        return [stem(whole)]
    return [whole, *[stem(part.lower()[:MAX_TERM_CHARS]) for part in parts]]
