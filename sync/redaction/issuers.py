r"""Tokens of known issuers, as data: who, what kind, how it begins, what follows.

A row's shape is the issuer's own documentation of its format or, where that is silent, the public rules of secret
scanners (gitleaks `config/gitleaks.toml` v8, detect-secrets 1.5 plugins, GitHub's list of partner patterns); the
Chinese providers' shapes come from their consoles' documentation. Lengths are taken as at least rather than exactly
where a prefix is unmistakable, because issuers lengthen their tokens without notice.

`BEGINNINGS` are found by their first characters, `INNER` by a mark inside. Publishable keys (sb_publishable_, pk_live_,
phc_) are public by design and not here.
"""

from typing import Final, NamedTuple

from sync.redaction.model import KEY, PASSWORD, TOKEN

_UUID: Final = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"


class Shape(NamedTuple):
    """`beginning` is literal; `rest` is a google-re2 pattern for what must follow it."""

    issuer: str
    kind: str
    beginning: str
    rest: str


def _each(issuer: str, kind: str, beginnings: str, rest: str) -> tuple[Shape, ...]:
    return tuple(Shape(issuer, kind, beginning, rest) for beginning in beginnings.split())


BEGINNINGS: Final[tuple[Shape, ...]] = (
    # Models and agents
    *_each("Anthropic", KEY, "sk-ant-", r"[A-Za-z0-9_\-]{20,}"),
    *_each("OpenAI", KEY, "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", r"[A-Za-z0-9_\-]{20,}"),
    *_each("OpenRouter, Langfuse", KEY, "sk-or-v1- sk-lf-", r"[A-Za-z0-9\-]{20,}"),
    # OpenAI's older keys, DeepSeek, Moonshot, DashScope, Baichuan, StepFun: alphanumeric; SiliconFlow: letters only.
    *_each("OpenAI-compatible", KEY, "sk-", r"(?:[A-Za-z0-9]{24,}|[A-Za-z0-9]{4,12}-[A-Za-z0-9]{24,})"),
    *_each("Google", KEY, "AIza", r"[A-Za-z0-9_\-]{30,}"),
    *_each("Google", KEY, "AQ.Ab8", r"[A-Za-z0-9_\-]{30,}"),
    *_each("Google OAuth", KEY, "GOCSPX-", r"[A-Za-z0-9_\-]{20,}"),
    *_each("Google OAuth", TOKEN, "ya29.", r"[A-Za-z0-9_\-.]{20,}"),
    *_each("Google OAuth", TOKEN, "1//0", r"[A-Za-z0-9_\-]{30,}"),
    *_each("Hugging Face", TOKEN, "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    *_each("Groq", KEY, "gsk_", r"[A-Za-z0-9]{40,}"),
    *_each("xAI", KEY, "xai-", r"[A-Za-z0-9_\-]{40,}"),
    *_each("Perplexity", KEY, "pplx-", r"[A-Za-z0-9]{32,}"),
    *_each("Cerebras", KEY, "csk-", r"[A-Za-z0-9]{32,}"),
    *_each("Replicate", TOKEN, "r8_", r"[A-Za-z0-9]{37,40}"),
    *_each("Fireworks", KEY, "fw_", r"[A-Za-z0-9]{22,24}"),
    *_each("Together", KEY, "tgp_v1_", r"[A-Za-z0-9_\-]{30,}"),
    *_each("Voyage", KEY, "pa-", r"[A-Za-z0-9_\-]{43}"),
    *_each("Tavily", KEY, "tvly-", r"(?:dev-|prod-)?[A-Za-z0-9\-]{20,}"),
    *_each("NVIDIA", KEY, "nvapi-", r"[A-Za-z0-9_\-]{40,}"),
    *_each("Jina", KEY, "jina_", r"[A-Za-z0-9_\-]{40,}"),
    *_each("LangSmith", KEY, "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    *_each("ElevenLabs", KEY, "sk_", r"[0-9a-f]{48}"),
    *_each("Freemius", KEY, "sk_", r"[A-Za-z0-9!-&*+.:-@^~]{29}"),
    *_each("Pinecone", KEY, "pcsk_", r"[A-Za-z0-9_]{40,}"),
    *_each("Firecrawl", KEY, "fc-", r"[0-9a-f]{32}"),
    *_each("E2B", KEY, "e2b_", r"[0-9a-f]{40}"),
    *_each("Apify", KEY, "apify_api_", r"[A-Za-z0-9]{30,}"),
    *_each("Dify", KEY, "app- dataset-", r"[A-Za-z0-9]{24}"),
    *_each("Coze", TOKEN, "pat_", r"[A-Za-z0-9]{40,}"),
    *_each("ModelScope", TOKEN, "ms-", _UUID),
    # Source code and packages
    *_each("GitHub", TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_]{36,}"),
    *_each("GitHub", TOKEN, "github_pat_", r"[A-Za-z0-9_]{60,}"),
    *_each("GitLab", TOKEN, "glpat- gldt- glrt- glft- glsoat- glffct- glwt- glrtr-", r"[A-Za-z0-9_\-.]{20,}"),
    *_each("GitLab", TOKEN, "glptt- glimt- glagent- gloas- glcbt- GR1348941", r"[A-Za-z0-9_\-.]{20,}"),
    *_each("Bitbucket, Atlassian", TOKEN, "ATBB ATATT3 ATCTT3", r"[A-Za-z0-9_\-=]{20,}"),
    *_each("npm", TOKEN, "npm_", r"[A-Za-z0-9]{36,}"),
    *_each("PyPI", TOKEN, "pypi-AgE", r"[A-Za-z0-9_\-]{40,}"),
    *_each("RubyGems", TOKEN, "rubygems_", r"[0-9a-f]{48}"),
    *_each("crates.io", TOKEN, "cio", r"[A-Za-z0-9]{32}"),
    *_each("NuGet", KEY, "oy2", r"[a-z0-9]{43}"),
    *_each("Clojars", TOKEN, "CLOJARS_ clojars_", r"[A-Za-z0-9]{60}"),
    *_each("Docker Hub", TOKEN, "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_\-]{24,}"),
    *_each("JFrog", KEY, "AKCp", r"[A-Za-z0-9]{60,}"),
    *_each("JFrog", TOKEN, "cmVmd", r"[A-Za-z0-9]{59}"),
    *_each("SonarQube", TOKEN, "sqp_ squ_ sqa_", r"[0-9a-f]{40}"),
    *_each("Sourcegraph", TOKEN, "sgp_", r"(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}"),
    *_each("CircleCI", TOKEN, "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{40,}"),
    *_each("Buildkite", TOKEN, "bkua_", r"[0-9a-f]{40}"),
    *_each("Octopus Deploy", KEY, "API-", r"[A-Z0-9]{26}"),
    *_each("Postman", KEY, "PMAK-", r"[0-9a-fA-F]{24}-[0-9a-fA-F]{34}"),
    *_each("Prefect", TOKEN, "pnu_ pnb_", r"[A-Za-z0-9]{36}"),
    *_each("ReadMe", TOKEN, "rdme_", r"[A-Za-z0-9]{70}"),
    *_each("Snyk", TOKEN, "snyk_uat.", r"[A-Za-z0-9_.\-]{20,}"),
    # Clouds
    *_each("AWS", KEY, "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    *_each("AWS", KEY, "A3T", r"[A-Z0-9]{17}"),
    *_each("AWS Bedrock", KEY, "ABSK", r"[A-Za-z0-9+/]{90,}={0,2}"),
    *_each("AWS Bedrock", KEY, "bedrock-api-key-", r"[A-Za-z0-9+/=_\-]{20,}"),
    *_each("Amazon", KEY, "amzn.mws.", _UUID),
    *_each("Amazon", KEY, "amzn1.oa2-cs.v1.", r"[0-9a-f]{64}"),
    *_each("Alibaba Cloud", KEY, "LTAI", r"[A-Za-z0-9]{12,26}"),
    *_each("Tencent Cloud", KEY, "AKID", r"[A-Za-z0-9]{28,36}"),
    *_each("Volcengine, Kingsoft", KEY, "AKLT AKTP", r"[A-Za-z0-9_\-]{20,}={0,2}"),
    *_each("Baidu Cloud", KEY, "bce-v3/ALTAK-", r"[A-Za-z0-9]{16,}/[0-9a-f]{40}"),
    *_each("Baidu Cloud", KEY, "ALTAK", r"[A-Za-z0-9]{20,}"),
    *_each("JD Cloud", KEY, "JDC_", r"[A-Z0-9]{24,40}"),
    *_each("DigitalOcean", TOKEN, "dop_v1_ doo_v1_ dor_v1_ DOR_V1_", r"[0-9a-fA-F]{64}"),
    *_each("Heroku", KEY, "HRKU-AA", r"[A-Za-z0-9_\-]{40,}"),
    *_each("Fly.io", TOKEN, "fo1_", r"[A-Za-z0-9_\-]{43}"),
    *_each("Fly.io", TOKEN, "fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/]{60,}={0,3}"),
    *_each("Netlify", TOKEN, "nfp_ nfc_ nfo_ nfu_", r"[A-Za-z0-9]{36}"),
    *_each("Render", KEY, "rnd_", r"[A-Za-z0-9]{28,36}"),
    *_each("Vercel", TOKEN, "vercel_blob_rw_", r"[A-Za-z0-9_]{30,}"),
    *_each("Supabase", KEY, "sbp_", r"(?:[0-9a-f]{40}|v0_[0-9a-f]{40})"),
    *_each("Supabase", KEY, "sb_secret_", r"[A-Za-z0-9_\-]{20,}"),
    *_each("PlanetScale", TOKEN, "pscale_tkn_ pscale_oauth_", r"[A-Za-z0-9_=.\-]{32,64}"),
    *_each("PlanetScale", PASSWORD, "pscale_pw_", r"[A-Za-z0-9_=.\-]{32,64}"),
    *_each("Neon", KEY, "napi_", r"[a-z0-9]{40,}"),
    *_each("Cloudflare", KEY, "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    *_each("ClickHouse Cloud", KEY, "4b1d", r"[A-Za-z0-9]{38}"),
    *_each("Databricks", TOKEN, "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    *_each("Yandex", KEY, "AQVN", r"[A-Za-z0-9_\-]{35,38}"),
    *_each("Yandex", TOKEN, "t1.", r"[A-Za-z0-9_\-]+={0,2}\.[A-Za-z0-9_\-]{86}={0,2}"),
    *_each("Yandex", KEY, "YC", r"[A-Za-z0-9_\-]{38}"),
    *_each("Scalingo", TOKEN, "tk-us-", r"[A-Za-z0-9_\-]{48}"),
    *_each("OpenShift", TOKEN, "sha256~", r"[A-Za-z0-9_\-]{43}"),
    *_each("Tailscale", KEY, "tskey-", r"[A-Za-z0-9\-]{16,}"),
    *_each("Defined Networking", TOKEN, "dnkey-", r"[A-Za-z0-9=_\-]{26}-[A-Za-z0-9=_\-]{52}"),
    *_each("Deno Deploy", TOKEN, "ddp_ ddw_", r"[A-Za-z0-9]{36}"),
    # Secrets, infrastructure, observation
    *_each("HashiCorp Vault", TOKEN, "hvs. hvb. hvr.", r"[A-Za-z0-9_\-]{24,}"),
    *_each("HashiCorp Vault", TOKEN, "s.", r"[A-Za-z0-9]{24}"),
    *_each("Doppler", TOKEN, "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9]{40,}"),
    *_each("Doppler", TOKEN, "dp.st.", r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,}"),
    *_each("1Password", KEY, "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    *_each("1Password", TOKEN, "ops_eyJ", r"[A-Za-z0-9+/]{100,}={0,3}"),
    *_each("age", KEY, "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    *_each("Pulumi", TOKEN, "pul-", r"[0-9a-f]{40}"),
    *_each("Infracost", KEY, "ico-", r"[A-Za-z0-9]{32}"),
    *_each("Harness", TOKEN, "pat. sat.", r"[A-Za-z0-9_\-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    *_each("Grafana", TOKEN, "glc_ GLC_", r"[A-Za-z0-9+/]{32,}={0,3}"),
    *_each("Grafana", TOKEN, "glsa_ GLSA_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    *_each("Grafana", KEY, "eyJrIjoi", r"[A-Za-z0-9]{60,}={0,3}"),
    *_each("Sentry", TOKEN, "sntrys_", r"[A-Za-z0-9+/=_\-]{40,}"),
    *_each("Sentry", TOKEN, "sntryu_", r"[0-9a-f]{64}"),
    *_each("New Relic", KEY, "NRAK- NRII- NRIQ- NRRA-", r"[A-Za-z0-9_\-]{27,42}"),
    *_each("New Relic", KEY, "NRJS-", r"[0-9a-f]{19}"),
    *_each("Dynatrace", TOKEN, "dt0c01. dt0s01. dt0s02. dt0s08.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    *_each("PostHog", KEY, "phx_", r"[A-Za-z0-9]{40,}"),
    *_each("LaunchDarkly", KEY, "sdk- mob- api-", _UUID),
    *_each("SettleMint", TOKEN, "sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16}"),
    # Messages and webhooks
    *_each("Slack", TOKEN, "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxd- xoxc-", r"[A-Za-z0-9\-%]{8,}"),
    *_each("Slack", TOKEN, "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9\-]{20,}"),
    *_each("Slack", TOKEN, "xapp-", r"\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]+"),
    *_each("Slack", TOKEN, "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    *_each("Microsoft Teams", TOKEN, "webhook.office.com/webhookb2/", r"[A-Za-z0-9@/\-]{40,}"),
    *_each(
        "Discord", TOKEN, "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{17,20}/[A-Za-z0-9_\-]{40,}"
    ),
    *_each("Feishu", TOKEN, "open.feishu.cn/open-apis/bot/v2/hook/", _UUID),
    *_each("DingTalk", KEY, "SEC", r"[0-9a-f]{64}"),
    *_each("WeCom", TOKEN, "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", _UUID),
    *_each("ServerChan", KEY, "SCT", r"\d{1,7}T[A-Za-z0-9]{20,36}"),
    *_each("Twilio", KEY, "SK", r"[0-9a-fA-F]{32}"),
    *_each("SendGrid", KEY, "SG.", r"[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{16,64}"),
    *_each("SendGrid", KEY, "SG.", r"[A-Za-z0-9=_\-.]{66}"),
    *_each("Brevo", KEY, "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    *_each("Mailgun", KEY, "key- pubkey-", r"[0-9a-f]{32}"),
    *_each("Resend", KEY, "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,26}"),
    # Money and shops
    *_each("Stripe", KEY, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", r"[A-Za-z0-9]{10,}"),
    *_each("Stripe, Svix", KEY, "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    *_each("Square", TOKEN, "sq0atp- sq0csp- sq0idp-", r"[A-Za-z0-9_\-]{22,60}"),
    *_each("Square", TOKEN, "EAAA", r"[A-Za-z0-9_\-]{22,60}"),
    *_each("Shopify", TOKEN, "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"[0-9a-fA-F]{32}"),
    *_each("Braintree", TOKEN, "access_token$production$ access_token$sandbox$", r"[a-z0-9]{16}\$[0-9a-f]{32}"),
    *_each("Plaid", TOKEN, "access-sandbox- access-development- access-production-", _UUID),
    *_each("Flutterwave", KEY, "FLWSECK_TEST- FLWSECK- FLWPUBK_TEST-", r"[A-Za-z0-9]{12,}(?:-X)?"),
    *_each("Razorpay", KEY, "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,}"),
    *_each("Shippo", TOKEN, "shippo_live_ shippo_test_", r"[0-9a-fA-F]{40}"),
    *_each("EasyPost", TOKEN, "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    *_each("Duffel", TOKEN, "duffel_test_ duffel_live_", r"[A-Za-z0-9_\-=]{43}"),
    *_each("Lob", KEY, "live_ test_", r"[0-9a-f]{35}"),
    *_each("Lob", KEY, "live_pub_ test_pub_", r"[0-9a-f]{31}"),
    *_each("GoCardless", TOKEN, "live_", r"[A-Za-z0-9\-_=]{40}"),
    # Work and media
    *_each("Notion", TOKEN, "ntn_", r"[A-Za-z0-9]{40,}"),
    *_each("Notion", TOKEN, "secret_", r"[A-Za-z0-9]{43}"),
    *_each("Linear", KEY, "lin_api_ lin_oauth_", r"[A-Za-z0-9]{40,}"),
    *_each("Figma", TOKEN, "figd_ figu_ figo_", r"[A-Za-z0-9_\-]{40,}"),
    *_each("Airtable", TOKEN, "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    *_each("HubSpot", TOKEN, "pat-na1- pat-na2- pat-eu1-", _UUID),
    *_each("Contentful", TOKEN, "CFPAT-", r"[A-Za-z0-9_\-]{43}"),
    *_each("Typeform", TOKEN, "tfp_", r"[A-Za-z0-9_\-.=]{59}"),
    *_each("Frame.io", TOKEN, "fio-u-", r"[A-Za-z0-9\-_=]{64}"),
    *_each("Mapbox", TOKEN, "sk.eyJ pk.eyJ", r"[A-Za-z0-9_\-]{40,}\.[A-Za-z0-9_\-]{20,}"),
    *_each("Mapbox", TOKEN, "pk.", r"[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}"),
    *_each("Dropbox", TOKEN, "sl.", r"(?:u\.)?[A-Za-z0-9\-=_]{100,}"),
    *_each("Adobe", KEY, "p8e-", r"[A-Za-z0-9]{32}"),
    *_each("Facebook", TOKEN, "EAAC EAAM EAAB EAAG EAAJ EAAH", r"[A-Za-z0-9]{60,}"),
    *_each("Instagram", TOKEN, "IGQV IGQW", r"[A-Za-z0-9_\-]{60,}"),
    *_each("42 Intra", KEY, "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
    *_each("Beamer", TOKEN, "b_", r"[A-Za-z0-9=_\-]{44}"),
    *_each("Zuplo", KEY, "zpka_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    *_each(
        "Authress",
        KEY,
        "sc_ ext_ scauth_ authress_",
        r"[A-Za-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_\-][A-Za-z0-9\-]{10,32}\.[A-Za-z0-9+/_=\-]{30,120}",
    ),
    # JSON web tokens (RFC 7515, 7516): base64url of '{"' begins with eyJ; the same once more in base64
    *_each(
        "JWT",
        TOKEN,
        "ey",
        r"[A-Za-z0-9_\-]{15,}={0,2}\.ey(?:[A-Za-z0-9_\-/]|\\[^nrt\"\s]){15,}={0,2}(?:\.(?:[A-Za-z0-9_\-/]|\\[^nrt\"\s]){8,}={0,2})?",
    ),
    *_each("JWE", TOKEN, "eyJ", r"[A-Za-z0-9_\-]{15,}(?:\.[A-Za-z0-9_\-]*){4}"),
    *_each("JWT in base64", TOKEN, "ZXlK", r"[A-Za-z0-9/+_\-]{60,}={0,2}"),
)


class Inner(NamedTuple):
    """`mark` is literal and inside; `pattern` is the whole token."""

    issuer: str
    kind: str
    mark: str
    pattern: str


INNER: Final[tuple[Inner, ...]] = (
    Inner("Telegram", TOKEN, ":A", r"[0-9]{5,16}:A[A-Za-z0-9_\-]{32,36}"),
    Inner("Discord", TOKEN, ".", r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27,40}"),
    Inner("Mailchimp", KEY, "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    Inner("Mailgun", KEY, "-", r"[0-9a-h]{32}-[0-9a-h]{8}-[0-9a-h]{8}"),
    Inner("Terraform Cloud", TOKEN, ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9\-_=]{60,70}"),
    Inner("Facebook", TOKEN, "|", r"[0-9]{15,16}\|[A-Za-z0-9_\-]{27,40}"),
    Inner("Facebook", TOKEN, "%", r"[0-9]{15,16}%[A-Za-z0-9_\-]{27,40}"),
    Inner("Azure AD", KEY, "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}"),
    Inner("Azure", KEY, "JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),
    Inner("Azure DevOps", TOKEN, "AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    Inner("MaxMind", KEY, "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    Inner("Zhipu", KEY, ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"),
    Inner("Asana", TOKEN, ":", r"[0-9]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}"),
    Inner("Slack", TOKEN, "xoxe", r"xoxe.xox[bp]-[0-9]-[A-Za-z0-9]{100,}"),
    Inner("Slack", TOKEN, "hooks", r"hooks.slack.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    Inner("RapidAPI", KEY, "msh", r"[0-9a-z]{10}msh[0-9a-z]{15}p1[0-9a-z]{6}jsn[0-9a-z]{12}"),
    Inner("Twitter", TOKEN, "AAAAAAAAAAAAAAAAAAAAAA", r"A{22}[A-Za-z0-9%]{60,110}"),
    Inner("Twitter", TOKEN, "-", r"[0-9]{15,25}-[A-Za-z0-9]{30,45}"),
    Inner("Dropbox", TOKEN, "AAAAAAAAAA", r"[A-Za-z0-9]{11}AAAAAAAAAA[A-Za-z0-9\-_=]{43}"),
    Inner("GitLab", TOKEN, "_gitlab_session=", r"_gitlab_session=[0-9a-z]{32}"),
    Inner("Sidekiq", KEY, "contribsys.com", r"[0-9a-f]{8}:[0-9a-f]{8}@(?:gems|enterprise)\.contribsys\.com"),
)
