"""An assignment keeps its name and loses its value, in Chinese and English."""

import random
import string

import pytest

from sync.redaction import Redactor
from tests.proof import first_in_test

REDACTOR = Redactor()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("密码是 admin123", "密码是 [密码]"),
        ("密码是admin123，记住", "密码是[密码]，记住"),
        ("密码：Passw0rd!", "密码：[密码]"),
        ("密码为“abc12345”。", "密码为“[密码]”。"),
        ("我的密码改成了 Abc#2026", "我的密码改成了 [密码]"),
        ("密码现在是 abc12345", "密码现在是 [密码]"),
        ("口令：opensesame", "口令：[密码]"),
        ("WiFi 密码 88888888", "WiFi 密码 [密码]"),
        ("支付密码:654321", "支付密码:[密码]"),
        ("PIN 码是 4321", "PIN 码是 [密码]"),
        ("提取码: ab3d", "提取码: [密码]"),
        ("2FA 恢复码 fb440-034d6", "2FA 恢复码 [密码]"),
        ("**密码**：`abc12345`", "**密码**：`[密码]`"),
        ("| 密码 | abc12345 |", "| 密码 | [密码] |"),
        ("密码：\nabc12345", "密码：\n[密码]"),
        ("账号 admin 密码 Admin@123", "账号 admin 密码 [密码]"),
        ("abc123XY 是我的密码", "[密码] 是我的密码"),
        ("我的密钥是0a1b2c3d4e5f，别外传", "我的密钥是[密钥]，别外传"),
        ("令牌=abc.def.123", "令牌=[令牌]"),
        ("我把 token 设为 tk_93jd82jd", "我把 token 设为 [令牌]"),
        ("验证码：384756", "验证码：[验证码]"),
        ("验证码384756", "验证码[验证码]"),
        ("您的验证码是384756，5分钟内有效", "您的验证码是[验证码]，5分钟内有效"),
        ("【商城】384756（登录验证码）", "【商城】[验证码]（登录验证码）"),
    ],
)
def test_chinese_assignments(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: hunter2", "password: [密码]"),
        ("password=swordfish", "password=[密码]"),
        ("my password is hunter2.", "my password is [密码]."),
        ("PASSWORD='p@ss w0rd'", "PASSWORD='[密码]'"),
        ('{"password":"abc123","user":"li"}', '{"password":"[密码]","user":"li"}'),
        ('{\\"token\\":\\"abc123def\\"}', '{\\"token\\":\\"[令牌]\\"}'),
        ("passwd => 'qwe123'", "passwd => '[密码]'"),
        ("recovery code: 03nb-qnsG-pWLu", "recovery code: [密码]"),
        ("Server=x;User Id=sa;Password=P@ss9;", "Server=x;User Id=sa;Password=[密码];"),
        ("DB_PASSWORD=swordfish\nDB_HOST=x", "DB_PASSWORD=[密码]\nDB_HOST=x"),
        ("api_key = abcdef", "api_key = [密钥]"),
        ("api-key: 'k3yk3yk3y'", "api-key: '[密钥]'"),
        ("secret: mysecret", "secret: [密钥]"),
        ("openaiApiKey := `abc123def456`", "openaiApiKey := `[密钥]`"),
        ("client_secret: str = 'abc123def456'", "client_secret: str = '[密钥]'"),
        ("token: |\n  abc123def456", "token: |\n  [令牌]"),
        ("<apiToken>abc123def456</apiToken>", "<apiToken>[令牌]</apiToken>"),
        ('<add key="ApiToken" value="abc123def456" />', '<add key="ApiToken" value="[令牌]" />'),
        ('setProperty("API_TOKEN", "abc123def456")', 'setProperty("API_TOKEN", "[令牌]")'),
        ("--password hunter22 --host x", "--password [密码] --host x"),
        ("?access_token=abc123def456&x=1", "?access_token=[令牌]&x=1"),
        ("adafruit_io: 0a1b2c3d4e5f60718293a4b5c6d7e8f9", "adafruit_io: [密钥]"),
        ("Your code is 384756", "Your code is [验证码]"),
        ("384756 is your verification code", "[验证码] is your verification code"),
        ("OTP: 384756", "OTP: [验证码]"),
        ("hunter2XY is my password", "[密码] is my password"),
        ("ｐａｓｓｗｏｒｄ：ａｂｃ１２３", "ｐａｓｓｗｏｒｄ：[密码]"),
        ("pass\u200bword: abc123", "pass\u200bword: [密码]"),
        ("passphrase: correct horse battery staple", "passphrase: [密码]"),
        ("mnemonic: " + " ".join(["able", "about", "above"] * 4), "mnemonic: [密钥]"),
    ],
)
def test_english_assignments(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2 secret=topsecret99", "password=[密码] secret=[密钥]"),
        (
            "api_key=aaa111bbb222 secret=ccc333ddd444 token=eee555fff666",
            "api_key=[密钥] secret=[密钥] token=[令牌]",
        ),
        ("password=hunter2 time=3 token=abcdef12", "password=[密码] time=3 token=[令牌]"),
        ("password=hunter2 minutes=5", "password=[密码] minutes=5"),
        ("密码：abc12345\n位置：北京", "密码：[密码]\n位置：北京"),
        ("密码 123456 个人用", "密码 [密码] 个人用"),
        ("密码是 hunter2 分享给你", "密码是 [密码] 分享给你"),
    ],
)
def test_text_behind_a_value_protects_it_only_if_it_is_a_unit(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize("length", first_in_test([1_001, 2_001, 999, 1_000, 1_999, 8_000, 60_000], 2))
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token={}", "token=[令牌]"),
        ("token={}\nnext=1", "token=[令牌]\nnext=1"),
        ('password: "{}" # x', 'password: "[密码]" # x'),
        ("密码为“{}”。", "密码为“[密码]”。"),
        ("我的密钥是{}，记住", "我的密钥是[密钥]，记住"),
        ("?access_token={}&x=1", "?access_token=[令牌]&x=1"),
        ('{{"api_key": "{}", "user": "li"}}', '{{"api_key": "[密钥]", "user": "li"}}'),
    ],
)
def test_a_value_goes_to_its_last_character_however_long_it_is(text: str, expected: str, length: int) -> None:
    value = "".join(random.Random(length).choices(string.ascii_letters + string.digits + "+/", k=length - 1)) + "7"

    assert REDACTOR.clean(text.format(value)) == expected.format()


