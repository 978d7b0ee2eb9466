r"""Tokens of known issuers, as data: who, what kind, how it begins, what follows.

A row's shape is the issuer's own documentation of its format or, where that is silent, the public rules of secret
scanners (gitleaks `config/gitleaks.toml` v8, detect-secrets 1.5 plugins, GitHub's list of partner patterns); the
Chinese providers' shapes come from their consoles' documentation. Lengths are taken as at least rather than exactly
where a prefix is unmistakable, because issuers lengthen their tokens without notice.

`PREFIXED_FORMATS` are found by their first characters, `MARKED_FORMATS` by a mark inside. Publishable keys
(sb_publishable_, pk_live_, phc_) are public by design and not here.
"""

from typing import Final, NamedTuple

from sync.redaction.model import KEY, PASSWORD, TOKEN

_UUID: Final = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"


class TokenFormat(NamedTuple):
    """`beginning` is literal; `rest` is a google-re2 pattern for what must follow it."""

    issuer: str
    kind: str
    prefix: str
    rest: str


def _formats(issuer: str, kind: str, prefixes: str, rest: str) -> tuple[TokenFormat, ...]:
    return tuple(TokenFormat(issuer, kind, beginning, rest) for beginning in prefixes.split())


PREFIXED_FORMATS: Final[tuple[TokenFormat, ...]] = (
    # Models and agents
    *_formats("Anthropic", KEY, "sk-ant-", r"[A-Za-z0-9_\-]{20,}"),
    *_formats("OpenAI", KEY, "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", r"[A-Za-z0-9_\-]{20,}"),
    *_formats("OpenRouter, Langfuse", KEY, "sk-or-v1- sk-lf-", r"[A-Za-z0-9\-]{20,}"),
    # OpenAI's older keys, DeepSeek, Moonshot, DashScope, Baichuan, StepFun: alphanumeric; SiliconFlow: letters only.
    # Kimi, MiniMax and others put a short word between.
    *_formats("OpenAI-compatible", KEY, "sk-", r"(?:[A-Za-z0-9]{20,}|[A-Za-z0-9]{2,12}-[A-Za-z0-9]{24,})"),
    *_formats("Google", KEY, "AIza", r"[A-Za-z0-9_\-]{30,}"),
    *_formats("Google", KEY, "AQ.Ab8", r"[A-Za-z0-9_\-]{30,}"),
    *_formats("Google OAuth", KEY, "GOCSPX-", r"[A-Za-z0-9_\-]{20,}"),
    *_formats("Google OAuth", TOKEN, "ya29.", r"[A-Za-z0-9_\-.]{20,}"),
    *_formats("Google OAuth", TOKEN, "1//0", r"[A-Za-z0-9_\-]{30,}"),
    *_formats("Hugging Face", TOKEN, "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    *_formats("Groq", KEY, "gsk_", r"[A-Za-z0-9]{40,}"),
    *_formats("xAI", KEY, "xai-", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Perplexity", KEY, "pplx-", r"[A-Za-z0-9]{32,}"),
    *_formats("Cerebras", KEY, "csk-", r"[A-Za-z0-9]{32,}"),
    *_formats("Replicate", TOKEN, "r8_", r"[A-Za-z0-9]{37,40}"),
    *_formats("Fireworks", KEY, "fw_", r"[A-Za-z0-9]{22,24}"),
    *_formats("Together", KEY, "tgp_v1_", r"[A-Za-z0-9_\-]{30,}"),
    *_formats("Voyage", KEY, "pa-", r"[A-Za-z0-9_\-]{43}"),
    *_formats("Tavily", KEY, "tvly-", r"(?:dev-|prod-)?[A-Za-z0-9\-]{20,}"),
    *_formats("NVIDIA", KEY, "nvapi-", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Jina", KEY, "jina_", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("LangSmith", KEY, "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    *_formats("ElevenLabs", KEY, "sk_", r"[0-9a-f]{48}"),
    *_formats("Freemius", KEY, "sk_", r"[A-Za-z0-9!-&*+.:-@^~]{29}"),
    *_formats("Pinecone", KEY, "pcsk_", r"[A-Za-z0-9_]{40,}"),
    *_formats("Firecrawl", KEY, "fc-", r"[0-9a-f]{32}"),
    *_formats("E2B", KEY, "e2b_", r"[0-9a-f]{40}"),
    *_formats("Apify", KEY, "apify_api_", r"[A-Za-z0-9]{30,}"),
    *_formats("Dify", KEY, "app- dataset-", r"[A-Za-z0-9]{24}"),
    *_formats("Coze", TOKEN, "pat_ sat_", r"[A-Za-z0-9]{40,}"),
    *_formats("ModelScope", TOKEN, "ms-", _UUID),
    *_formats("Volcengine Ark", KEY, "ark-", _UUID),
    *_formats("FastGPT, RAGFlow", KEY, "fastgpt- ragflow-", r"[A-Za-z0-9]{24,}"),
    *_formats("Novita", KEY, "sk_", r"[A-Za-z0-9_\-]{43}"),
    *_formats("LlamaCloud", KEY, "llx-", r"[A-Za-z0-9]{40,}"),
    *_formats("Mem0", KEY, "m0-", r"[A-Za-z0-9]{40}"),
    *_formats("Helicone", KEY, "sk-helicone-", r"[A-Za-z0-9\-]{20,}"),
    *_formats("Brave", KEY, "BSA", r"[A-Za-z0-9_\-]{27,29}"),
    *_formats("Context7", KEY, "ctx7sk-", r"[0-9a-f\-]{32,36}"),
    *_formats("Cursor, Runway", KEY, "key_ crsr_", r"[0-9a-f]{64,128}"),
    *_formats("Weights & Biases", KEY, "wandb_v1_", r"[A-Za-z0-9_]{40,}"),
    *_formats("Kaggle", TOKEN, "KGAT_", r"[0-9a-f]{32}"),
    *_formats("RunPod", KEY, "rpa_", r"[A-Z0-9]{32,}[A-Za-z0-9]{0,16}"),
    *_formats("Browserbase", KEY, "bb_live_", r"[A-Za-z0-9_\-]{24,}"),
    # Source code and packages
    *_formats("GitHub", TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_]{36,}"),
    *_formats("GitHub", TOKEN, "github_pat_", r"[A-Za-z0-9_]{60,}"),
    *_formats("GitLab", TOKEN, "glpat- gldt- glrt- glft- glsoat- glffct- glwt- glrtr-", r"[A-Za-z0-9_\-.]{20,}"),
    *_formats("GitLab", TOKEN, "glptt- glimt- glagent- gloas- glcbt- GR1348941", r"[A-Za-z0-9_\-.]{20,}"),
    *_formats("Bitbucket, Atlassian", TOKEN, "ATBB ATATT3 ATCTT3", r"[A-Za-z0-9_\-=]{20,}"),
    *_formats("npm", TOKEN, "npm_", r"[A-Za-z0-9]{36,}"),
    *_formats("PyPI", TOKEN, "pypi-AgE", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("RubyGems", TOKEN, "rubygems_", r"[0-9a-f]{48}"),
    *_formats("crates.io", TOKEN, "cio", r"[A-Za-z0-9]{32}"),
    *_formats("NuGet", KEY, "oy2", r"[a-z0-9]{43}"),
    *_formats("Clojars", TOKEN, "CLOJARS_ clojars_", r"[A-Za-z0-9]{60}"),
    *_formats("Docker Hub", TOKEN, "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_\-]{24,}"),
    *_formats("JFrog", KEY, "AKCp", r"[A-Za-z0-9]{60,}"),
    *_formats("JFrog", TOKEN, "cmVmd", r"[A-Za-z0-9]{59}"),
    *_formats("SonarQube", TOKEN, "sqp_ squ_ sqa_", r"[0-9a-f]{40}"),
    *_formats("Sourcegraph", TOKEN, "sgp_", r"(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}"),
    *_formats("CircleCI", TOKEN, "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{40,}"),
    *_formats("Buildkite", TOKEN, "bkua_", r"[0-9a-f]{40}"),
    *_formats("Octopus Deploy", KEY, "API-", r"[A-Z0-9]{26}"),
    *_formats("Postman", KEY, "PMAK-", r"[0-9a-fA-F]{24}-[0-9a-fA-F]{34}"),
    *_formats("Prefect", TOKEN, "pnu_ pnb_", r"[A-Za-z0-9]{36}"),
    *_formats("ReadMe", TOKEN, "rdme_", r"[A-Za-z0-9]{70}"),
    *_formats("Snyk", TOKEN, "snyk_uat.", r"[A-Za-z0-9_.\-]{20,}"),
    *_formats("Packagist", TOKEN, "packagist_ort_ packagist_oat_ packagist_ack_ packagist_uut_", r"[0-9a-f]{60,}"),
    *_formats("npm", TOKEN, "NpmToken.", _UUID),
    *_formats("Bitbucket Data Center", TOKEN, "BBDC-", r"[A-Za-z0-9+/@_\-]{40,50}"),
    *_formats("Sourcegraph Amp", TOKEN, "sgamp_user_", r"[A-Za-z0-9_]{30,}"),
    # Clouds
    *_formats("AWS", KEY, "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    *_formats("AWS", KEY, "A3T", r"[A-Z0-9]{17}"),
    *_formats("AWS Bedrock", KEY, "ABSK", r"[A-Za-z0-9+/]{90,}={0,2}"),
    *_formats("AWS Bedrock", KEY, "bedrock-api-key-", r"[A-Za-z0-9+/=_\-]{20,}"),
    *_formats("Amazon", KEY, "amzn.mws.", _UUID),
    *_formats("Amazon", KEY, "amzn1.oa2-cs.v1.", r"[0-9a-f]{64}"),
    *_formats("Alibaba Cloud", KEY, "LTAI", r"[A-Za-z0-9]{12,26}"),
    *_formats("Tencent Cloud", KEY, "AKID", r"[A-Za-z0-9]{28,36}"),
    *_formats("Volcengine, Kingsoft", KEY, "AKLT AKTP", r"[A-Za-z0-9_\-]{20,}={0,2}"),
    *_formats("Baidu Cloud", KEY, "bce-v3/ALTAK-", r"[A-Za-z0-9]{16,}/[0-9a-f]{40}"),
    *_formats("Baidu Cloud", KEY, "ALTAK", r"[A-Za-z0-9]{20,}"),
    *_formats("JD Cloud", KEY, "JDC_", r"[A-Z0-9]{24,40}"),
    *_formats("Alibaba Cloud", TOKEN, "STS.", r"[A-Za-z0-9]{20,}"),
    *_formats("AWS", TOKEN, "IQoJb3JpZ2lu FwoGZXIvYXdz", r"[A-Za-z0-9+/%]{80,}={0,2}"),
    *_formats("Scaleway", KEY, "SCW", r"[A-Z0-9]{17}"),
    *_formats("Cloudflare", TOKEN, "cfut_ cfat_ cfk_", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Cloudflare Tunnel", TOKEN, "eyJhIjoi", r"[A-Za-z0-9+/]{80,}={0,2}"),
    *_formats("Vercel", TOKEN, "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}"),
    *_formats("DigitalOcean", TOKEN, "dop_v1_ doo_v1_ dor_v1_ DOR_V1_", r"[0-9a-fA-F]{64}"),
    *_formats("Heroku", KEY, "HRKU-AA", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Fly.io", TOKEN, "fo1_", r"[A-Za-z0-9_\-]{43}"),
    *_formats("Fly.io", TOKEN, "fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/]{60,}={0,3}"),
    *_formats("Netlify", TOKEN, "nfp_ nfc_ nfo_ nfu_", r"[A-Za-z0-9]{36}"),
    *_formats("Render", KEY, "rnd_", r"[A-Za-z0-9]{28,36}"),
    *_formats("Vercel", TOKEN, "vercel_blob_rw_", r"[A-Za-z0-9_]{30,}"),
    *_formats("Supabase", KEY, "sbp_", r"(?:[0-9a-f]{40}|v0_[0-9a-f]{40})"),
    *_formats("Supabase", KEY, "sb_secret_", r"[A-Za-z0-9_\-]{20,}"),
    *_formats("PlanetScale", TOKEN, "pscale_tkn_ pscale_oauth_", r"[A-Za-z0-9_=.\-]{32,64}"),
    *_formats("PlanetScale", PASSWORD, "pscale_pw_", r"[A-Za-z0-9_=.\-]{32,64}"),
    *_formats("Neon", KEY, "napi_", r"[a-z0-9]{40,}"),
    *_formats("Cloudflare", KEY, "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    *_formats("ClickHouse Cloud", KEY, "4b1d", r"[A-Za-z0-9]{38}"),
    *_formats("Databricks", TOKEN, "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    *_formats("Yandex", KEY, "AQVN", r"[A-Za-z0-9_\-]{35,38}"),
    *_formats("Yandex", TOKEN, "t1.", r"[A-Za-z0-9_\-]+={0,2}\.[A-Za-z0-9_\-]{86}={0,2}"),
    *_formats("Yandex", KEY, "YC", r"[A-Za-z0-9_\-]{38}"),
    *_formats("Scalingo", TOKEN, "tk-us-", r"[A-Za-z0-9_\-]{48}"),
    *_formats("OpenShift", TOKEN, "sha256~", r"[A-Za-z0-9_\-]{43}"),
    *_formats("Tailscale", KEY, "tskey-", r"[A-Za-z0-9\-]{16,}"),
    *_formats("Defined Networking", TOKEN, "dnkey-", r"[A-Za-z0-9=_\-]{26}-[A-Za-z0-9=_\-]{52}"),
    *_formats("Deno Deploy", TOKEN, "ddp_ ddw_", r"[A-Za-z0-9]{36}"),
    # Secrets, infrastructure, observation
    *_formats("HashiCorp Vault", TOKEN, "hvs. hvb. hvr.", r"[A-Za-z0-9_\-]{24,}"),
    *_formats("HashiCorp Vault", TOKEN, "s.", r"[A-Za-z0-9]{24}"),
    *_formats("Doppler", TOKEN, "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9]{40,}"),
    *_formats("Doppler", TOKEN, "dp.st.", r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,}"),
    *_formats("1Password", KEY, "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    *_formats("1Password", TOKEN, "ops_eyJ", r"[A-Za-z0-9+/]{100,}={0,3}"),
    *_formats(
        "PEM in base64",
        KEY,
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt LS0tLS1CRUdJTiBQUklWQVRFIEtFWS LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS"
        " LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
        r"[A-Za-z0-9+/]{8,}={0,2}",
    ),
    *_formats("NATS", KEY, "SA SU SO SN SC SX", r"[A-Z2-7]{56}"),
    *_formats("age", KEY, "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    *_formats("Pulumi", TOKEN, "pul-", r"[0-9a-f]{40}"),
    *_formats("Infracost", KEY, "ico-", r"[A-Za-z0-9]{32}"),
    *_formats("Infisical", TOKEN, "st.", r"[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    *_formats("Bitwarden", TOKEN, "0.", _UUID + r"\.[A-Za-z0-9]{24,}:[A-Za-z0-9+/]{20,}={0,2}"),
    *_formats("PASETO", TOKEN, "v1.local. v2.local. v3.local. v4.local. v2.public. v4.public.", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Harness", TOKEN, "pat. sat.", r"[A-Za-z0-9_\-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    *_formats("Grafana", TOKEN, "glc_ GLC_", r"[A-Za-z0-9+/]{32,}={0,3}"),
    *_formats("Grafana", TOKEN, "glsa_ GLSA_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    *_formats("Grafana", KEY, "eyJrIjoi", r"[A-Za-z0-9]{60,}={0,3}"),
    *_formats("Sentry", TOKEN, "sntrys_", r"[A-Za-z0-9+/=_\-]{40,}"),
    *_formats("Sentry", TOKEN, "sntryu_", r"[0-9a-f]{64}"),
    *_formats("New Relic", KEY, "NRAK- NRII- NRIQ- NRRA-", r"[A-Za-z0-9_\-]{27,42}"),
    *_formats("New Relic", KEY, "NRJS-", r"[0-9a-f]{19}"),
    *_formats("Dynatrace", TOKEN, "dt0c01. dt0s01. dt0s02. dt0s08.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    *_formats("PostHog", KEY, "phx_ phs_", r"[A-Za-z0-9]{40,}"),
    *_formats("LaunchDarkly", KEY, "sdk- mob- api-", _UUID),
    *_formats("Datadog", TOKEN, "ddpat_ ddapp_", r"[A-Za-z0-9_]{30,}"),
    *_formats("Honeycomb", KEY, "hcaik_ hcalk_ hcbik_ hcamk_", r"[a-z0-9]{32,}"),
    *_formats("Axiom", TOKEN, "xaat- xapt-", _UUID),
    *_formats("Logfire", TOKEN, "pylf_v1_us_ pylf_v1_eu_", r"[A-Za-z0-9]{40,}"),
    *_formats("Elastic", KEY, "essu_", r"[A-Za-z0-9+/=_\-]{30,}"),
    *_formats("dbt Cloud", TOKEN, "dbtc_ dbts_ dbtu_", r"[A-Za-z0-9_\-]{36,}"),
    *_formats("SettleMint", TOKEN, "sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16}"),
    # Messages and webhooks
    *_formats("Slack", TOKEN, "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxd- xoxc-", r"[A-Za-z0-9\-%]{8,}"),
    *_formats("Slack", TOKEN, "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9\-]{20,}"),
    *_formats("Slack", TOKEN, "xapp-", r"\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]+"),
    *_formats("Slack", TOKEN, "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    *_formats("Microsoft Teams", TOKEN, "webhook.office.com/webhookb2/", r"[A-Za-z0-9@/\-]{40,}"),
    *_formats(
        "Discord", TOKEN, "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{17,20}/[A-Za-z0-9_\-]{40,}"
    ),
    *_formats("Feishu", TOKEN, "open.feishu.cn/open-apis/bot/v2/hook/", _UUID),
    *_formats("DingTalk", KEY, "SEC", r"[0-9a-f]{64}"),
    *_formats("WeCom", TOKEN, "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", _UUID),
    *_formats("ServerChan", KEY, "SCT", r"\d{1,7}T[A-Za-z0-9]{20,36}"),
    *_formats("ServerChan", KEY, "sctp", r"\d{1,7}t[A-Za-z0-9]{20,36}"),
    *_formats("WxPusher", TOKEN, "AT_", r"[A-Za-z0-9]{32}"),
    *_formats("Lark", TOKEN, "open.larksuite.com/open-apis/bot/v2/hook/", _UUID),
    *_formats("Zapier", TOKEN, "hooks.zapier.com/hooks/catch/", r"\d{5,12}/[A-Za-z0-9]{5,12}"),
    *_formats("Discord", TOKEN, "mfa.", r"[A-Za-z0-9_\-]{80,}"),
    *_formats("Twitch", TOKEN, "oauth:", r"[a-z0-9]{30}"),
    *_formats("Roblox", TOKEN, "_|WARNING:-DO-NOT-SHARE-THIS", r"[!-~]{60,}"),
    *_formats("Mandrill", KEY, "md-", r"[A-Za-z0-9_\-]{22}"),
    *_formats("Twilio", KEY, "SK", r"[0-9a-fA-F]{32}"),
    *_formats("SendGrid", KEY, "SG.", r"[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{16,64}"),
    *_formats("SendGrid", KEY, "SG.", r"[A-Za-z0-9=_\-.]{66}"),
    *_formats("Brevo", KEY, "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    *_formats("Mailgun", KEY, "key- pubkey-", r"[0-9a-f]{32}"),
    *_formats("Resend", KEY, "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,26}"),
    # Money and shops
    *_formats("Stripe", KEY, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", r"[A-Za-z0-9]{10,}"),
    *_formats("Stripe, Svix", KEY, "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    *_formats("Square", TOKEN, "sq0atp- sq0csp- sq0idp-", r"[A-Za-z0-9_\-]{22,60}"),
    *_formats("Square", TOKEN, "EAAA", r"[A-Za-z0-9_\-]{22,60}"),
    *_formats("Shopify", TOKEN, "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"[0-9a-fA-F]{32}"),
    *_formats("Braintree", TOKEN, "access_token$production$ access_token$sandbox$", r"[a-z0-9]{16}\$[0-9a-f]{32}"),
    *_formats("Plaid", TOKEN, "access-sandbox- access-development- access-production-", _UUID),
    *_formats("Flutterwave", KEY, "FLWSECK_TEST- FLWSECK- FLWPUBK_TEST-", r"[A-Za-z0-9]{12,}(?:-X)?"),
    *_formats("Razorpay", KEY, "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,}"),
    *_formats("Paddle", KEY, "pdl_live_apikey_ pdl_sdbx_apikey_", r"[A-Za-z0-9_]{30,}"),
    *_formats("Polar", TOKEN, "polar_oat_ polar_pat_", r"[A-Za-z0-9]{30,}"),
    *_formats("Mollie", KEY, "live_ test_", r"[A-Za-z0-9]{30}"),
    *_formats("Klaviyo", KEY, "pk_", r"[0-9a-f]{34}"),
    *_formats("Shippo", TOKEN, "shippo_live_ shippo_test_", r"[0-9a-fA-F]{40}"),
    *_formats("EasyPost", TOKEN, "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    *_formats("Duffel", TOKEN, "duffel_test_ duffel_live_", r"[A-Za-z0-9_\-=]{43}"),
    *_formats("Lob", KEY, "live_ test_", r"[0-9a-f]{35}"),
    *_formats("Lob", KEY, "live_pub_ test_pub_", r"[0-9a-f]{31}"),
    *_formats("GoCardless", TOKEN, "live_", r"[A-Za-z0-9\-_=]{40}"),
    # Work and media
    *_formats("Notion", TOKEN, "ntn_", r"[A-Za-z0-9]{40,}"),
    *_formats("Notion", TOKEN, "secret_", r"[A-Za-z0-9]{43}"),
    *_formats("Linear", KEY, "lin_api_ lin_oauth_", r"[A-Za-z0-9]{40,}"),
    *_formats("Figma", TOKEN, "figd_ figu_ figo_", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("Airtable", TOKEN, "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    *_formats("HubSpot", TOKEN, "pat-", r"(?:na|eu|ap)[0-9]-" + _UUID),
    *_formats("ClickUp", TOKEN, "pk_", r"\d{5,12}_[A-Z0-9]{32}"),
    *_formats("Trello", TOKEN, "ATTA", r"[A-Za-z0-9]{60,}"),
    *_formats("Salesforce", TOKEN, "00D", r"[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}"),
    *_formats("Intercom", TOKEN, "dG9rO", r"[A-Za-z0-9+/]{30,}={0,2}"),
    *_formats("Sanity", TOKEN, "sk", r"[A-Za-z0-9]{80,}"),
    *_formats("n8n", KEY, "n8n_api_", r"[A-Za-z0-9_\-.]{40,}"),
    *_formats("Contentful", TOKEN, "CFPAT-", r"[A-Za-z0-9_\-]{43}"),
    *_formats("Typeform", TOKEN, "tfp_", r"[A-Za-z0-9_\-.=]{59}"),
    *_formats("Frame.io", TOKEN, "fio-u-", r"[A-Za-z0-9\-_=]{64}"),
    *_formats("Mapbox", TOKEN, "sk.eyJ pk.eyJ", r"[A-Za-z0-9_\-]{40,}\.[A-Za-z0-9_\-]{20,}"),
    *_formats("Mapbox", TOKEN, "pk.", r"[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}"),
    *_formats("Dropbox", TOKEN, "sl.", r"(?:u\.)?[A-Za-z0-9\-=_]{100,}"),
    *_formats("Adobe", KEY, "p8e-", r"[A-Za-z0-9]{32}"),
    *_formats("Facebook", TOKEN, "EAAC EAAM EAAB EAAG EAAJ EAAH", r"[A-Za-z0-9]{60,}"),
    *_formats("Instagram", TOKEN, "IGQV IGQW", r"[A-Za-z0-9_\-]{60,}"),
    *_formats("42 Intra", KEY, "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
    *_formats("Beamer", TOKEN, "b_", r"[A-Za-z0-9=_\-]{44}"),
    *_formats("Zuplo", KEY, "zpka_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    *_formats(
        "Authress",
        KEY,
        "sc_ ext_ scauth_ authress_",
        r"[A-Za-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_\-][A-Za-z0-9\-]{10,32}\.[A-Za-z0-9+/_=\-]{30,120}",
    ),
    # JSON web tokens (RFC 7515, 7516): base64url of '{"' begins with eyJ; the same once more in base64
    *_formats(
        "JWT",
        TOKEN,
        "ey",
        r"[A-Za-z0-9_\-]{15,}={0,2}\.ey(?:[A-Za-z0-9_\-/]|\\[^nrt\"\s]){15,}={0,2}(?:\.(?:[A-Za-z0-9_\-/]|\\[^nrt\"\s]){8,}={0,2})?",
    ),
    *_formats("JWE", TOKEN, "eyJ", r"[A-Za-z0-9_\-]{15,}(?:\.[A-Za-z0-9_\-]*){4}"),
    *_formats("JWT in base64", TOKEN, "ZXlK", r"[A-Za-z0-9/+_\-]{60,}={0,2}"),
)


class MarkedTokenFormat(NamedTuple):
    """`mark` is literal and inside; `pattern` is the whole token."""

    issuer: str
    kind: str
    mark: str
    pattern: str


MARKED_FORMATS: Final[tuple[MarkedTokenFormat, ...]] = (
    MarkedTokenFormat("Telegram", TOKEN, ":A", r"[0-9]{5,16}:A[A-Za-z0-9_\-]{32,36}"),
    MarkedTokenFormat("Discord", TOKEN, ".", r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27,40}"),
    MarkedTokenFormat("Mailchimp", KEY, "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    MarkedTokenFormat("Mailgun", KEY, "-", r"[0-9a-h]{32}-[0-9a-h]{8}-[0-9a-h]{8}"),
    MarkedTokenFormat("Terraform Cloud", TOKEN, ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9\-_=]{60,70}"),
    MarkedTokenFormat("Facebook", TOKEN, "|", r"[0-9]{15,16}\|[A-Za-z0-9_\-]{27,40}"),
    MarkedTokenFormat("Facebook", TOKEN, "%", r"[0-9]{15,16}%[A-Za-z0-9_\-]{27,40}"),
    MarkedTokenFormat("Azure AD", KEY, "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}"),
    MarkedTokenFormat("Azure", KEY, "JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),
    MarkedTokenFormat("Azure DevOps", TOKEN, "AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    MarkedTokenFormat("MaxMind", KEY, "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    MarkedTokenFormat("Zhipu", KEY, ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"),
    MarkedTokenFormat("Asana", TOKEN, ":", r"[0-9]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}"),
    MarkedTokenFormat("Slack", TOKEN, "xoxe", r"xoxe.xox[bp]-[0-9]-[A-Za-z0-9]{100,}"),
    MarkedTokenFormat("Slack", TOKEN, "hooks", r"hooks.slack.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    MarkedTokenFormat("RapidAPI", KEY, "msh", r"[0-9a-z]{10}msh[0-9a-z]{15}p1[0-9a-z]{6}jsn[0-9a-z]{12}"),
    MarkedTokenFormat("Twitter", TOKEN, "AAAAAAAAAAAAAAAAAAAAAA", r"A{22}[A-Za-z0-9%]{60,110}"),
    MarkedTokenFormat("Twitter", TOKEN, "-", r"[0-9]{15,25}-[A-Za-z0-9]{30,45}"),
    MarkedTokenFormat("Dropbox", TOKEN, "AAAAAAAAAA", r"[A-Za-z0-9]{11}AAAAAAAAAA[A-Za-z0-9\-_=]{43}"),
    MarkedTokenFormat("GitLab", TOKEN, "_gitlab_session=", r"_gitlab_session=[0-9a-z]{32}"),
    MarkedTokenFormat("fal", KEY, ":", r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:[0-9a-f]{32}"),
    MarkedTokenFormat("ngrok", TOKEN, "_", r"[0-9][A-Za-z0-9]{26}_[A-Za-z0-9]{21}"),
    MarkedTokenFormat(
        "Sidekiq", KEY, "contribsys.com", r"[0-9a-f]{8}:[0-9a-f]{8}@(?:gems|enterprise)\.contribsys\.com"
    ),
)
