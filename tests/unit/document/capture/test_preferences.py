"""Which statements are preferences, and their sections."""

import pytest

from sync.document.capture.preferences import MAX_MESSAGE_LENGTH, MAX_PREFERENCES, find_preferences
from sync.document.markdown.template import COMMUNICATION_STYLE, TECHNICAL_PREFERENCES, WORK_HABITS
from tests.fuzz.prompt_injection import PASTED


@pytest.mark.parametrize(
    ("message", "text", "section"),
    [
        ("我喜欢简洁的代码，不要写太多注释", "我喜欢简洁的代码，不要写太多注释", TECHNICAL_PREFERENCES),
        ("以后都用中文回答，帮我写一个快速排序", "以后都用中文回答", COMMUNICATION_STYLE),
        ("从现在开始，回答尽量简短。", "从现在开始，回答尽量简短", COMMUNICATION_STYLE),
        ("请记住：我习惯早上八点开始工作", "我习惯早上八点开始工作", WORK_HABITS),
        ("不要用表情", "不要用表情", COMMUNICATION_STYLE),
        (
            "我更喜欢 TypeScript，因为类型安全",
            "我更喜欢 TypeScript，因为类型安全",
            TECHNICAL_PREFERENCES,
        ),
        ("帮我看看报错。另外，我讨厌开会！", "我讨厌开会", WORK_HABITS),
        ("I prefer short answers", "I prefer short answers", COMMUNICATION_STYLE),
        ("Please always use type hints in Python.", "always use type hints in Python", TECHNICAL_PREFERENCES),
        ("never call me sir", "never call me sir", COMMUNICATION_STYLE),
        ("I hate long meetings", "I hate long meetings", WORK_HABITS),
        ("以后都用 `ruff, mypy` 检查代码", "以后都用 `ruff, mypy` 检查代码", TECHNICAL_PREFERENCES),
        ("```py\nx = 1\n```\n以后你写代码都加注释", "以后你写代码都加注释", TECHNICAL_PREFERENCES),
        ("我喜欢简洁,不要啰嗦", "我喜欢简洁，不要啰嗦", COMMUNICATION_STYLE),
    ],
)
def test_a_preference_is_found_with_its_section(message: str, text: str, section: tuple[str, ...]) -> None:
    (found,) = find_preferences(message)

    assert (found.text, found.section) == (text, section)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("My name is Sam and I prefer dark mode, always", "My name is Sam and I prefer dark mode, always"),
        ("I always use tabs, never spaces", "I always use tabs, never spaces"),
        ("以后回答我都用中文，简短一点", "以后回答我都用中文，简短一点"),
        ("一般部署我都用 docker compose up -d，别用 k8s", "一般部署我都用 docker compose up -d，别用 k8s"),
        ("以后都用中文回答，简短一点，帮我看看代码", "以后都用中文回答，简短一点"),
        ("I prefer tabs. Now fix the bug, thanks", "I prefer tabs"),
        ("以后用中文回答，这次用英文", "以后用中文回答"),
    ],
)
def test_a_sentence_is_kept_whole_up_to_a_request_or_an_exception(message: str, text: str) -> None:
    assert [found.text for found in find_preferences(message)] == [text]


@pytest.mark.parametrize(
    "message", ["帮我写个函数，别用递归", "My flatmate loves tea, never coffee", "客户喜欢茶，别用咖啡"]
)
def test_a_dependent_clause_of_a_request_or_of_another_person_is_no_preference(message: str) -> None:
    assert find_preferences(message) == ()


@pytest.mark.parametrize("message", PASTED)
def test_pasted_text_is_no_preference(message: str) -> None:
    assert find_preferences(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        "我喜欢什么",
        "你喜欢我吗？",
        "Do I prefer tea?",
        "为什么你总是道歉",
        "什么时候应该用 always",
        "他说：“我喜欢喝茶”",
        "他说，我喜欢喝茶",
        "客户要求以后都用英文",
        "the docs say: always use https",
        "“以后都用中文”是我写的标题",
        "> 我喜欢茶",
        "```\n我喜欢茶\n```",
        "翻译：\n我喜欢你",
        "检查语法。我喜欢吃苹果。",
        "Fix the grammar. I like to eat apples.",
        "帮我写一首诗，我喜欢春天",
        "这次不要写注释",
        "今天我喜欢吃面",
        "不要删除这个文件",
        "不要紧",
        "别担心",
        "以后再说吧",
        "如果我喜欢红茶",
        "我以前喜欢红茶",
        "I like this",
        "from now on",
        "# 规则\n" + "说明一下背景。" * (MAX_MESSAGE_LENGTH // 7) + "\n我喜欢茶",
    ],
)
def test_a_question_a_quotation_or_a_passing_remark_is_no_preference(message: str) -> None:
    assert find_preferences(message) == ()


def test_the_same_words_are_the_same_entry_however_they_are_written() -> None:
    ids = {
        find_preferences(message)[0].entry_id
        for message in ("我喜欢绿茶", "我喜欢绿茶。", "嗯，我喜欢绿茶！", "好的，我喜欢绿茶")
    }

    assert len(ids) == 1
    assert ids != {find_preferences("我喜欢红茶")[0].entry_id}


def test_a_preference_cannot_become_structure_and_their_number_is_limited() -> None:
    flood = "。".join(f"我喜欢第{number}种茶叶" for number in range(20))

    assert len(find_preferences(flood)) == MAX_PREFERENCES
    assert all("\n" not in found.text for found in find_preferences("我喜欢\u2028## 标题一样的话"))
