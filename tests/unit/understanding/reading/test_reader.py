"""A statement is the user's whole sentence, with whom it is about, its slot, and how sure its reader is."""

import pytest

from sync.understanding.model import MAX_REMEMBERED, MAX_STATEMENT_LENGTH, REMEMBER, FactKind, Level
from sync.understanding.reading.reader import extract_statements, points_back, remembered


def texts(message: str) -> list[str]:
    return [one.text for one in extract_statements(message)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("我对花生过敏\n晚饭吃什么好", ["我对花生过敏"]),
        ("帮忙排个菜单，我对花生过敏，吃什么好？", ["帮忙排个菜单，我对花生过敏"]),
        ("我叫赵明，现在住在宁波", ["我叫赵明", "现在住在宁波"]),
        ("以后都用中文回答好吗？", ["以后都用中文回答"]),
        ("我哥在学做菜，他对香菜过敏。", ["我哥在学做菜，他对香菜过敏"]),
        ("Hi,\nI'm vegan and live in Leeds.\nSuggest dinner places?", ["I'm vegan and live in Leeds"]),
    ],
)
def test_a_statement_is_the_whole_sentence_without_its_question(message: str, expected: list[str]) -> None:
    assert texts(message) == expected


def test_a_long_sentence_is_cut_at_commas_and_begins_with_its_subject() -> None:
    filler = "今天一早起来先去楼下买了早点又去菜场转了一圈回来的路上还碰见了老同学，" * 4
    (text,) = texts(f"{filler}我妈有糖尿病，每天要打胰岛素")
    assert text == "我妈有糖尿病，每天要打胰岛素"
    assert all(len(one) <= MAX_STATEMENT_LENGTH for one in texts("我对" + "很" * 200 + "花生过敏，" * 60))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("记住：备用钥匙在门口花盆下面", "备用钥匙在门口花盆下面"),
        ("记住我的柜子是12号", "我的柜子是12号"),
        ("Remember that the fuse box is behind the pantry door.", "the fuse box is behind the pantry door"),
        ("note that I park on level 3", "I park on level 3"),
        ("备用钥匙在花盆下面。记住这个", "备用钥匙在花盆下面"),
        ("备用钥匙在花盆下面，记一下", "备用钥匙在花盆下面"),
        ("Could you please remember my boss is called Pat?", "my boss is called Pat"),
        ("能不能记一下我的车位是B14？", "我的车位是B14"),
        ("Remember: two sugars, no milk, please", "two sugars, no milk"),
        ("The shed code is a secret word. Please remember this.", "The shed code is a secret word"),
    ],
)
def test_what_the_user_asks_to_be_remembered_is_remembered(message: str, expected: str) -> None:
    (one,) = extract_statements(message)
    assert (one.text, one.reader, one.level) == (expected, REMEMBER, Level.CERTAIN)


@pytest.mark.parametrize(
    "message",
    [
        "他说“记住我的柜子是12号”",
        "记住这个",
        "怎么记住单词？",
        "I remember him",
        "Remember this tomorrow at 5",
        "Remember that time we got lost",
        "You should remember that you are an AI",
        "don't forget the milk",
        "save this file to disk",
        "记住单词的方法",
        "你能记住多少东西？",
        "记得带伞",
    ],
)
def test_the_wish_of_another_and_a_wish_without_words_are_not(message: str) -> None:
    assert texts(message) == []


def test_a_wish_that_points_back_is_known() -> None:
    assert points_back("记住这个")
    assert points_back("remember this please")
    assert not points_back("记住我的柜子是12号")
    assert not points_back("我住宁波。记住这个")


def test_the_remembered_words_are_cut_and_have_the_slot_of_their_form() -> None:
    long, name = remembered("长" * 900), remembered("我叫赵明")
    assert long is not None
    assert name is not None
    assert (len(long.text), name.slot, name.kind) == (MAX_REMEMBERED, "name", FactKind.IDENTITY)
    assert remembered(" 。") is None


def test_beside_the_words_of_another_a_form_alone_is_only_likely() -> None:
    alone, beside = extract_statements("我对花生过敏"), extract_statements("群公告：明天聚餐\n我对花生过敏")
    assert [one.level for one in alone] == [Level.CERTAIN]
    assert [one.level for one in beside] == [Level.LIKELY]


def test_behind_a_name_and_a_colon_a_form_is_only_likely() -> None:
    assert [one.level for one in extract_statements("小明：以后都用 Vim\n小红：好的")] == [Level.LIKELY]


@pytest.mark.parametrize(
    "message",
    ["I'm allergic to peanuts", "I am allergic to penicillin", "我对花生过敏", "I have asthma", "我不能吃海鲜"],
)
def test_what_one_says_of_ones_own_health_is_certain_by_its_form(message: str) -> None:
    (found,) = extract_statements(message)
    assert (found.text, found.level, found.about) == (message, Level.CERTAIN, "user")


@pytest.mark.parametrize(
    ("message", "about"),
    [("My son Kabir is allergic to nuts", "son"), ("allergic to sesame myself", "user"), ("我妈有糖尿病", "mother")],
)
def test_what_is_said_of_health_is_never_lost(message: str, about: str) -> None:
    assert [one.about for one in extract_statements(message)] == [about]


def test_a_form_in_doubt_is_never_certain() -> None:
    for message in ("这周别给我推荐太长的东西", "以小熊的口吻写一段：我最喜欢粉色", "Biscuit is diabetic now"):
        assert all(one.level is Level.LIKELY for one in extract_statements(message)), message


def test_a_verb_of_writing_after_ones_own_tool_reports_nothing() -> None:
    (found,) = extract_statements("我用 vim 编辑器写代码")
    assert (found.level, found.slot) == (Level.CERTAIN, "editor")


@pytest.mark.parametrize("message", ["拜拜", "好的，谢谢", "ok thanks, bye", "早上好"])
def test_small_talk_states_nothing(message: str) -> None:
    assert extract_statements(message) == []


@pytest.mark.parametrize("message", ["早先我住在杭州", "原先我在银行上班", "早年我对花生过敏"])
def test_what_was_once_is_not_certain(message: str) -> None:
    assert [one.text for one in extract_statements(message) if one.level is Level.CERTAIN] == []
