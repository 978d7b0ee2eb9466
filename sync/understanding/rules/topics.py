"""What a statement is about: the role of a named tool, the topic of a lasting request, the section of the document."""

import re
from typing import Final

from sync.understanding.model import FactKind, FactSection


def _topic(slot: str, words: str) -> tuple[str, str]:
    return slot, words


# Software whose name says its role; one of each role is in use, unless the statement says also.
_TOOLS: Final[tuple[tuple[str, str], ...]] = (
    _topic(
        "editor",
        r"vs ?cod\w*|vim|neovim|nvim|emacs|sublime|helix|intellij|idea|pycharm|goland|webstorm|clion|xcode"
        r"|notepad\+\+|zed|cursor"
        r"|jetbrains|编辑器|ide",
    ),
    _topic("browser", r"chrome|firefox|safari|edge|brave|opera|vivaldi|火狐|浏览器|browser"),
    _topic("shell", r"fish|zsh|bash|powershell|nushell|shell"),
    _topic(
        "os",
        r"windows\w*|win ?(?:7|8|10|11|xp)|mac ?os|mac|linux|ubuntu|fedora|arch|debian|nixos|mint|centos|manjaro"
        r"|麒麟|统信|操作系统|双系统",
    ),
    _topic("package_manager.javascript", r"pnpm|npm|yarn|bun"),
    _topic("package_manager.python", r"pip|uv|poetry|conda"),
    _topic("package_manager", r"homebrew|包管理器"),
    _topic("notes", r"notion|obsidian|logseq|evernote|印象笔记|备忘录|flomo|语雀|onenote|roam|joplin|bear|笔记软件"),
    _topic(
        "project.database",
        r"postgres\w*|mysql|mongodb|mongo|oracle|sqlite|sql server|mariadb|达梦|金仓|tidb|oceanbase|clickhouse"
        r"|dynamodb|duckdb|数据库|database",
    ),
    _topic("project.cache", r"redis|memcached|valkey|缓存"),
    _topic("project.queue", r"kafka|rabbitmq|rocketmq|nats|pulsar|消息队列"),
    _topic(
        "project.framework",
        r"django|flask|fastapi|spring(?: ?boot)?|gin|rails|express|nest(?:js)?|laravel|phoenix|框架",
    ),
    _topic("project.frontend", r"react(?! native)|vue|angular|svelte|solid|next\.?js|nuxt"),
    _topic("project.orm", r"orm|sqlalchemy|prisma|hibernate|mybatis|gorm|typeorm"),
    _topic("project.container", r"docker|k8s|kubernetes|podman|k3s"),
    _topic("project.hosting", r"vercel|netlify|cloudflare pages|heroku|阿里云|腾讯云|华为云|aws|azure|gcp|fly\.io"),
    _topic("project.repository", r"github|gitlab|gitee|bitbucket|codeberg|gitea"),
    _topic("project.ci", r"jenkins|github actions|gitlab ci|circleci|ci"),
    _topic("theme", r"深色|浅色|暗色|亮色|黑色主题|白色主题|夜间模式|dark (?:mode|theme)|light (?:mode|theme)|主题"),
    _topic(
        "language.programming",
        r"python|java|kotlin|go|golang|rust|typescript|javascript|c\+\+|c#|swift|php|ruby|scala|elixir|julia"
        r"|主力语言",
    ),
)
_ROLES: Final = tuple((role, re.compile(rf"(?i)(?<![a-z0-9])(?:{names})(?![a-z])")) for role, names in _TOOLS)

