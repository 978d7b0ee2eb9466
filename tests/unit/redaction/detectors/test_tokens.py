"""Tokens of known issuers, generated from their published formats, inside Chinese and English text."""

import random
import string
from base64 import b64encode
from itertools import product

import pytest

from sync.redaction import Redactor
from tests.proof import first_in_test

REDACTOR = Redactor()
WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = WORD + "-_"
UPPER = string.ascii_uppercase + string.digits

# issuer -> pieces: a literal, or (alphabet, length). Lengths from the issuers' documentation.
Piece = str | tuple[str, int]
SHAPES: dict[str, tuple[Piece, ...]] = {
    "OpenAI project": ("sk-", "proj-", (URLSAFE, 74), "T3Blbk" + "FJ", (URLSAFE, 73), "a"),
    "OpenAI old, Moonshot": ("sk-", (WORD, 48)),
    "DeepSeek, DashScope": ("sk-", (HEX, 32)),
    "SiliconFlow": ("sk-", (string.ascii_lowercase, 48)),
    "Anthropic": ("sk-", "ant-api03-", (URLSAFE, 93), "AA"),
    "OpenRouter": ("sk-", "or-v1-", (HEX, 64)),
    "Google": ("AI", "za", (WORD, 35)),
    "Hugging Face": ("hf", "_", (string.ascii_letters, 34)),
    "Groq": ("gsk", "_", (WORD, 52)),
    "Zhipu": ((HEX, 32), ".", (WORD, 16)),
    "GitHub classic": ("gh", "p_", (WORD, 36)),
    "GitHub fine-grained": ("github", "_pat_", (WORD, 22), "_", (WORD, 59)),
    "GitLab": ("gl", "pat-", (WORD, 20)),
    "npm": ("npm", "_", (WORD, 36)),
    "PyPI": ("pypi", "-AgEIcHlwaS5vcmc", (URLSAFE, 70), "x"),
    "AWS": ("AK", "IA", (UPPER, 16)),
    "Alibaba Cloud": ("LT", "AI5t", (WORD, 18)),
    "Tencent Cloud": ("AK", "ID", (WORD, 32)),
    "Slack bot": ("xo", "xb-", (string.digits, 12), "-", (string.digits, 12), "-", (WORD, 24)),
    "Stripe": ("sk", "_live_", (WORD, 24)),
    "SendGrid": ("SG", ".", (WORD, 22), ".", (WORD, 43)),
    "Telegram": ((string.digits, 10), ":AA", (WORD, 33)),
    "Mailchimp": ((HEX, 32), "-us", "12"),
    "Twilio": ("S", "K", (HEX, 32)),
    "DigitalOcean": ("do", "p_v1_", (HEX, 64)),
    "Databricks": ("da", "pi", (HEX, 32)),
    "Vault": ("hv", "s.", (WORD, 95)),
    "Supabase": ("sb", "_secret_", (WORD, 31)),
    "Docker Hub": ("dckr", "_pat_", (WORD, 27)),
    "Notion": ("ntn", "_", (string.digits, 11), (WORD, 35)),
    "Shopify": ("shp", "at_", (HEX, 32)),
    "Kimi": ("sk-", "kimi-", (WORD, 48)),
    "Volcengine Ark": ("ark", "-", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)),
    "Klaviyo": ("pk", "_", (HEX, 34)),
    "ClickUp": ("pk", "_", (string.digits, 8), "_", (UPPER, 32)),
    "Trello": ("AT", "TA", (WORD, 72)),
    "HubSpot": ("pat", "-ap1-", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)),
    "Cursor": ("key", "_", (HEX, 64)),
    "Honeycomb": ("hca", "ik_", (string.ascii_lowercase + string.digits, 58)),
    "Infisical": ("st", ".", (HEX, 24), ".", (HEX, 32), ".", (HEX, 32)),
    "PASETO": ("v4", ".local.", (URLSAFE, 80), "x"),
    "fal": ((HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12), ":", (HEX, 32)),
    "Vercel": ("vc", "p_", (WORD, 56)),
    "JWT": ("ey", "J", (WORD, 33), ".ey", "J", (WORD, 60), ".", (URLSAFE, 42), "x"),
}
SENTENCES = (
    "我的密钥是{}，别告诉别人",
    "我的密钥是{}",
    "把{}填到配置里",
    "用 {} 登录。",
    "（{}）",
    "“{}”",
    "**{}**",
    "`{}`",
    "| 接口 | {} |",
    '{{"k": "{}"}}',
    '{{\\"k\\":\\"line\\n{}\\n\\"}}',
    "https://a.example/u?x={}&y=1",
    "2026-11-21 10:00:01 INFO user={} ok",
    "第一行\n{}\n第三行",
    "Please use {} for the deployment.",
    "It's {}, keep it.",
)


