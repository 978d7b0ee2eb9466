"""Statements of how the user wants work done, for a request to do such work. Pure.

"帮我写一个数据处理函数" has no word in common with "用户偏好使用 TypeScript"; the kind of work connects them. A request
that names its own technology needs none of that.
"""

import re
from typing import Final

_TECHNOLOGY_WORDS: Final = (
    "typescript javascript python java kotlin swift golang go rust ruby php scala dart lua perl matlab c# c++"
    " csharp cpp js ts jsx tsx html css scss less sass tailwind bootstrap react redux vue vuex pinia angular"
    " svelte next nextjs nuxt electron node nodejs deno bun express koa nestjs fastapi flask django spring"
    " springboot rails laravel gin sql mysql postgres postgresql sqlite mongodb redis kafka rabbitmq elasticsearch"
    " graphql grpc rest restful docker kubernetes k8s terraform ansible nginx linux bash shell zsh powershell git"
    " github gitlab ci cron yaml json toml xml markdown excel regex pandas numpy pytorch tensorflow jest vitest"
    " pytest mocha eslint prettier ruff mypy webpack vite rollup pnpm npm yarn uv pip poetry cargo maven gradle"
    " api sdk orm jwt oauth"
)
_LONGEST_FIRST: Final = sorted(_TECHNOLOGY_WORDS.split(), key=len, reverse=True)
_TECHNOLOGY: Final = re.compile(
    rf"(?<![a-z0-9])(?:{'|'.join(map(re.escape, _LONGEST_FIRST))})(?![a-z0-9+#])"
    r"|(?<![a-z])c语言",
    re.IGNORECASE,
)
_NOT_NAMED: Final = frozenset({"api", "sdk", "rest", "restful", "go", "next", "less", "ci", "sql", "git"})
_ENGINEERING: Final = re.compile(
    r"函数式|面向对象|类型|缩进|空格|分号|引号|命名|驼峰|下划线|注释|单元测试|测试|框架|组件|接口|前缀|数据库|代码|依赖|日志|提交信息|分支|异步"
    r"|functional|object.oriented|typed|indent|semicolons?|quotes|camel|snake|comments?|unit tests?|components?|prefix"
    r"|code|dependenc|commit|branch|async",
    re.IGNORECASE,
)
_WRITING_WORK: Final = re.compile(
    r"邮件|周报|日报|报告|总结|文档|方案|纪要|e-?mail|report|summary|docs?\b|documentation", re.IGNORECASE
)
_WRITING: Final = re.compile(
    r"语气|简洁|简短|格式|邮件|周报|日报|报告|总结|文档|方案|纪要|分点|列表|表格|中文|英文|署名|落款|开头|结尾"
    r"|tone|concise|short|format|e-?mail|report|summary|documents?|bullets?|tables?|chinese|english|signature|sign off",
    re.IGNORECASE,
)
_STANDING: Final = re.compile(
    r"偏好|喜欢|习惯|惯用|偏爱|倾向|一律|统一|默认|都用|只用|总是|坚持|约定|规范|风格|要求|技术栈|必须|不要用|不用|别用|基于"
    r"|(?:项目|我们|团队|后端|前端)[^。\n]{0,6}(?:使用|用|采用)"
    r"|prefers?|always|usually|never|likes?|convention|style|standard|must|stack|by default"
    r"|(?:we|i|team|project)\s+uses?",
    re.IGNORECASE,
)
MAX_STATEMENT_CHARS: Final = 300  # a longer text is no statement of a person

# What a search for such statements asks for.
STANDING_QUERY: Final = (
    "偏好 喜欢 习惯 约定 规范 风格 使用 项目 技术栈 统一 默认 函数式 框架"
    " prefer convention style use project stack always"
)


def names_technology(message: str) -> bool:
    """Whether a request says itself in what it is to be done."""
    return any(match[0].lower() not in _NOT_NAMED for match in _TECHNOLOGY.finditer(message))


def is_standing_statement(text: str, message: str) -> bool:
    """Whether a text says how work of the message's kind is to be done."""
    if len(text) > MAX_STATEMENT_CHARS or _STANDING.search(text) is None:
        return False
    return is_about_work(text, message)


def is_about_work(text: str, message: str) -> bool:
    """Whether a text is about work of the message's kind: writing, or code."""
    if _WRITING_WORK.search(message) is not None:
        return _WRITING.search(text) is not None
    return _TECHNOLOGY.search(text) is not None or _ENGINEERING.search(text) is not None