# One of each is preferred. A package manager is one of its language.
EXCLUSIVE_ROLES: Final = frozenset(
    {
        "editor",
        "browser",
        "shell",
        "os",
        "package_manager",
        "package_manager.javascript",
        "package_manager.python",
        "theme",
        "notes",
    }
)
MAIN_LANGUAGE: Final = re.compile(
    r"(?i)主力|主要|首选|默认|\b(?:main|primary|first|default|favou?rite|preferred|only)\b"
)
_REPLY_TOPICS: Final = tuple(
    (slot, re.compile(rf"(?i){pattern}"))
    for slot, pattern in (
        _topic("reply.address", r"叫我|称呼|称我|喊我|\bcall me\b|\baddress me\b"),
        _topic(
            "reply.language",
            r"[中英日法德韩西俄]文|[英日法德韩俄]语|中问|汉语|普通话|粤语|双语|繁体|简体|\b(?:english|chinese|spanish"
            r"|french|german|japanese|dutch|italian|portuguese)\b",
        ),
        _topic("reply.emoji", r"表情|emoji|颜文字|smiley"),
        _topic("reply.joke", r"笑话|段子|\bjokes?\b|\bpuns?\b"),
        _topic(
            "reply.format",
            r"要点|列表|表格|段落|markdown|分点|标题|加粗|排版|bullet|table|paragraph(?!\b.{0,12}\b(?:too|short))"
            r"|\blists?\b|headings?|bold|prose|numbered",
        ),
        _topic(
            "reply.length",
            r"简短|简洁|简明|精简|短[一些点]|能短|长篇|啰嗦|罗嗦|冗长|废话|[一二三四五六七八九十两\d]+句|[\d百十]+字"
            r"|详细|细一?点|长话|字数|short|brief|concise|terse|long|verbose|wordy|sentences?|words?\b|a page"
            r"|one paragraph|detail",
        ),
        _topic("reply.units", r"公制|英制|摄氏|华氏|单位|\b(?:metric|imperial|celsius|fahrenheit|kilomet|units?)\b"),
        _topic("reply.citation", r"出处|来源|引用|参考文献|链接|\b(?:sources?|cite|citations?|references?)\b"),
        _topic("reply.conclusion", r"结论"),
        _topic("reply.level", r"默认我懂|当我|小白|外行|通俗|术语|大白话|人话|jargon|layman|beginner|explain like"),
        _topic(
            "reply.tone",
            r"语气|口吻|客气|客套|客服|恭维|道歉|卖萌|正式|随意|亲切|严肃|温柔|毒舌|敬语|您|宝|亲|tone|polite|formal"
            r"|casual|apolog|flatter|compliment|blunt|sugarcoat",
        ),
        _topic("reply.code", r"代码|注释|code|comments?"),
    )
)
_REPLY: Final = re.compile(
    r"(?i)回答|回复|答复|回我|答我|说话|语气|口吻|解释|讲解|称呼|叫我|喊我|称我|客套|客气|啰嗦|罗嗦|废话|表情"
    r"|emoji|道歉|聊天|沟通|给我(?:发|讲|说|看|列)|和我说|跟我说"
    r"|对我说|问我|人话|大白话|长篇大论|结论|建议|输出|列表|要点|表格|分点|步骤|术语|出处|双语|文字|默认我"
    r"|举例|例子|提醒我|推荐|简短|简洁"
    r"|\b(?:answers?|repl(?:y|ies)|respon(?:d|ses?)|explain|explanations?|tone|verbose|call me|apologi[sz]e"
    r"|chat|bullets?|tell me|talk|speak"
    r"|jokes?|emojis?|idioms|jargon|brief|concise|units|metric|suggest|summaries|sources|celsius|fahrenheit"
    r"|imperial|kilomet\w+|british|pleasantries|spelling|small talk|disclaimers)\b"
)
_TECHNICAL: Final = re.compile(
    r"(?i)代码|编程|注释|变量|函数|框架|编辑器|测试|命名|缩进|接口|数据库|脚本|终端|命令行|部署|算法|程序|分支"
    r"|提交|依赖|前端|后端|服务器|仓库|线上|生产环境"
    r"|内网|外网|网关|日志|缓存|队列|端口|版本|系统|架构|模块|组件|样式|主题|快捷键|插件|目录|备份|同步|数据"
    r"|编译|打包|升级|迁移|技术|选型|登录|报表|监控|容器|镜像"
    r"|浏览器|键盘布局|软件|工具|客户端|移动端|小程序|公众号后台|爬虫|模型|显卡|驱动|网络|宽带|博客|域名|开源|离线包"
    r"|\b(?:code|coding|comments?|functions?|variables?|tests?|tabs?|spaces|types?|commits?|branch|framework"
    r"|database|deploy\w*|repos?|server"
    r"|staging|prod\w*|library|libraries|api|sdk|ci|cd|build|linter?|python|javascript|typescript|java|rust"
    r"|golang|go|c\+\+|react|vue|node"
    r"|sql|git|docker|linux|mac\w*|windows|vim|emacs|vs ?code|shell|terminal|editor|ide|app|backend|frontend"
    r"|cluster|k8s|licence|software"
    r"|snake_case|camelcase|semicolons?|indent\w*|root cause|timezone|fix|bug|cache|queue|logseq|notion"
    r"|obsidian|css|html|sdk|spark|pandas)\b"
)
_WORK: Final = re.compile(
    r"(?i)周报|日报|月报|会议|开会|汇报|上班|下班|加班|客户|团队|组里|公司|合同|报价|文档|邮件|工作|同事|领导"
    r"|老板|项目|评审|排期|预算|发票|报销|店里|门店"
    r"|供应商|论文|课题|老师|学生|班级|格式|模板|文件|简报|PPT|Excel|图表|引用|会|单子|读者|甲方|审批|早会"
    r"|例会|值班|站会|复盘|出差"
    r"|\b(?:meetings?|stand-?ups?|reports?|clients?|customers?|team|work|office|boss|manager|invoices?|docs?"
    r"|documents?|spreadsheets?|slides|memos?"
    r"|deadline|calendar|charts?|dates|email|emails|shift|launch|beta|support|colleagues?|contract)\b"
)
_COLLEAGUES: Final = re.compile(
    r"(?i)老板|领导|上司|导师|甲方|主管|总监|客户|实习生|合伙|团队|带[一二三四五六七八九十\d几]+个"
    r"|\b(?:manager|boss|editor|client|lead|supervisor|advis[oe]r|interns?|team)\b"
)
_PERSONAL_KINDS: Final = frozenset({FactKind.IDENTITY, FactKind.POSSESSION, FactKind.RELATIONSHIP})


