"""Text that only looks like a secret is unchanged."""

import random
import uuid
from hashlib import md5, sha1, sha256

import pytest

from sync.redaction import Redactor

REDACTOR = Redactor()


def number(seed: int, first: str, length: int) -> str:
    return first + "".join(random.Random(seed).choices("0123456789", k=length - len(first)))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: f"提交 {sha1(b'%d' % seed).hexdigest()} 修好了",
        lambda seed: f"commit {sha1(b'%d' % seed).hexdigest()[:12]}",
        lambda seed: f"sha256: {sha256(b'%d' % seed).hexdigest()}",
        lambda seed: f"![图](assets/img_{md5(b'%d' % seed).hexdigest()}.png)",
        lambda seed: f"设备ID是 {uuid.UUID(int=random.Random(seed).getrandbits(128), version=4)}，基于硬件",
        lambda seed: f"订单号 {number(seed, '2026', 14)} 已发货",
        lambda seed: f"订单号 TB{number(seed, '5', 10)} 已发货",
        lambda seed: f"快递 SF{number(seed, '13', 13)}",
        lambda seed: f"时间戳 {number(seed, '17', 13)}",
        lambda seed: f"ts={number(seed, '17', 16)}",
        lambda seed: f"码 {number(seed, '9138', 15)}",
        lambda seed: f"价格 ￥{random.Random(seed).randint(1, 999)},{random.Random(seed).randint(100, 999)}.50 元",
        lambda seed: f"升级到 v13.{seed}.8013-beta.5+build.{seed}800",
        lambda seed: f"### 2026/{seed % 12 + 1}/{seed % 28 + 1} 与 2026-11-21T10:00:{seed % 60:02}.123Z",
        lambda seed: f"139.{seed % 250}.123.45 是服务器",
        lambda seed: f"圆周率 3.{number(seed, '13800', 20)}",
        lambda seed: f"函数 updateAIMemoryFromRemoteEventLogWithRetry{seed}",
        lambda seed: f"ISBN 978-7-{number(seed, '111', 3)}-{number(seed, '5', 5)}-{seed % 10}",
    ],
)
def test_numbers_hashes_and_names_stay(make: object) -> None:
    assert callable(make)
    changed = [text for seed in range(50) if REDACTOR.clean(text := make(seed)) != text]

    assert changed == []


@pytest.mark.parametrize(
    "text",
    """
    密码忘了怎么办
    密码长度至少 12 位
    密码是必填项
    密码是什么
    密码用 bcrypt 加密
    密码是 SHA256 加密存储的
    手机号登录收不到验证码
    验证码 60 秒后重发
    验证码有效期 5 分钟
    api key 要放在环境变量里
    请不要把 token 写进代码
    用了 12000 个 token
    token 的有效期是 3600 秒
    密钥管理服务
    the password is incorrect
    the token is expired
    password: required
    "password": "string"
    Password must be 8-16 characters
    max_tokens=4096
    total tokens: 1234567
    password = os.environ["DB_PASSWORD"]
    password = getpass.getpass()
    apiKey: process.env.OPENAI_API_KEY
    secret: ${{ secrets.GITHUB_TOKEN }}
    api_key = "YOUR_API_KEY"
    api_key: <your-api-key>
    password: ********
    def login(user: str, password: str) -> bool:
    const { password, token } = req.body;
    token = Whitespace
    private_key: SSHCertPrivateKeyTypes
    primary_key = "id12345678901234"
    "next_page_token": "CAUQAA18sdf92kdf"
    "session_id": "sess_20260202_001"
    key: 550e8400-e29b-41d4-a716-446655440000
    PASS: 33, FAIL: 2
    keyboard: QWERTY60
    git@github.com:owner/repo.git
    icon@2x.png
    react@18.2.0
    https://www.youtube.com/watch?v=dQw4w9WgXcQ
    /Users/me/Library/Caches/xb2Ab3Cd4Ef5Gh6Ij7Kl8/file
    sk-toggleable__content
    password: String!
    login($email: String!, $password: String!) { token }
    password: [String!]!
    token: "…"
    sk-xxxxxxxxxxxxxxxxxxxxxxxx
    export OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxx
    sk-1234xxxxxxxxxxxxxxxxxxxxxxxx
    ghp_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
    AKIAIOSFODNN7EXAMPLE
    token = get_token()
    key = value
    key: primary
    the secret is to keep calm
    密码是什么？
    Authorization: Bearer process.env.TOKEN
    Authorization: Bearer <token>
    connect(password=pwd, token=tok)
    --password-stdin
    password: Required
    "password": "user_password"
    api_key="not-needed"
    secrets: inherit
    """.strip().splitlines(),
)
def test_talk_schemas_and_code_stay(text: str) -> None:
    assert REDACTOR.clean(text.strip()) == text.strip()