def test_a_long_value_in_quotes_goes_as_far_as_they_do_and_not_beyond_its_line() -> None:
    value = "a1B2" * 300

    assert REDACTOR.clean(f'password: "{value}&x=1 <tail9>" ok') == 'password: "[密码]" ok'
    assert REDACTOR.clean(f'password: "{value}\nnothing" ok') == 'password: "[密码]\nnothing" ok'


def test_a_value_before_its_name_goes_from_its_first_character() -> None:
    assert REDACTOR.clean(f"“{'a1B2' * 200}”是我的密码") == "“[密码]”是我的密码"


def test_many_names_before_one_value_are_one_find() -> None:
    assert REDACTOR.clean("token=" * 50_000 + "a1B2c3D4") == "token=[令牌]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jwt.secret.key=abc123def", "jwt.secret.key=[密钥]"),
        ("token.secret: abc123def456", "token.secret: [令牌]"),
        ("aliyun.oss.accessKeySecret=abc123def456ghi", "aliyun.oss.accessKeySecret=[密钥]"),
        ("helm install x --set auth.password=hunter2", "helm install x --set auth.password=[密码]"),
        ("app --db-password hunter2 -v", "app --db-password [密码] -v"),
        ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [密码]"),
        ("LOGIN_PASSWORD=Abc@12345", "LOGIN_PASSWORD=[密码]"),
        ("密　码：Abc12345", "密　码：[密码]"),
        ("Password for bob@x: Abc12345", "Password for bob@x: [密码]"),
        ("the root password on 10.0.0.1 is Abc12345", "the root password on 10.0.0.1 is [密码]"),
        ('#define WIFI_PASSWORD "home2024"', '#define WIFI_PASSWORD "[密码]"'),
        ("CREATE ROLE bob LOGIN PASSWORD 'hunter2';", "CREATE ROLE bob LOGIN PASSWORD '[密码]';"),
        ("machine x login bob password hunter2", "machine x login bob password [密码]"),
        ("7z x -phunter2 a.7z", "7z x -p[密码] a.7z"),
        ("unzip -P hunter2 a.zip", "unzip -P [密码] a.zip"),
        ("mongosh -u bob -p hunter2", "mongosh -u bob -p [密码]"),
    ],
)
def test_a_name_in_parts_keeps_its_value_back(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected
    assert REDACTOR.clean(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("把密码从 old123abc 改成 new456def 了", "把密码从 [密码] 改成 [密码] 了"),
        ("用hunter2abc当密码", "用[密码]当密码"),
        ("I changed the password from old123abc to new456def.", "I changed the password from [密码] to [密码]."),
        ("set the root password to `Tr0ub4dor`", "set the root password to `[密码]`"),
        ("password was reset to Tr0ub4dor", "password was reset to [密码]"),
        ("use Tr0ub4dor as the admin password", "use [密码] as the admin password"),
    ],
)
def test_a_password_that_changes_is_replaced_before_and_after(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected
    assert REDACTOR.clean(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "密码由8位改为12位",
        "密码从明文改为 SHA256 加密",
        "change the password to something stronger",
        "update the password field to version2",
        "using bcrypt as the password hasher",
        "the secret of success: practice 10000 hours",
        "tokens of model gpt-4o: 128000",
        "--kms-key alias/mykey1 --cache-key deps-v1-linux --no-password foo1 --max-tokens 4096",
        "password.length=12\ntoken.expire=3600\njwt.header=X-Auth1\nuser.auth.password = hash_password(pw1)",
        "- name: token\n  value: string\n- name: password\n  value: {{ .Values.pw }}",
        'type: password "show"',
        "scp a.zip -P 22022 host && rar 压缩包 -part1.rar",
        "wechat: mini-program",
    ],
)
def test_what_only_speaks_of_a_password_stays(text: str) -> None:
    assert REDACTOR.clean(text) == text
