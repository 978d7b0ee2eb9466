"""A request for work, and what the user said about such work."""

import pytest

from sync.context.work_requests import is_standing_statement, names_technology
from sync.recall.relevance.message_signals import read_signals

CODE, PAGE, MAIL = "帮我写一个数据处理函数", "添加一个新的用户列表页面", "帮我起草一封给客户的邮件"


@pytest.mark.parametrize("message", [CODE, PAGE, MAIL, "write a function that merges two lists", "实现登录接口"])
def test_requests_for_work_are_recognised(message: str) -> None:
    assert read_signals(message).is_work_request
    assert not names_technology(message)


@pytest.mark.parametrize("message", ["今天天气怎么样", "how are you", "京剧里生旦净丑分别指哪些角色"])
def test_other_messages_are_no_requests_for_work(message: str) -> None:
    assert not read_signals(message).is_work_request


def test_a_request_that_names_its_technology_needs_no_preference() -> None:
    assert names_technology("用 Python 写一个快速排序")
    assert names_technology("最小的Flask应用")
    assert not names_technology("API 返回什么")


@pytest.mark.parametrize(
    ("text", "message", "holds"),
    [
        ("用户偏好使用 TypeScript，喜欢函数式编程风格", CODE, True),
        ("项目使用 React + Redux，API 基于 /api/v2 前缀", PAGE, True),
        ("We always use snake_case", "write a function that merges two lists", True),
        ("我喜欢喝绿茶", CODE, False),
        ("昨天修好了 TypeScript 的编译错误", CODE, False),
        ("邮件统一用敬语，简洁一些", MAIL, True),
        ("用户偏好使用 TypeScript", MAIL, False),
        ("README: always use React. " * 20, PAGE, False),
    ],
)
def test_a_standing_statement_is_about_this_kind_of_work(text: str, message: str, *, holds: bool) -> None:
    assert is_standing_statement(text, message) is holds
