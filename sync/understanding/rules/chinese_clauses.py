"""What a Chinese clause says about its author, their family, their home or their project.

Its subject is named (我, 我们项目, 我女儿) or carried on from the clause before; tables of rules read the predicate.
"""

import re
from typing import Final

from sync.understanding.model import FactKind
from sync.understanding.rules.chinese_identity_rules import IDENTITY_RULES
from sync.understanding.rules.chinese_thing_rules import FIX_RULES, THING_RULES
from sync.understanding.rules.chinese_wishes import is_negative
from sync.understanding.rules.chinese_words import (
    ADVERB,
    BODY,
    CONDITION,
    DEVICE,
    FAMILY,
    ME,
    NUMBER,
    OTHER_PEOPLE,
    PLACES,
)
from sync.understanding.rules.reading import ClauseRule, Reading
from sync.understanding.rules.topics import EXCLUSIVE_ROLES, MAIN_LANGUAGE, is_technical, tool_role

_PERSON_RULES: Final = (*IDENTITY_RULES, *THING_RULES)
_PROJECT_SUBJECT: Final = re.compile(
    r"^(?:因为|毕竟|注意|目前|现在|其实|整个|那个|嗯)?[，,\s]*(?:我们|咱们?|俺们|我)?(?:这个(?=项目|系统|仓库"
    r"|平台|团队|产品)|这边|那边|的|整个|本|自己)*"
    r"(?:我们|本[司所校院店组部]|我[司方院校局厂](?!里)|我[行社所](?!里|的|吗)|敝[公司店校院]|公司|团队|组里|组内|小组"
    r"|部门|项目"
    r"|仓库|线上"
    r"|生产|服务器|数据库|后端"
    r"|前端|移动端|mobile|web|接口|测试环境|测试机|预发|开发环境|开发机|部署|代码|分支|提交|内网|平台"
    r"|系统|产品|网站|官网|博客|网关|缓存|日志|监控|消息队列|报表|样式|登录|小程序|App|app|APP|CI|API|api"
    r"|单位|stack|技术栈|框架|引擎|ORM|库|机房|集群|镜像|域名|店里|门店|厂里?|学校|学院|医院|班上|学生|客户|客人|读者"
    r"|用户|合同"
    r"|公众号|周报|例会|站会|早会|发票|报销|栈|架构|模块|表结构|主键|密码|端口|主分支|流水线|文档|测试|数据"
    r"|照片|备份|合并|命名|变量|类名|函数|注释|缩进|编码|排版|格式|引用|评审|发版|上线|值班|测试环境的库)"
)
_PROJECT_PREDICATE: Final = re.compile(
    r"(?:是(?!不是|否|什么|谁|哪)|用(?!户|不了|完|过|什么|哪)|跑(?!不|一)|部署|装(?!不|好)|要求|规定|统一"
    r"|只(?:认|能|用|支持|允许|有|做|接|读|收|剩)|不允许|不许|不让|禁止|不能|必须|一律|没有?|不走|走|基于|托管"
    r"|放在|存|叫|开头|结尾|命名"
    r"|上限|版本|访问不了|连不[上了]|不接|停在|固定在|升不|没法升|兼容|支持到|写的|维护|一共|每(?:周|天|月|年"
    r"|次|个)|按|选|进(?!行|一步|度|来|去)|换|迁|搬|改|默认|都(?:开|写|放|存|走|按)|遵守|遵循|来自|从[^，,]{1,8}来"
    r"|都在(?=[^，,这那]{2,6}$)"
    r"|主要|占|走的|挂载"
    r"|限制|[0-9０-９一二三四五六七八九十百]+ ?[多来几]?[号个]?人|以[^，,]{1,6}为准|自[^，,]{1,6}起|清一色"
    r"|不再(?:支持|维护|提供|接)|分(?:为|成)|(?<![笑累气冻饿困忙吵疼])得(?!到)|前(?:跑|必须|要))"
)
_PROJECT_RULE: Final = re.compile(
    r"要求|规定|不允许|不许|不让|禁止|不能|必须|不得|只认|只能|上限|红线|合规|访问不了|连不|没预算|没有预算"
)
_FAMILY_START: Final = re.compile(
    rf"^(?:我|我们|咱|咱们|我家|我们家|俺|我屋[头里]?|家里|家)? ?(?:的|嘞|嘅|这|那)?(?:两|俩|三)?(?:位"
    rf"|个)?(?P<who>{FAMILY})"
)
_FAMILY_PREDICATE: Final = re.compile(
    r"是(?!不是|什么|说|想)|叫(?!我)|今年|岁|在[^，,]{1,14}(?:上班|工作|读|上学|教|做|当|上|念|住|开)"
    rf"|在{PLACES}|住|{CONDITION}|{BODY}[^，,]{{0,5}}(?:不|差|疼|痛|有)|不(?:能)?(?:吃|喝)|吃不|不会(?:中文"
    r"|英文|用|说)|不太会|看不|听不|去世|走了|出生"
    r"|[上读念][^，,]{0,4}(?:小学|初中|高中|大学|幼儿园|[一二三四五六七八九]年级|[初高大研博]|中班|大班|小班)"
    r"|学[^，,]{1,6}|上[^，,]{0,4}[班课]|做[^，,]{1,8}的?$|当[^，,]{1,6}|在部队|满[^，,]{1,3}[天月岁周]|小升初|中考"
    r"|高考|开[^，,会车始]{1,4}(?:馆|店|厂|公司)|当兵|退休|怀孕|怀(?:着|了|上|[二三]胎)|帮(?:忙|我们|着)?(?:带|照看)"
    r"|生了|出差|信[佛教基道]|[六七八九]旬|牙口"
    r"|吃素|负责|管|合开|考(?!虑)|调[到回去]|转[到学]|搬[到去来回]|没有?(?:工作|退休金|医保)|结婚|忌日|生日"
    r"|属|个子|身高|接到|转学|[没不]|^[^，,是]{1,4}人$|血脂|^[都快也]?[0-9二三四五六七八九十]{2,3}了?$"
)
_FAMILY_VAGUE: Final = re.compile(
    r"说|问|让我|叫我|觉得|认为|想(?!学|考)|要我|给我|送|刚才|昨天|今天|今晚|发(?:来|给)|的(?:朋友|同学|同事"
    r"|老师|班主任|领导|邻居|闺蜜|同桌|生日礼物|礼物)|怎么|喜欢|爱看|爱吃|催|骂|吵|教我|做(?:了|的)[饭菜]|买了"
    r"|带我"
)


