"""The names of secrets in English and Chinese, and names that only sound like one.

The English names follow detect-secrets' KeywordDetector and gitleaks' generic rule, extended by the names of Chinese
consoles (AccessKey Secret, AppSecret, SecretId/SecretKey). The services are those whose tokens have no known format.
"""

from typing import Final

from sync.redaction.model import CODE, KEY, PASSWORD, TOKEN


def word_set(text: str) -> frozenset[str]:
    """A set of words, written as text."""
    return frozenset(text.split())


_GAP: Final = r"[_\-. ]?"

_CODES: Final = (
    rf"(?:verification|verify|security|sms|2fa|mfa|login|confirmation){_GAP}(?:code|passcode)"
    rf"|(?:sms|one{_GAP}time){_GAP}(?:code|password|passcode)"
    r"|otp|(?:your|the) code"
)
_PASSWORDS: Final = (
    "(?:store|key|src|dest|bind|root|admin|db|user|login|auth|smtp|mail|ftp|become)_?p(?:asswords?|asswd|ass|wd|w)"
    "|passwords?|passwr?d|passphrase|passcode|passwort|kennwort|contraseña|senha|mot de passe|pwr?d|pswd|psw|pw|pass"
    rf"|pin|cvv|cvc|mima|(?:recovery|backup|rescue){_GAP}codes?"
)
_KEYS: Final = (
    rf"(?:api|app|access|secret|private|account|auth|client|service|encryption|signing|master|subscription|admin"
    rf"|shared{_GAP}access|session|storage|license|webhook|jwt|aes|hmac|ssh|deploy|db|database)"
    rf"{_GAP}keys?(?:{_GAP}(?:id|secret))?"
    rf"|(?:client|app|api|auth|consumer|shared|webhook|jwt|session|user|my){_GAP}secret"
    rf"|secret{_GAP}(?:id|access{_GAP}key)|secrets?|credentials?|creds"
)
_TOKENS: Final = (
    rf"access{_GAP}token|tokens?|jwt|bearer|sessdata|bduss|stoken|phpsessid|jsessionid"
    r"|connect\.sid|cookie"
)
# kind -> names in Latin letters, as google-re2 alternatives; case does not matter
LATIN_NAMES: Final = ((CODE, _CODES), (PASSWORD, _PASSWORDS), (KEY, _KEYS), (TOKEN, _TOKENS))
CHINESE_NAMES: Final[tuple[tuple[str, str], ...]] = (
    (CODE, "验证码|驗證碼|校验码|动态码|动态口令|动态密码|短信码|认证码"),
    (
        PASSWORD,
        "密 {0,4}码|密碼|口令|暗号|提取码|访问码|通行码|安全码|恢复码|登[录陆]码|pin ?码|パスワード|暗証番号|비밀번호",
    ),
    (KEY, "密钥|密鑰|秘钥|密匙|秘匙|私钥|私鑰|金鑰|授权码|激活码|凭证|凭据"),
    (TOKEN, "令牌|权杖"),
)
# Short names that other words contain: compass, spin, monkey.
SHORT_NAMES: Final = frozenset({"pass", "pin", "otp", "pwd", "psw", "cvv", "cvc", "jwt", "creds", "mima", "pw", "pswd"})
# Names of a secret only if the value looks like one.
WEAK_WORDS: Final = frozenset({"key", "auth", "access", "ak", "sk", "sign", "signature", "sig", "ticket"})
_VENDORS: Final = (
    "adafruit|adobe|airtable|algolia|alibaba|aliyun|asana|atlassian|beamer|bitbucket|bittrex|cloudflare|codecov|cohere"
    "|coinbase|confluent|contentful|datadog|deepseek|discord|drone[_-]?ci|dropbox|etsy|facebook|fastly|finicity|finnhub"
    "|flickr|freshbooks|gitee|gitter|gocardless|heroku|hubspot|intercom|jfrog|artifactory|jira|confluence|kraken|kucoin"
    "|launchdarkly|linear|linked[_-]?in|lob|mailchimp|mailgun|mapbox|mattermost|meraki|message[_-]?bird|mistral"
    "|moonshot|netlify|new[_-]?relic|nytimes|okta|openai|anthropic|plaid|private[_-]?ai|qcloud|tencent|rapidapi"
    "|sendbird|sentry|snyk|sonar(?:qube|cloud)?|squarespace|square|sumo[_-]?logic|sumo|telegram|travis[_-]?ci|travis"
    "|trello|twitch|twitter|typeform|volcengine|yandex|zendesk|zhipu"
)
WEAK_NAMES: Final = rf"signature|ticket|access|auth|sign|sig|key|ak|sk|(?:{_VENDORS})(?:(?:[ ]|'s |[ ]?的[ ]?)keys?)?"

