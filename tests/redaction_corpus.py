"""Texts with secrets and look-alikes, generated from a seed: lines of READMEs, vendors' values, tokens in prose.

`python -m tests.redaction_corpus [SEED]` measures how many secrets of each set are found and look-alikes are touched.
"""

import random
import string
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from sync.redaction import Redactor
from tests.unit.redaction.detectors.test_tokens import SENTENCES, SHAPES, make_token

WORD: Final = string.ascii_letters + string.digits
LOWER: Final = string.ascii_lowercase + string.digits
HEX: Final = "0123456789abcdef"
BASE32: Final = string.ascii_uppercase + "234567"


class Case(NamedTuple):
    """A text and the value to redact; a look-alike has none."""

    text: str
    value: str | None = None


def random_text(rng: random.Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def uuid(rng: random.Random) -> str:
    return "-".join(random_text(rng, HEX, length) for length in (8, 4, 4, 4, 12))


def base64(rng: random.Random, length: int) -> str:
    return b64encode(rng.randbytes(length)).decode()


def syllables(rng: random.Random, count: int) -> str:
    return "".join(
        rng.choice("bcdfghklmnprstvw") + rng.choice("aeiou") + rng.choice(["", "n", "r"]) for _ in range(count)
    )


PASSWORDS: Final[tuple[Callable[[random.Random], str], ...]] = (
    lambda rng: syllables(rng, 3),
    lambda rng: syllables(rng, 2) + str(rng.randint(1, 9999)),
    lambda rng: syllables(rng, 2).capitalize() + str(rng.randint(10, 999)) + rng.choice("!@#*"),
    lambda rng: random_text(rng, string.ascii_lowercase, 5) + rng.choice("@!#") + random_text(rng, string.digits, 3),
    lambda rng: random_text(rng, WORD, rng.randint(8, 16)) + "4",
)
KEYS: Final[tuple[Callable[[random.Random], str], ...]] = (
    lambda rng: random_text(rng, HEX, rng.choice((32, 40, 64))),
    lambda rng: random_text(rng, WORD, rng.choice((20, 32, 40))),
    lambda rng: base64(rng, rng.choice((24, 30, 32))),
    lambda rng: random_text(rng, LOWER, rng.choice((24, 32))),
)

# Lines as READMEs have them; {p} is a password, {k} a key or token, {h} 35 hexadecimal digits, {n} a NATS seed.
TRUE_LINES: Final = (
    "password: {p}",
    '"password": "{p}"',
    "    'password' => '{p}',",
    "DB_PASSWORD={p}",
    "$ ./run --user admin --password {p} --verbose",
    "docker run -e MYSQL_ROOT_PASSWORD={p} -p 3306:3306 mysql",
    "export SECRET_KEY={k}",
    "curl -u admin:{p} https://api.example.com/v1/users",
    "mysql -uroot -p{p} app",
    "mysql -uroot -p'{p}' app",
    '    "SecretAccessKey" : "{k}",',
    'curl -H "X-Auth-Token: {h}" https://api.example.com',
    "X-Project-Token: {h}",
    '$pw = ConvertTo-SecureString "{p}" -AsPlainText -Force',
    "nats -s nats://localhost --nkey {n}",
    "Authorization: Bearer {k}",
    "https://deploy:{p}@git.example.com/app.git",
    "mongodb://app:{p}@db.example.com:27017/app",
    'secret: "{k}"',
    "  clientSecret: '{k}',",
    "| Password | {p} |",
    "* Password: `{p}`",
    "Server=db;Uid=app;Pwd={p};",
    "spring.datasource.password={p}",
    'password = "{p}"',
    'auth_token = "{k}"',
    '{{"token": "{k}"}}',
    'const client = new Client({{ apiKey: "{k}" }})',
    'login(username="app", password="{p}")',
    "terraform apply -var 'db_password={p}'",
    "net use z: /user:app /password:'{p}'",
    "PGPASSWORD={p} psql -h db",
    "redis://:{p}@cache.example.com:6379",
    "aws_secret_access_key = {k}",
    "AccountName=store;AccountKey={k}==",
    "jdbc:mysql://db/app?user=app&password={p}",
    "Default login: admin / Password: {p}",
    'user.setPassword("{p}");',
    '  api_key: "{k}" # from the console',
    "app_secret={k}&format=json",
    "--token={k}",
    "    token: {k}",
    '<property name="password" value="{p}"/>',
    "<password>{p}</password>",
    "The password is {p}.",
    "CREATE USER app IDENTIFIED BY '{p}';",
    "sshpass -p {p} ssh app@db",
    "access_token={k}",
    'os.environ["API_TOKEN"] = "{k}"',
    "encryption_key: {k}",
)
# A second list, written after the rules had been measured on the first and before they were measured on it.
MORE_TRUE_LINES: Final = (
    "$ http POST :8000/login username=admin password={p}",
    "  - POSTGRES_PASSWORD={p}",
    "    MYSQL_PASSWORD: {p}",
    "password: '{p}' # default",
    "`admin` / `{p}`",
    "User: admin, Password: {p}",
    "login with username `admin` and password `{p}`",
    "The default password is `{p}`",
    "-Dpassword={p} -jar app.jar",
    "spring.redis.password: {p}",
    "const SECRET = '{k}';",
    "JWT_SECRET='{k}'",
    "app.config['SECRET_KEY'] = '{k}'",
    "client_id=app&client_secret={k}",
    "x-api-key: {k}",
    "'X-Api-Key': '{k}',",
    "api-token {k}",
    "--api-key={k} \\",
    "-p {p} -u admin",
    "--username=admin --password={p}",
    "amqp://guest:{p}@rabbit:5672",
    "smtp_password = {p}",
    '"accessToken":"{k}",',
    "export GITHUB_TOKEN={k}",
    "DATABASE_URL=postgres://app:{p}@localhost/app",
    "set password for 'root'@'localhost' = '{p}';",
    "ALTER USER app WITH PASSWORD '{p}';",
    "vault write secret/app password={p}",
    "echo {p} | docker login -u app --password-stdin",
    "htpasswd -b .htpasswd app {p}",
    "keytool -storepass {p} -keypass {p}",
    "openssl req -passout pass:{p}",
    "ansible_ssh_pass={p}",
    "sonar.login={k}",
    "NPM_TOKEN={k} npm publish",
    "Password={p};Persist Security Info=False",
    "wget --user=app --password={p} https://example.com",
    '"clientSecret" : "{k}"',
    "SECRET_ACCESS_KEY: {k}",
    "aws configure set aws_secret_access_key {k}",
    "token='{k}',",
    '  "private_key": "{k}"',
    'bot = Bot(token="{k}")',
    "StorageKey: {k}",
    "pwd: {p}",
    "passwd {p}",
    'authToken: "{k}"',
    "hmac_key={k}",
    "basic_auth: {{ username: app, password: {p} }}",
    "DefaultPassword={p}",
    'license_key: "{k}"',
)
# {w} is a word, {u} a UUID, {s} a sum, {t} the name of a type, {v} the name of a variable.
FALSE_LINES: Final = (
    "password: String!",
    "mutation login($email: String!, $password: String!) {{ token }}",
    'token: "..."',
    "password: <your-password>",
    'password="$DB_PASSWORD"',
    "api_key: YOUR_API_KEY",
    "token: ${{{{ secrets.{v} }}}}",
    '"password": "string",',
    "password: process.env.DB_PASSWORD,",
    '"secretName": "{w}-secret",',
    "token_url: https://auth.example.com/{w}",
    '"keyFile": "/etc/{w}/server.key"',
    'password: ""',
    "password=********",
    "passwordHash: sha256",
    'key: "{w}"',
    "kubectl create secret generic {w}-secret --from-file={w}.txt",
    'token: "my-token"',
    "credentials: default",
    'secret: "{w}-{w2}-secret",',
    "password: changeme",
    "tokenType: bearer",
    '{{"key": "Content-Type", "value": "application/json"}}',
    "password: password",
    "pass: true",
    "key: value",
    '"etag": "{s}"',
    "id: {u}",
    "commit {s}",
    "- `token` (string): the token of the {w} API",
    "| `password` | {t} | The password of the user |",
    "The `secret` option is required.",
    "Get your API key at https://{w}.example.com/keys",
    "function login(user: {t}, password: {t}): Promise<Token>",
    "const token = await getToken({v});",
    "password = getpass.getpass()",
    "export TOKEN=$(cat token.txt)",
    "curl -H 'Authorization: Bearer $TOKEN' https://{w}.example.com",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-your-key",
    "api_key = os.getenv('{v}')",
    "token = settings.{v}",
    "Tokens expire after 3600 seconds.",
    "password must be at least 12 characters",
    "secretKeyRef: {{name: {w}, key: password}}",
    "--password-stdin",
    "auth: basic",
    '"access_token": "<token>"',
    "See [password reset](docs/password-{w}.md).",
    "image: registry.example.com/{w}@sha256:{s64}",
)
MORE_FALSE_LINES: Final = (
    "password: {t}",
    "token: {t}",
    "| `token` | {t} | - | Access token |",
    "* `secret` - {w} secret name",
    "secret_key_base: <%= ENV['SECRET'] %>",
    "key: {{{{ .Values.key }}}}",
    "password = input('Password: ')",
    "passwordField.value",
    '<input type="password" name="password" />',
    "`--token TOKEN`  API token",
    "`--password PASS`",
    "PASSWORD=<password>",
    'auth_token: "<your token>"',
    "secretName: {w}-tls",
    "imagePullSecrets: [{{name: {w}}}]",
    "tokens: 4096",
    "max_tokens: 2048",
    "- key: {w}",
    "  key: app.kubernetes.io/name",
    "primaryKey: id",
    "cache-key: {w}-{s}",
    "api_version: 2023-10-01",
    "token_type: Bearer",
    "grant_type=password&scope=read",
    "response.token",
    "if (!token) return null",
    '"key": "{u}"',
    "The key {w} is reserved",
    "password hashing uses bcrypt",
    "apiKey={{apiKey}}",
    "secret={w}Secret",
    "TOKEN=your_token_here",
    'token = "xxx"',
    "password=xxxxxx",
    "`password` must not be empty",
    "keys: [a, b]",
    "vault kv get secret/{w}",
    'token: "YOUR-TOKEN"',
    'accessKey: ""',
    "passwordPolicy: strong",
    "secrets: inherit",
    "uses: actions/checkout@{s}",
    "sha512-{s}{s}==",
    "key: '{w}-${{{{ hashFiles() }}}}'",
    '"token": "string"',
    "password (optional)",
    "pass --token to authenticate",
    "get a token from the {w} page",
    "auth: true",
    "credentialsId: '{w}-creds'",
)
TYPES: Final = ("String", "string", "str", "text", "VARCHAR(64)", "SecretStr", "Buffer", "Uint8Array")
WORDS: Final = ("redis", "billing", "gateway", "frontend", "mailer", "search", "ingress", "worker", "metrics", "parser")

# Vendors whose tokens have no known format, with alphabet and length from the public rules.
VENDORS: Final[dict[str, tuple[Callable[[random.Random], str], ...]]] = {
    "adafruit": (lambda r: random_text(r, LOWER + "_-", 32),),
    "adobe": (lambda r: random_text(r, HEX, 32),),
    "algolia": (lambda r: random_text(r, LOWER, 32),),
    "alibaba": (lambda r: random_text(r, LOWER, 30),),
    "asana": (lambda r: random_text(r, LOWER, 32),),
    "atlassian": (lambda r: random_text(r, LOWER, 24),),
    "bitbucket": (lambda r: random_text(r, LOWER, 32), lambda r: random_text(r, LOWER + "=_-", 64)),
    "bittrex": (lambda r: random_text(r, LOWER, 32),),
    "codecov": (lambda r: random_text(r, LOWER, 32),),
    "cohere": (lambda r: random_text(r, WORD, 40),),
    "coinbase": (lambda r: random_text(r, LOWER + "_-", 64),),
    "confluent": (lambda r: random_text(r, LOWER, 16), lambda r: random_text(r, LOWER, 64)),
    "contentful": (lambda r: random_text(r, LOWER + "=_-", 43),),
    "datadog": (lambda r: random_text(r, LOWER, 40),),
    "discord": (lambda r: random_text(r, HEX, 64), lambda r: random_text(r, LOWER + "=_-", 32)),
    "droneci": (lambda r: random_text(r, LOWER, 32),),
    "dropbox": (lambda r: random_text(r, LOWER, 15),),
    "etsy": (lambda r: random_text(r, LOWER, 24),),
    "facebook": (lambda r: random_text(r, HEX, 32),),
    "fastly": (lambda r: random_text(r, LOWER + "=_-", 32),),
    "finicity": (lambda r: random_text(r, LOWER, 20), lambda r: random_text(r, HEX, 32)),
    "finnhub": (lambda r: random_text(r, LOWER, 20),),
    "flickr": (lambda r: random_text(r, LOWER, 32),),
    "freshbooks": (lambda r: random_text(r, LOWER, 64),),
    "gitter": (lambda r: random_text(r, LOWER + "_-", 40),),
    "heroku": (uuid,),
    "hubspot": (uuid,),
    "intercom": (lambda r: random_text(r, LOWER + "=_-", 60),),
    "jfrog": (lambda r: random_text(r, LOWER, 64),),
    "kraken": (lambda r: random_text(r, LOWER + "/=_+-", 84),),
    "kucoin": (lambda r: random_text(r, HEX, 24), uuid),
    "launchdarkly": (lambda r: random_text(r, LOWER + "=_-", 40),),
    "linear": (lambda r: random_text(r, HEX, 32),),
    "linkedin": (lambda r: random_text(r, LOWER, 14), lambda r: random_text(r, LOWER, 16)),
    "mattermost": (lambda r: random_text(r, LOWER, 26),),
    "meraki": (lambda r: random_text(r, HEX, 40),),
    "messagebird": (lambda r: random_text(r, LOWER, 25), uuid),
    "netlify": (lambda r: random_text(r, LOWER + "=_-", 43),),
    "nytimes": (lambda r: random_text(r, LOWER + "=_-", 32),),
    "okta": (lambda r: "00" + random_text(r, WORD + "=_-", 40),),
    "plaid": (lambda r: random_text(r, LOWER, 24), lambda r: random_text(r, LOWER, 30)),
    "privateai": (lambda r: random_text(r, LOWER, 32),),
    "rapidapi": (lambda r: random_text(r, LOWER + "_-", 50),),
    "sendbird": (uuid, lambda r: random_text(r, HEX, 40)),
    "sentry": (lambda r: random_text(r, HEX, 64),),
    "snyk": (uuid,),
    "sonar": (lambda r: random_text(r, LOWER + "=_-", 40),),
    "squarespace": (uuid,),
    "sumologic": (lambda r: random_text(r, LOWER, 64),),
    "travisci": (lambda r: random_text(r, LOWER, 22),),
    "trello": (lambda r: random_text(r, LOWER, 32),),
    "twitch": (lambda r: random_text(r, LOWER, 30),),
    "twitter": (lambda r: random_text(r, LOWER, 25), lambda r: random_text(r, LOWER, 50)),
    "yandex": (lambda r: random_text(r, LOWER, 40),),
    "zendesk": (lambda r: random_text(r, LOWER, 40),),
}
BESIDE: Final = (
    "我的 {v} key 是 {x}",
    "{v} 的密钥是{x}，别外传",
    "{V}_TOKEN={x}",
    "{v}_api_key: {x}",
    '"{v}Secret": "{x}"',
    "{v}: {x}",
    "{v} token = '{x}'",
    "my {v} API key is {x}",
    "{v} 的 token：{x}",
    'export {V}_ACCESS_TOKEN="{x}"',
)


def readme(seed: int, per_line: int = 3) -> Iterator[Case]:
    """Lines of READMEs with a secret, then lines without."""
    rng = random.Random(f"readme{seed}")
    for line in (TRUE_LINES + MORE_TRUE_LINES) * per_line:
        value = {"p": rng.choice(PASSWORDS)(rng), "k": rng.choice(KEYS)(rng), "h": random_text(rng, HEX, 35)}
        value["n"] = rng.choice(("SU", "SA")) + random_text(rng, BASE32, 56)
        name = next(name for name in "pkhn" if f"{{{name}}}" in line)
        yield Case(line.format(**value), value[name])
    for line in (FALSE_LINES + MORE_FALSE_LINES) * per_line:
        words = rng.sample(WORDS, 2)
        yield Case(
            line.format(
                w=words[0], w2=words[1], u=uuid(rng), s=random_text(rng, HEX, 40), s64=random_text(rng, HEX, 64),
                t=rng.choice(TYPES),
                v=rng.choice(("API_TOKEN", "user_key", "config")),
            )
        )  # fmt: skip


def vendors(seed: int) -> Iterator[Case]:
    """Values that only the name of their vendor identifies."""
    rng = random.Random(f"vendors{seed}")
    for vendor, shapes in VENDORS.items():
        for shape in shapes:
            for carrier in BESIDE:
                value = shape(rng).strip("-_=/+") or "0a1b2c3d"
                yield Case(carrier.format(v=vendor, V=vendor.upper(), x=value), value)


def tokens(seed: int) -> Iterator[Case]:
    """Tokens with a known format, in prose."""
    for issuer in SHAPES:
        token = make_token(issuer, seed + 1_000)
        for sentence in SENTENCES:
            yield Case(sentence.format(token), token)


_PROVINCES: Final = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_CITIES: Final = (
    "广东省深圳市南山区",
    "北京市海淀区",
    "浙江省杭州市西湖区",
    "四川省成都市武侯区",
    "上海市浦东新区",
    "江苏苏州工业园区",
)
_ROADS: Final = ("科技园路", "中关村大街", "文三路", "人民南路", "世纪大道", "星湖街", "解放巷", "幸福里小区")
# A carrier and what makes the value.
PEOPLE: Final[tuple[tuple[str, Callable[[random.Random], str]], ...]] = (
    ("我的护照号是{}，记一下", lambda r: r.choice("EG") + random_text(r, string.digits, 8)),
    ("护照：{}", lambda r: "E" + r.choice(_LETTERS) + random_text(r, string.digits, 7)),
    ("Passport No. {}", lambda r: r.choice("EGP") + random_text(r, string.digits, 8)),
    ("港澳通行证{}到期", lambda r: r.choice("CW") + random_text(r, string.digits, 8)),
    ("回乡证号：{}", lambda r: r.choice("HM") + random_text(r, string.digits, 10)),
    ("车牌{}停在楼下", lambda r: r.choice(_PROVINCES) + r.choice(_LETTERS) + random_text(r, string.digits, 5)),
    (
        "我的车是{}。",
        lambda r: (
            r.choice(_PROVINCES) + r.choice(_LETTERS) + "·" + random_text(r, string.digits, 4) + r.choice(_LETTERS)
        ),
    ),
    (
        "新能源：{}",
        lambda r: r.choice(_PROVINCES) + r.choice(_LETTERS) + r.choice("DF") + random_text(r, string.digits, 5),
    ),
    (
        "香港号码 {}",
        lambda r: "+852 " + r.choice("569") + random_text(r, string.digits, 3) + " " + random_text(r, string.digits, 4),
    ),
    ("call me: {}", lambda r: f"+1 {r.randint(201, 989)}-{r.randint(200, 999)}-{random_text(r, string.digits, 4)}"),
    ("tel {}", lambda r: f"({r.randint(201, 989)}) {r.randint(200, 999)}-{random_text(r, string.digits, 4)}"),
    (
        "SSN: {}",
        lambda r: (
            f"{random_text(r, string.digits, 3)}-{random_text(r, string.digits, 2)}-{random_text(r, string.digits, 4)}"
        ),
    ),
    ("微信号：{}", lambda r: syllables(r, 3) + random_text(r, string.digits, 3)),
    ("加我微信{}", lambda r: " wxid_" + random_text(r, LOWER, 14)),
    ("我的vx：{}，备注姓名", lambda r: syllables(r, 3) + "_" + random_text(r, string.digits, 2)),
    (
        "地址：{}",
        lambda r: (
            f"{r.choice(_CITIES)}{r.choice(_ROADS)}{r.randint(1, 999)}号{r.randint(1, 30)}栋{r.randint(101, 2909)}室"
        ),
    ),
    ("寄到{}，谢谢", lambda r: f"{r.choice(_CITIES)}{r.choice(_ROADS)} {r.randint(1, 999)} 号"),
    ("我住在{}。", lambda r: f"{r.choice(_ROADS)}{r.randint(1, 999)}弄{r.randint(1, 99)}号"),
    (
        "邮箱{}",
        lambda r: syllables(r, 3) + random_text(r, string.digits, 2) + r.choice(("艾特", " 艾特 ")) + "163点com",
    ),
)


def people(seed: int) -> Iterator[Case]:
    """Documents, plates, contacts and addresses beside their names."""
    rng = random.Random(f"people{seed}")
    for carrier, make in PEOPLE * 10:
        value = make(rng)
        yield Case(carrier.format(value), value.strip())


def misses(cases: Iterator[Case], redactor: Redactor) -> tuple[list[Case], list[Case], int, int]:
    """The secrets that stay, the look-alikes that are changed, and the number of each."""
    leaks, false, secrets, others = [], [], 0, 0
    for case in cases:
        cleaned = redactor.clean(case.text)
        if case.value is None:
            others += 1
            if cleaned != case.text:
                false.append(case)
        else:
            secrets += 1
            if case.value in cleaned or case.value[len(case.value) // 2 :] in cleaned:
                leaks.append(case)
    return leaks, false, secrets, others


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    redactor = Redactor()
    for name, cases in (
        ("README lines", readme(seed)),
        ("vendors' values", vendors(seed)),
        ("tokens", tokens(seed)),
        ("people", people(seed)),
    ):
        leaks, false, secrets, others = misses(cases, redactor)
        found = f"recall {1 - len(leaks) / secrets:.4f} of {secrets}"
        print(f"{name:<16} {found}" + (f", false {len(false) / others:.4f} of {others}" if others else ""))
        if "-v" in sys.argv:
            for case in (*leaks, *false):
                print("   ", case.text, "=>", redactor.clean(case.text))


if __name__ == "__main__":
    main()