_DECIDES: Final = re.compile(r"决定|decide|敲定|拍板|选定|定为|已确定|确定用|商量好|最终用|最后用")
_HORTATIVE: Final = re.compile(
    r"^(?:那|现在|好|来|，)*(?:我们|咱们?|咱俩)(?:来|换个|开始|聊|继续|玩|先|一起|再|看看|试|说说|谈|讨论|回到"
    r"|接着|休息|约)"
)
_BOSS: Final = re.compile(
    r"^(?:我|我们|咱|咱们|我家|我们家)?的? ?(?:manager|老板|领导|上司|导师|甲方|主管|总监|主编|编辑|经理|boss|leader"
    r"|客户|校长|主任|投资人|审稿人|房东|物业)[^，,说讲]{0,8}?(?:只(?:看|认|收|要|用|接受|让|许)|不让|不许|不准|不肯"
    r"|要求|规定|(?:特别|很|最"
    r"|非常)?(?:在意|看重|讲究|介意)|不喜欢|不看|不爱|讨厌|喜欢看|习惯看|必须|最烦|每次都要|不接受|爱看)(?!喝"
    r"|吃|你)"
)
_HOME: Final = re.compile(
    r"^(?:我们?|我们?的|咱|俺)?(?:家里|家|屋里|宿舍|店里|办公室|工位|小区|公寓|老房子|厨房|阳台|院子"
    r"|出租屋)(?!的事|人说|里?说)[^，,]{0,4}?(?:就(?!不|是|行|好)|只|有(?!点|事|什么|人)|没有?(?!人说)|装|用"
    r"|住|种|吃|养|在|是(?!不是)|不让|离|朝|[宽高深]|[0-9一二两三四五六七八九十百]+(?=平))[^，,]{1,}"
)
_OPEN_STOP: Final = (
    "(?:很喜欢|喜欢$|舒服|不舒服|行|都行|无所谓|随便|有点|头|肚子|脑子|的|很喜欢$|也喜欢$|多说|说两句|补充"
    "|介绍|开会|吃饭|睡觉|洗澡|下班|出门|赶|忙|想|要(?!求)|需要|觉得|认为|感觉|知道|明白|懂|搞|弄|看(?!书|电影"
    "|新闻|病|视频|剧|报)|听(?!歌|音乐|播客|书|力|古典)|问|说(?!粤|普|方|英)|试|刚|先|来(?!自)|去(?!健|跑|游"
    "|爬|图)|回|同意|选|投|指|猜|希望|怀疑|记得|忘|发现|遇|收到|能(?!吃|喝)|可以|可能|该|应该|得|把|被|给|让"
    "|帮|请"
    "|爱你|谢|没(?!有)|明|理解|相信|保证|发誓|认输|错|服|算|等|饿|困|累|冷|热|开心|难过|到|写(?!代码|程序|前端"
    "|后端|小说|公众号|书法)|改|删|点|查|运行|打开|下载|安装|装|下单|买|订|卖(?!了)|付|发|上传|复制|导|执行"
    "|输入|报|卡|急|还(?!贷|房贷|没结|单身)|再|又|也是|不(?:太|是很|怎么)?(?:知道|明白|确定|清楚|懂|理解|记得"
    "|同意|信|想|要|能|该|敢|管|行|服|好意思|急|对|是说|是问|是指|是这)"
    "|对(?!.{1,8}(?:感兴趣|要求))|跟你|和你|是(?!做|搞)|有[一两几三四五]?[段份篇串批堆组张行列]|有(?:个|一个"
    "|点|些|几个|两个|三个|一些|一张|一份|一段|一组|一串|[0-9]+个)?(?:问题|疑问|想法|建议|事|文件|数据|表|代码"
    "|图|个bug|报错|字段|列表|空|时间|印象|信心|必要|可能|办法|意见|兴趣知道|句话|段话)|就(?:是|想|要|问|说)"
    "|真(?:的)?(?:不|是|想)|太|好(?!动|静|客|吃)|快|马上|正(?!在学|在备|在考)|在(?!学|读|备|考|练|减))"
)
# What holds in general: abilities, refusals, and activities without a mark of time.
_HABITUAL: Final = (
    r"(?:[^，,的]{2,4}(?:窄|宽|小|大|矮|吵|旧|差|少|远|近)$|不(?:咋|怎么)[^，,]{1,6}$|(?:们|家|常去|住|租"
    r"|[这那]边)?[^，,]{0,8}(?:特别|很|比较|非常|挺|有点|太)(?:厚|薄|小|大|高|矮|远|近|吵|老|旧"
    r"|贵|冷|热|潮|干|窄|慢|少|多)$"
    rf"|[^，,]{{1,8}}{NUMBER}(?:多|来)?(?:分钟|小时|公里|里[地路]|口人|平米?|层|楼)|们(?:家|这|都)"
    rf"|们[^，,]{{0,6}}(?:不[^，,]"
    rf"|没有|都这样"
    rf"|在[^，,]{{1,8}}上$|只|从不|才|[周星逢])"
    r"|[^，,得]{1,4}用(?!了|完|过|不)|(?<![下这上本])(?:周|星期|礼拜)[一二三四五六日天]|常[去来]的"
    r"|[^，,]{0,8}(?:容易|固定(?:在|是)|从来?不)|(?:只会|不会|也会|会)(?=一点|[^，,]{0,3}(?:语|说|做|写|用|开|弹|唱"
    r"|修|游|骑|讲|编|画|打|拉|跳|织"
    r"|方言))|没有(?!想|人|时间|办法|问题|意见|兴趣)"
    r"|(?:只|从不|不|也|都|爱)?(?:吃|喝|用|坐|住|穿|碰|接|养|抽|打(?!算|开|印|扰)|弹|拉|跳|练|跑|画|唱|骑|开(?!会|始"
    r"|心|玩)|种|教|搞(?!定|不|错)"
    r"|经营|卖|收|存|信(?!不)|学|考(?!虑)|读|放(?!假|心|弃|学)|过(?=生日|节|年)|炒股|化妆|戴|睡(?!不|着)|剪|拍|录"
    r"|直播|运营|维护|上班"
    r"|加班|熬夜|出差|值班|午睡|健身|跑步|游泳|写)"
    r"|[和跟][^，,]{1,8}(?:结的?婚|合租|合伙|住|都是)|看(?!到|着|起来|上去|看|完|了|一|见)|炒(?!作)|正?在?学(?!校|院)"
    r"|负责|带(?!来|走|上|着|我)|一个人[住带过]"
    r"|欠|[^，,]{1,10}(?:结的婚|结婚[^，,]{1,6}年)|家[^，,]{1,6}(?:才|上|刚)|[^，,]{0,6}高考"
    r"|[^，,]{0,8}(?:一个?[天周月年]|每[天周月年])[^，,]{1,})"
)
_OPEN: Final = re.compile(
    r"^(?:平时|一般|现在|目前)?(?:我(?:这人|这个人|自己|本人|平时|一般|通常|现在|目前|从小|向来|从来|一直"
    rf"|个人|手下|名下|手上|家|村|镇|小区|单位|店|厂)?|本人|俺[家村]?|我家){ADVERB}(?!{FAMILY}|{OTHER_PEOPLE}"
    rf"|{_OPEN_STOP})(?={_HABITUAL})(?![^，,]*(?:[了过着吧啦]$|了[^，,]{{0,6}}$|一下|这个|那个|你|第[一二三两几0-9]"
    r"|现在的))[^，,]{2,}$"
)
_OWNED: Final = "[^，,的]{0,4}(?:编辑器|浏览器|终端|课|店|家|组|班|公司|部门|单位)"
_OPEN_MY: Final = re.compile(
    rf"^(?:我|我们|咱们?|俺)(?:的|(?=们|[A-Za-z ]|{DEVICE}|{_OWNED}))(?!{FAMILY}"
    rf"|{OTHER_PEOPLE}|工资|脑子|人生|问题|情况|意思|代码|想法|建议|看法"
    r"|观点|疑问|需求|目的|重点|钱包|床|闹钟|天|心|错|答案|文章|作文|程序|脚本|报错|账号|理解|猜测|感觉|要求"
    r"|数据集?|模型|表格?|字数|列表|文件|主角|话|任务|头像|运气|眼泪|脑子|灵魂|人生"
    r"|爱)(?:[A-Za-z ]{2,24}|[^，,的我你了]{2,8})(?:是(?!不是|什么|谁|哪|怎|说)|在(?!哪"
    r"|线)(?![^，,]*[^不]了)|有(?!没有|点|什么)|为(?!什么|何)|叫|用(?!不)|只|没有|不收|不用|不让|不能|要求|规定|统一"
    r"|归|由|靠"
    r"|走)[^，,]+"
)


