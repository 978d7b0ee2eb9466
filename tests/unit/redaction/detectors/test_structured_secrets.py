"""Secrets that one line alone does not show: tables, answers, command lines, split tokens, encodings."""

import random
from base64 import b64encode

import pytest

from sync.redaction import Redactor
from tests.unit.redaction.detectors.test_tokens import make_token

REDACTOR = Redactor()
TOKEN = make_token("GitHub classic")
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("| 用户名 | 密码 |\n|---|---|\n| admin | Adm1n@x |\n", "| 用户名 | 密码 |\n|---|---|\n| admin | [密码] |\n"),
        (
            "| User | Password |\n| --- | --- |\n| li | sunshine |",
            "| User | Password |\n| --- | --- |\n| li | [密码] |",
        ),
        (
            "| 系统 | **口令** | 备注 |\n|:--|--|--|\n| 甲 | `zs1234` | 无 |",
            "| 系统 | **口令** | 备注 |\n|:--|--|--|\n| 甲 | `[密码]` | 无 |",
        ),
        ("问：服务器密码多少？\n答：Hunter2!x", "问：服务器密码多少？\n答：[密码]"),
        ("用户问：数据库密码是多少\nAI 答：Mysql@123", "用户问：数据库密码是多少\nAI 答：[密码]"),
        ("用户问：密码是 db1 的吗？\nAI 答：Mysql@123", "用户问：密码是 db1 的吗？\nAI 答：[密码]"),
        ("Q: What is the password?\nA: it's hunter2.", "Q: What is the password?\nA: it's [密码]."),
        ("db.example.com:5432:app:admin:s3cretPw", "db.example.com:5432:app:admin:[密码]"),
        (f"kind: Secret\ndata:\n  foo: {base64('1f2d1e2e67df')}\n", "kind: Secret\ndata:\n  foo: [密钥]\n"),
        (f"data:\n  db-conn: {base64('postgres://u:hunter2@h/db')}", "data:\n  db-conn: [密钥]"),
        (f"密码的base64是 {base64('hunter2secret')}", "密码的base64是 [密码]"),
        (f"password (base64): {base64('Passw0rd!x')}", "password (base64): [密码]"),
        ("password (hex): 68756e74657232", "password (hex): [密码]"),
    ],
)
def test_the_name_of_a_value_may_be_on_another_line(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "| Feature | Password | SSO |\n|---|---|---|\n| Login | yes | no |\n| Reset | supported | beta |",
        "| 字段 | 密码 |\n|--|--|\n| 类型 | string |\n| 长度 | 6-20 |",
        "| password | 密码 |\n|---|---|\n| token | 令牌 |",
        "问：密码忘了怎么办？\n答：点击找回密码",
        "Q: What is the password policy?\nA: at least 12 characters",
        "10:15:20:30:40",
        "12:34:56:78:9a:bc",
        "main.py:1203:error:E501:line9",
        f"data:\n  items: {base64('hello world, nothing here')}\n",
        "'abc' + 'def123'",
    ],
)
def test_a_table_a_question_or_a_file_without_a_secret_stays(text: str) -> None:
    assert REDACTOR.clean(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql -uroot -p'hunter2' app", "mysql -uroot -p'[密码]' app"),
        ('mysql -u root -p"My Pass9"', 'mysql -u root -p"[密码]"'),
        ("mysql -u root -p app", "mysql -u root -p app"),
        ("./run --password sonhorpi --verbose", "./run --password [密码] --verbose"),
        ("use --password when needed", "use --password when needed"),
        ("https://deploy:Tuton177#@git.example.com/app", "https://deploy:[密码]@git.example.com/app"),
        ("https://example.com:8080/#a@b", "https://example.com:8080/#a@b"),
        ("net use z: /password:'qwerty'", "net use z: /password:'[密码]'"),
        ("./run --password hunter22 -v", "./run --password [密码] -v"),
        (
            "ConvertTo-SecureString 'P@ssw0rd' -AsPlainText -Force",
            "ConvertTo-SecureString '[密码]' -AsPlainText -Force",
        ),
        ('ConvertTo-SecureString -String "Winter2019"', 'ConvertTo-SecureString -String "[密码]"'),
        ("ConvertTo-SecureString $plain -AsPlainText", "ConvertTo-SecureString $plain -AsPlainText"),
        ("CREATE USER li IDENTIFIED BY 'Hunter2'", "CREATE USER li IDENTIFIED BY '[密码]'"),
        ("set password for 'root'@'localhost' = 'cSsGH07Qq4';", "set password for 'root'@'localhost' = '[密码]';"),
        ("keytool -storepass Lanvan553! -keypass Lan553!", "keytool -storepass [密码] -keypass [密码]"),
        ("login with `admin` / `Horho835#`", "login with `admin` / `[密码]`"),
        ("admin/v1beta1 and root/lib/x86", "admin/v1beta1 and root/lib/x86"),
        ("messages are identified as spam1234", "messages are identified as spam1234"),
        ("echo 'root:hunter2' | chpasswd", "echo 'root:[密码]' | chpasswd"),
    ],
)
def test_a_command_line_loses_its_password(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize("cut", [4, 8, 20, 30])
@pytest.mark.parametrize("joint", ["\n", "\n  ", '" + "', "' + '", '" \\\n  "', " \\\n"])
def test_a_token_in_two_pieces_is_replaced_with_its_joint(joint: str, cut: int) -> None:
    quote = joint[0] if joint[0] in "\"'" else ""
    text = f"用 {quote}{TOKEN[:cut]}{joint}{TOKEN[cut:]}{quote} 登录"

    cleaned = REDACTOR.clean(text)

    assert TOKEN[cut:] not in cleaned
    assert cleaned.endswith(f"{quote} 登录")


def test_an_identity_number_goes_on_in_the_next_line() -> None:
    assert REDACTOR.clean("身份证 11010119900307\n7854 请保存") == "身份证 [身份证号] 请保存"
    assert REDACTOR.clean("编号 11010119900307\n7855 请保存") == "编号 11010119900307\n7855 请保存"


def test_a_word_in_the_line_below_a_token_stays() -> None:
    assert REDACTOR.clean(f"{TOKEN}\nversion2 of the plan") == "[令牌]\nversion2 of the plan"
    assert REDACTOR.clean(f"{TOKEN}\n2026-11-23") == "[令牌]\n2026-11-23"


@pytest.mark.parametrize("first", ["SA", "SU", "SO"])
def test_the_seed_of_a_nats_key_is_replaced(first: str) -> None:
    seed = first + "".join(random.Random(first).choices(BASE32, k=56))

    assert REDACTOR.clean(f"种子{seed}，收好") == "种子[密钥]，收好"
    assert REDACTOR.clean(seed + "A") == seed + "A"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [令牌]"),
        ("token=xyz", "token=[令牌]"),
        ("secret=ssss", "secret=[密钥]"),
        ("key: 8f3a9c0d1e", "key: [密钥]"),
        ("password&#61;hunter2", "password&#61;[密码]"),
        ("api_key%3Dabc123def456", "api_key%3D[密钥]"),
        ("mima shi hunter2", "mima shi [密码]"),
        ("パスワードは hunter2 です", "パスワードは [密码] です"),
        ("비밀번호: hunter2", "비밀번호: [密码]"),
        ("p\u0430ssword: hunter2", "p\u0430ssword: [密码]"),
        ("t\u043eken=abc123def", "t\u043eken=[令牌]"),
        ("token: abc123def==", "token: [令牌]"),
        ("Password: Sunshine", "Password: [密码]"),
        ('password: "xqz"', 'password: "[密码]"'),
        ('password: "super_bright"', 'password: "[密码]"'),
        ('user.setPassword("burdo9540");', 'user.setPassword("[密码]");'),
        ("MYSQL_ROOT_PASSWORD=horvunwe -p 3306", "MYSQL_ROOT_PASSWORD=[密码] -p 3306"),
        ("我的 heroku key 是 6dd117fd-6ff8-24fc-80ac-42a3ad7e0fd0", "我的 heroku key 是 [密钥]"),
        ("algolia: 5myz4kfgj38w5sewh13utekqyghrncwo", "algolia: [密钥]"),
    ],
)
def test_short_values_and_names_in_other_letters(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


def test_an_answer_to_a_question_whose_value_is_redacted_stays() -> None:
    said = "- 用户问：我的令牌是 [令牌]\n- AI 答：w12x 记下了"
    assert REDACTOR.clean(said) == said


@pytest.mark.parametrize("question", ["我的令牌是 w33x", "我的密码是 w33x，记一下。", "my token is w33x"])
def test_an_answer_to_a_question_that_says_the_value_itself_stays(question: str) -> None:
    said = REDACTOR.clean(f"- 用户问：{question}\n- AI 答：w23x 记下了")
    assert said.endswith("\n- AI 答：w23x 记下了")
    assert REDACTOR.clean_turns([(False, question), (True, "w23x 记下了")])[1] == "w23x 记下了"


def test_an_answer_is_read_with_its_question() -> None:
    assert REDACTOR.clean_turns([(False, "你好\n服务器密码多少？"), (True, "Hunter2!x")])[1] == "[密码]"
    assert REDACTOR.clean_turns([(False, "版本多少？"), (True, "Hunter2!x")])[1] == "Hunter2!x"
    assert Redactor(enabled=False).clean_turns([(False, "密码多少？"), (True, "Hunter2!x")])[1] == "Hunter2!x"


def test_an_exchange_of_the_document_is_not_examined_again_as_a_whole() -> None:
    """The answer was redacted with its question when it was recorded; the question may have been edited since."""
    document = "- 用户问：我的令牌是\n- AI 答：w32x\n"
    assert Redactor().clean(document) == document
    assert Redactor().clean_turns([(False, "服务器密码多少？"), (True, "w32x9k")])[1] == "[密码]"