_SECTION_OF_AREA: Final = {
    "reply": FactSection.COMMUNICATION_STYLE,
    **dict.fromkeys(
        ("diet", "health", "family", "pet", "name", "age", "location", "role", "finance", "body", "marital"),
        FactSection.PERSONAL,
    ),
    **dict.fromkeys(
        ("project", "fix", "code", "vcs", "editor", "theme", "shell", "browser", "language", "notes"),
        FactSection.TECHNICAL_PREFERENCES,
    ),
}


def tool_role(text: str) -> str | None:
    """The role of the first known tool or tool word in a text, such as "editor"."""
    hits = [(match.start(), role) for role, pattern in _ROLES if (match := pattern.search(text))]
    return min(hits)[1] if hits else None


def reply_topic(text: str) -> str | None:
    """The slot of a request about answers."""
    return next((slot for slot, pattern in _REPLY_TOPICS if pattern.search(text)), None)


def is_about_replies(text: str) -> bool:
    """Whether a text names answers, their form or their tone."""
    return _REPLY.search(text) is not None


def is_technical(text: str) -> bool:
    """Whether a text names software, systems or their parts."""
    return _TECHNICAL.search(text) is not None or any(pattern.search(text) for _, pattern in _ROLES)


def section_of(text: str, kind: FactKind, slot: str | None) -> FactSection:
    """The section of the document for a statement."""
    area = (slot or "").partition(".")[0]
    if kind is FactKind.RELATIONSHIP:
        return FactSection.WORK_HABITS if _COLLEAGUES.search(text) else FactSection.PERSONAL
    if (section := _SECTION_OF_AREA.get(area)) is not None:
        return section
    if kind in _PERSONAL_KINDS:
        return FactSection.PERSONAL
    if kind is FactKind.PREFERENCE and area != "taste" and is_about_replies(text):
        return FactSection.COMMUNICATION_STYLE
    if is_technical(text):
        return FactSection.WORK_HABITS if kind is FactKind.HABIT else FactSection.TECHNICAL_PREFERENCES
    if _WORK.search(text) or area in ("work", "doc"):
        return FactSection.WORK_HABITS
    return FactSection.PERSONAL