def is_boss_wish(clause: str) -> bool:
    """Whether a clause says what a person wants for whom the author works: it shapes the author's work."""
    return _BOSS.search(clause) is not None


def _open(clause: str) -> Reading | None:
    """What the grammar alone says: 我 with a verb of no moment and no end is a state or a habit."""
    if _BOSS.search(clause):
        return Reading(FactKind.RELATIONSHIP, None, is_negative(clause))
    if _HOME.search(clause):
        return Reading(FactKind.POSSESSION, None, False)
    if _OPEN_MY.search(clause):
        return Reading(FactKind.KNOWLEDGE, None, False)
    if _OPEN.search(clause):
        return Reading(FactKind.HABIT, None, is_negative(clause))
    return None


def _read_plain(clause: str, *, has_self: bool, is_question: bool = False) -> Reading | None:
    """What a clause says about its author, their family or their project. `has_self`: so was the clause before."""
    if _HORTATIVE.search(clause):
        return None
    names_self = _OWN_SUBJECT.search(clause) is not None
    fix = _first(FIX_RULES, clause, names_self=True)
    if fix is not None:
        return fix
    if (family := _family(clause)) is not None:
        return family
    project = None if _DECIDES.search(clause) else _project(clause)
    if (
        project is not None
        and not is_question
        and (re.match(r"我们|咱|本|我司|公司|项目", clause) or is_technical(clause))
    ):
        return project
    if project is not None and is_question and re.search(ME, clause) is None:
        project = None
    person = _first(_PERSON_RULES, clause, names_self=names_self or has_self)
    return person or project or _open(clause)