# Suffixes of names that do not hold the secret itself: token_url, password_length, secretName.
HARMLESS_SUFFIXES: Final = word_set(
    """
    url uri endpoint name names type types length len size file files filename path dir field fields label hint expiry
    expires expired expiration expire ttl lifetime age count counts limit limits budget policy min max reset input
    prompt text placeholder manager provider algorithm alg method audience issuer scope scopes version format regex
    pattern validator validation error errors message required confirm enabled disabled usage used rotation status
    state id ids index position offset prefix suffix alias pair board code frame press pressed ring selector signature
    store storetype stone word up down left right down_event vault ref reference source service server host
    port user username owner group role env variable var param parameter header cookie_name column table model class
    func function handler helper util utils test tests spec docs schema generator generation gen strength rule rules
    management based less protected protection change changed update updated created at date time hash hashed salt
    mode modes argtypes restype izer izers ization ize ized
    """
)
# Prefixes of names that are not secret: public_key, csrf-token, nextPageToken, eos_token.
HARMLESS_PREFIXES: Final = word_set(
    """
    public pub csrf xsrf primary foreign sort partition cache idempotency hot natural bucket object sequence schema row
    dict map json s3 page continuation cancellation cancel pad eos bos unk sep cls mask stop special max min num total
    input output prompt completion next prev first last start end per no without random idx by of error invalid
    shortcut registry surrogate candidate composite unique group lookup routing
    """
)

# Words that make a number a measure: 13 GB in bytes has as many digits as a mobile number.
_MEASURES: Final = word_set(
    """
    size sizes bytes length len count counts total sum offset position line column duration elapsed latency age ttl
    time timestamp ts ms ns us mtime ctime atime epoch date amount price cost balance tokens seq sequence version
    revision index page width height exit status
    """
)
# Words that make a number a quantity unless the name may name a secret: heapUsed, expires_at.
_QUANTITIES: Final = word_set(
    """
    nanos nanoseconds microseconds milliseconds seconds at modified expires deadline since until start end uptime delay
    interval timeout memory rss heap ram disk free used available capacity quota rows blocks blksize inode ino stock
    revenue cap volume bandwidth throughput qps hits views followers population
    """
)
# Words of ids assigned by programs. In prose, `chat:` or `order:` before a mobile number proves nothing.
_ID_WORDS: Final = word_set(
    """
    hash checksum crc seed pid ppid message msg order trace span request event job task build run thread session file
    chat channel guild
    """
)
_CHINESE_MEASURES: Final = tuple(
    word_set(
        """
        时间 时间戳 日期 耗时 时长 毫秒 大小 字节 字节数 长度 数量 总数 行数 总量 金额 价格 余额 市值 库存 销量 播放量
        浏览量 容量 内存 订单号 订单编号
        """
    )
)
_SECRET_OR_PERSONAL_WORDS: Final = word_set("phone mobile tel card pass pwd pin code otp secret token key ssn")


def may_name_secret(name: str) -> bool:
    """Whether even a short number under this name may be a secret or a personal number."""
    return not name.isascii() or any(word in name.lower() for word in _SECRET_OR_PERSONAL_WORDS)


def is_quantity(name: str) -> bool:
    """Whether a number under this name is a count, a measure or a date."""
    words = identifier_words(name)
    if name.endswith(_CHINESE_MEASURES) or not _MEASURES.isdisjoint(words):
        return True
    return not may_name_secret(name) and not _QUANTITIES.isdisjoint(words)


def is_quantity_or_id(name: str) -> bool:
    """Whether a number under this name is a quantity or an id assigned by a program."""
    return is_quantity(name) or (not may_name_secret(name) and not _ID_WORDS.isdisjoint(identifier_words(name)))


def identifier_words(identifier: str) -> list[str]:
    """The words of snake_case, kebab-case, dotted.names and camelCase, in small letters."""
    spaced: list[str] = []
    for index, char in enumerate(identifier):
        if not (char.isascii() and char.isalpha()):
            spaced.append(" ")
        elif char.isupper() and index and identifier[index - 1].islower():
            spaced.append(" " + char)
        else:
            spaced.append(char)
    return "".join(spaced).lower().split()