def make_token(issuer: str, seed: int = 0) -> str:
    """A token of the issuer's format, generated from a seed."""
    rng = random.Random(f"{issuer}{seed}")
    return "".join(
        piece if isinstance(piece, str) else "".join(rng.choices(piece[0], k=piece[1])) for piece in SHAPES[issuer]
    )


@pytest.mark.parametrize("issuer", SHAPES)
def test_a_token_leaves_no_trace_in_any_sentence(issuer: str) -> None:
    token = make_token(issuer)
    for sentence in SENTENCES:
        cleaned = REDACTOR.clean(sentence.format(token))

        assert token[len(token) // 2 :] not in cleaned, sentence
        assert token[: len(token) // 2] not in cleaned, sentence
        before, _, after = sentence.format("\x00").partition("\x00")
        assert cleaned.startswith(before[:4])
        assert cleaned.endswith(after[-4:])


@pytest.mark.parametrize("issuer", SHAPES)
def test_a_token_is_found_whole(issuer: str) -> None:
    text = f"我的是{make_token(issuer)}记一下"

    (span,) = REDACTOR.find_spans(text)

    assert (span.start, span.end) == (3, len(text) - 3)


def token_of(characters: int, header: int = 40) -> str:
    """A JSON web token of this length, with a header of `header` characters."""
    rng = random.Random(characters)
    pieces = (header, characters - header - 345, 343)
    first, second, third = ("".join(rng.choices(URLSAFE, k=length - 2)) for length in pieces)
    return f"ey{first}.ey{second}.{third}99"


@pytest.mark.parametrize(
    "lengths", first_in_test([*product([2_001, 2_340, 1_999, 2_000, 2_345], [40, 1_500]), (30_000, 1_500)], 3)
)
@pytest.mark.parametrize("around", ["令牌 {} 记一下", "{}", '{{"access_token": "{}"}}', "Bearer {}\n好"])
def test_a_token_goes_to_its_last_character_however_long_it_is(lengths: tuple[int, int], around: str) -> None:
    characters, header = lengths
    token = token_of(characters, header)

    assert len(token) == characters
    assert REDACTOR.clean(around.format(token)) == around.format("[令牌]")
    assert REDACTOR.clean_payload({"said": around.format(token)}).value == {"said": around.format("[令牌]")}


def test_a_header_of_many_certificates_does_not_hide_a_token() -> None:
    assert REDACTOR.clean(f"令牌 {token_of(9_000, header=6_000)}。") == "令牌 [令牌]。"


@pytest.mark.parametrize("characters", [1_999, 2_001, 8_000])
def test_a_token_behind_another_in_one_run_goes_too(characters: int) -> None:
    text = "我的 " + "/".join(["sk-proj-" + token_of(characters), "sk-ant-" + token_of(characters)]) + "，两个"

    assert "99" not in REDACTOR.clean(text)
    assert REDACTOR.clean(text).endswith("]，两个")


def test_a_token_inside_a_long_run_is_found_at_any_position() -> None:
    for before in (1_950, 1_980, 2_500):
        cleaned = REDACTOR.clean("路径 " + "a/" * (before // 2) + make_token("Zhipu") + " 完")
        assert cleaned == "路径 " + "a/" * (before // 2) + "[密钥] 完"


def test_full_width_and_invisible_characters_do_not_hide_a_token() -> None:
    token = make_token("GitHub classic")
    wide = token.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    split = token[:10] + "\u200b" + token[10:20] + "\u202e" + token[20:]

    assert REDACTOR.clean(f"密钥{wide}。") == "密钥[令牌]。"
    assert REDACTOR.clean(f"密钥{split}。") == "密钥[令牌]。"


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n> "])
def test_a_private_key_block_goes_as_a_whole(kind: str, newline: str) -> None:
    body = ["".join(random.Random(line).choices(WORD + "+/", k=64)) for line in range(12)]
    block = newline.join([f"-----BEGIN {kind}PRIVATE KEY-----", *body, f"-----END {kind}PRIVATE KEY-----"])

    assert REDACTOR.clean(f"这是私钥：{newline}{block}\n收好") == f"这是私钥：{newline}[密钥]\n收好"


def test_a_private_key_block_that_was_cut_off_goes_too() -> None:
    body = "\n".join("".join(random.Random(line).choices(WORD, k=64)) for line in range(3))

    cleaned = REDACTOR.clean(f"-----BEGIN PRIVATE KEY-----\n{body}")

    assert cleaned == "[密钥]"


def test_a_public_key_and_a_certificate_stay() -> None:
    body = "\n".join("".join(random.Random(line).choices(WORD + "+/", k=64)) for line in range(3))
    text = f"-----BEGIN PUBLIC KEY-----\nMII{body}\n-----END PUBLIC KEY-----"

    assert "BEGIN PUBLIC KEY" in REDACTOR.clean(text)
    assert REDACTOR.clean("什么是 -----BEGIN PRIVATE KEY----- 这一行？").count("PRIVATE KEY") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://app:s3cr3t@db.example.com/x", "postgres://app:[密码]@db.example.com/x"),
        ("redis://:hunter22@10.0.0.1:6379/0", "redis://:[密码]@10.0.0.1:6379/0"),
        (
            "连接串mongodb+srv://admin:Passw0rd@c0.example.net，记住",
            "连接串mongodb+srv://admin:[密码]@c0.example.net，记住",
        ),
        ("mysql://root:p@ss:w0rd@localhost/db", "mysql://root:[密码]@localhost/db"),
        ("postgres://app:${DB_PASSWORD}@db/x", "postgres://app:${DB_PASSWORD}@db/x"),
        ("http://localhost:8080/path?mail=x", "http://localhost:8080/path?mail=x"),
        ("Authorization: Bearer abc-def_123.xyz", "Authorization: Bearer [令牌]"),
        ("curl -H 'Authorization: Bearer qwertyuiopasdf'", "curl -H 'Authorization: Bearer [令牌]'"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [令牌]"),
        ("bearer authentication is used", "bearer authentication is used"),
        ("Authorization: Bearer <token>", "Authorization: Bearer <token>"),
        ("curl -u admin:S3cret9 https://x.example", "curl -u admin:[密码] https://x.example"),
        ("mysql -uroot -pS3cretPw -h db", "mysql -uroot -p[密码] -h db"),
    ],
)
def test_credentials_in_urls_headers_and_command_lines(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected


@pytest.mark.parametrize("length", [180, 200, 201, 300, 400, 404, 2_000])
@pytest.mark.parametrize(
    "text",
    ["curl -u admin:{} https://x.example", "https://{}@git.example/x", "Authorization: Basic {}\n", "mysql -p{} -h"],
)
def test_a_credential_in_a_wrapping_goes_to_its_last_character(text: str, length: int) -> None:
    secret = b64encode(b"user:" + random.Random(length).randbytes(length)).decode().rstrip("=").replace("/", "A")
    secret = secret.replace("+", "B")

    assert secret[-8:] not in REDACTOR.clean(text.format(secret))


def test_random_strings_without_a_name_go_and_sums_of_files_stay() -> None:
    rng = random.Random(5)
    secret = "".join(rng.choices(WORD + "+/", k=40))
    digest = "".join(rng.choices(WORD + "+/", k=86)) + "=="

    assert secret not in REDACTOR.clean(f"用这个 {secret} 试试")
    assert REDACTOR.clean(f'"integrity": "sha512-{digest}"') == f'"integrity": "sha512-{digest}"'
    assert REDACTOR.clean(f"![图](data:image/png;base64,iVBORw0KGgo{digest})").count(digest) == 1