_OWN_SUBJECT: Final = re.compile(rf"(?<![给帮替跟问教找发陪送催骂管比被把向查])(?:{ME})")
_TIME_PREFIX: Final = re.compile(
    r"^(?:(?:现在|目前|如今|眼下|最近|以后|后来|下周起|下个?月起|今年起|从今年起)(?!的|开始在)[，,\s]*)+"
)


def read_clause(clause: str, *, has_self: bool, is_question: bool = False) -> Reading | None:
    """What a clause says about its author, their family or their project. `has_self`: so was the clause before."""
    if (moved := _MOVED_FAMILY.search(clause)) is not None:
        return Reading(FactKind.RELATIONSHIP, f"family.{_person(moved['who'])}.place", False)
    found = _read_plain(clause, has_self=has_self, is_question=is_question)
    if found is None and (prefix := _TIME_PREFIX.match(clause)) is not None:
        found = _read_plain(clause[prefix.end() :], has_self=has_self, is_question=is_question)
    return found


_CHANGES: Final = re.compile(
    r"(?:换|改|搬|迁|转|调|升|挪|推迟|提前|延|接|送|移)[^，,]{0,6}?(?:到|成|为|去|回|用|喝|吃|走|坐|开|写|至"
    r"|来)|(?:换|改|搬|卖|退|辞|停|戒|删|丢|坏|拆|撤|关|死|走|没|离|断|掉|弃|取消|退订|放弃|飞走|去世|分手"
    r"|结束|作废|下架|治好|痊愈)了?(?:$|[，,。])"
    r"|(?:不|没)(?!过|久|错|好意思)[^，,不]{1,8}了$|不再|再也不|不想再|戒(?:了|掉)|取消|退订|放弃|分手|(?:不用"
    r"|别|不要)再?[^，,]{1,6}了$|现在(?:都|改|只|就|换|是|已经)"
)
_CORRECTED: Final = re.compile(r"是|在|叫|为|到|应该|不是|改|定")


_SWITCHED_TOOL: Final = re.compile(
    rf"(?:{ME}|^)(?:已经|现在|最近|都|全)*(?:从[^，,]{{1,14}}?)?(?:换成|换到|换回|改用|转用|切到|切回|迁到|用回)了?"
)
_MOVED_FAMILY: Final = re.compile(
    rf"^(?:年前|年后|上[个周]月?|最近|刚|已经|昨天)?(?:我|我们)?(?:把|给|帮)(?P<who>{FAMILY})(?:接|转学|转到|送到|搬|调"
    r"|安顿)"
)


def is_change(clause: str) -> bool:
    """Whether a clause says that something ended or became something else."""
    return _CHANGES.search(clause) is not None


def read_change(clause: str, *, is_correction: bool) -> Reading | None:
    """A change or a correction that names no topic that a rule knows; it counts only if it changes a known fact."""
    if _HORTATIVE.search(clause) or len(clause) < 4:
        return None
    role = tool_role(clause)
    if role is not None and _SWITCHED_TOOL.search(clause):
        return Reading(FactKind.PREFERENCE, role, is_negative(clause))
    if _CHANGES.search(clause) or (is_correction and _CORRECTED.search(clause)):
        return Reading(FactKind.KNOWLEDGE, None, is_negative(clause), is_tentative=True)
    return None


def _first(rules: tuple[ClauseRule, ...], clause: str, *, names_self: bool) -> Reading | None:
    for rule in rules:
        if not names_self and not rule.bare:
            continue
        if (match := rule.pattern.search(clause)) is not None:
            return Reading(rule.kind, _slot(rule, match, clause), is_negative(clause))
    return None


def _slot(rule: ClauseRule, match: re.Match[str], clause: str) -> str | None:
    """The slot of a rule; rules of many objects carry the object, or have none."""
    groups = match.groupdict()
    thing = _object(groups.get("o") or groups.get("p") or "")
    match rule.topic:
        case "taste" if not is_negative(clause) and tool_role(clause) in EXCLUSIVE_ROLES:
            return tool_role(clause)
        case "diet.allergy" | "taste" | "choice" | "diet.restriction":
            return (
                f"{rule.topic.replace('choice', 'taste')}.{thing}"
                if thing
                else rule.topic
                if rule.topic != "choice"
                else None
            )
        case "tool":
            return _topic_slot(clause) or _tool_slot(clause)
        case "topic":
            return _topic_slot(clause)
        case "device":
            return device_slot(clause)
        case "health.condition":
            found = re.search(f"{CONDITION}|{BODY}", clause)
            return f"health.{found[0]}" if found else None
        case (
            "pet"
            | "fix"
            | "decision"
            | "identity"
            | "possession"
            | "plan"
            | "deadline"
            | "schedule"
            | "finance"
            | "rule"
            | "end"
        ):
            return None
        case other:
            return other


def _topic_slot(clause: str) -> str | None:
    """The slot of a habit that begins with its occasion (出差我都订…): the occasion and the verb."""
    match = re.search(
        r"^(?P<topic>[^，,我你]{2,8}?)我(?:都|就|一般|只|现在|平时|自己|一直|通常|也)*(?P<verb>坐|订|用|住|走|吃"
        r"|喝|穿|买|开|骑|看|写|发|交)",
        clause,
    )
    return None if match is None or "也" in clause else f"choice.{match['topic'].strip().casefold()}.{match['verb']}"


def _object(text: str) -> str:
    """The object of a verb as a slot carries it: short, without its ending."""
    bare = re.sub(
        r"^(?:吃|喝|看|听|玩|用|穿|去|逛|这种|那种|任何|一切|所有)+|(?:了|的|啊|呢|吧|哈|都|也|会|很|严重)+$",
        "",
        text.strip().casefold(),
    )
    return bare.strip()[:12]


def _tool_slot(clause: str) -> str | None:
    role = tool_role(clause)
    if role == "language.programming" and not MAIN_LANGUAGE.search(clause):
        return None  # who writes Go may write Python too
    if role is None or re.search(r"[也还](?!是)|和|、|插件|里我?装", clause):
        return None
    purpose = re.search(r"(?:写|做|跑|记|画|剪|敲|部署|搞)(前端|后端|脚本|网页|爬虫|测试|账|笔记|图|视频)", clause)
    return f"{role}.{purpose[1]}" if purpose else role


def device_slot(clause: str) -> str | None:
    """The slot of a thing: its kind, or the role of the system that it runs."""
    for slot, words in (
        ("device.phone", r"手机|iPhone"),
        ("device.tablet", r"平板|iPad"),
        ("device.computer", r"电脑|笔记本|台式|ThinkPad|MacBook|本子"),
        ("vehicle", r"车(?!间|站|票)"),
        ("device.camera", r"相机"),
        ("device.keyboard", r"键盘"),
        ("device.watch", r"手表|手环"),
    ):
        if re.search(words, clause):
            return None if re.search(r"[也还](?!是)|家里那|另一", clause) else slot
    return tool_role(clause)


def _family(clause: str) -> Reading | None:
    match = _FAMILY_START.search(clause)
    if match is None or _FAMILY_VAGUE.search(clause) or not _FAMILY_PREDICATE.search(clause[match.end() :]):
        return None
    attribute = next((name for name, words in _FAMILY_ATTRIBUTES if words.search(clause[match.end() :])), None)
    slot = f"family.{_person(match['who'])}.{attribute}" if attribute else None
    return Reading(FactKind.RELATIONSHIP, slot, is_negative(clause))


def _person(word: str) -> str:
    """The relative that a word names, as slots carry it."""
    who = re.sub(r"^(?:我|咱|俺|亲)", "", word)
    return _SAME_PERSON.get(who, who)


_SAME_PERSON: Final = {
    **dict.fromkeys(("老婆", "媳妇", "媳妇儿", "太太", "爱人", "妻子"), "wife"),
    **dict.fromkeys(("老公", "丈夫"), "husband"),
    **dict.fromkeys(("爸", "爸爸", "父亲", "老爸", "爹", "家父"), "father"),
    **dict.fromkeys(("妈", "妈妈", "母亲", "老妈", "娘", "家母"), "mother"),
    **dict.fromkeys(("女儿", "闺女"), "daughter"),
}
_FAMILY_ATTRIBUTES: Final = (
    ("health", re.compile(CONDITION)),
    ("age", re.compile(r"岁|今年[0-9一二三四五六七八九十]+")),
    ("name", re.compile(r"叫(?!我)|名字")),
    ("place", re.compile(r"住|搬|接到|两地")),
    ("work", re.compile(r"上班|工作|调[到回去]|做|当|教|退休|开(?:店|公司)|失业")),
    ("school", re.compile(r"读|上学|念|年级|转学|高考|小学|初中|高中|大学|幼儿园|考研")),
)


def _project(clause: str) -> Reading | None:
    match = _PROJECT_SUBJECT.search(clause)
    if match is None or not _PROJECT_PREDICATE.search(clause[max(match.end() - 1, 0) :]):
        return None
    kind = FactKind.CONSTRAINT if _PROJECT_RULE.search(clause) else FactKind.KNOWLEDGE
    role = tool_role(clause)
    slot = (
        role if role is not None and role.startswith("project") and re.search(r"用|是|换|选|跑|部署", clause) else None
    )
    return Reading(kind, slot, False)
