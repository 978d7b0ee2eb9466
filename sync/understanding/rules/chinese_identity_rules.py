"""Chinese rules for a person: diet, health, name, place, work, language, animals, children."""

from typing import Final

from sync.understanding.model import FactKind
from sync.understanding.rules.chinese_words import ADVERB, BODY, CONDITION, ENDING, JOB, ME, NUMBER, PLACES, SUBJECT
from sync.understanding.rules.reading import rule

_FOOD_VERB: Final = "(?:吃|喝|碰|沾|摄入|食用|嚼|消化)"

IDENTITY_RULES: Final = (
    # Diet and health first: they hold whatever else a clause says.
    rule(
        FactKind.CONSTRAINT,
        "diet.allergy",
        r"对(?P<o>[^，,对]{1,10}?)(?:[都会也]|严重|轻度|重度|轻微|有点|特别|很|已经|现在)*不?(?:再)?过敏|(?:^"
        rf"|{ME})(?P<p>[^，,我对]{{1,6}}?)过敏{ENDING}",
        bare=True,
    ),
    rule(
        FactKind.CONSTRAINT,
        "diet.restriction",
        rf"(?:不能|不可以?|不敢|不让|不得|没法|不宜|禁止|少)(?:再|多|乱)?{_FOOD_VERB}(?!饭|亏|苦|惊)"
        rf"|{_FOOD_VERB}不(?:了|得|来|惯|下|动)|(?:皆|均|都)?不可食用|忌口|{SUBJECT}(?:是|吃|一直吃)*(?:全|纯|蛋奶|鱼|奶|蛋"
        rf"|锅边)?素(?:食|的|者)?|素食|纯素|吃斋|清真|穆斯林|回族|教规|信仰|{SUBJECT}(?:在|要|得|正)*(?:戒(?:了|掉"
        r"|糖|酒|烟|碳|奶|咖)|控糖|生酮|低碳|低盐|低脂|少盐|少油|断糖|轻断食)|滴酒不沾|酒精过敏|一(?:沾|吃"
        r"|喝)(?:了|点)?就|(?:沾|吃|碰)[^，,]{0,4}就[^，,]{0,3}(?:急诊|医院|休克|起疹|喘)|(?:吃"
        r"|喝)[^，,]{1,5}(?:要|会|就)[^，,]{0,3}(?:痛|疼|吐|拉|痒|肿|胀|晕|起疹)|闻不[了得惯]",
    ),
    rule(
        FactKind.CONSTRAINT,
        "diet.restriction",
        rf"(?:{SUBJECT}|^除了[^，,]{{1,8}})[^，,]{{0,6}}(?<![好要会])不(?:怎么|太|再)?(?:吃|喝|沾)(?!饭|饱|惊|亏"
        r"|力|消|香|瘪|的都?行|准|透)(?P<o>[^，,了的]{1,6})",
    ),
    rule(
        FactKind.CONSTRAINT,
        "health.condition",
        rf"{ME}(?![^，,]{{0,8}}又)(?![^，,]{{0,6}}(?:想|要买|买|看|卖))[^，,]{{0,10}}?{CONDITION}(?!又|推迟)"
        r"|^(?:还|也|又|本来|一直|从小|轻度|重度|轻微|严重|长期)*(?:有|得|患|做过|戴着?|坐|确诊|查出|刚做|是"
        rf"|在)[^，,]{{0,6}}?{CONDITION}|^{CONDITION}[^，,]{{0,4}}$",
    ),
    rule(
        FactKind.CONSTRAINT,
        "health.condition",
        rf"(?:^|{ME})[^，,]{{0,6}}?{BODY}[^，,]{{0,5}}?(?:不(?:太|大|怎么|是很)?(?:好|行|灵)|[很较比偏太](?:差|弱"
        rf"|高|低)|有(?:旧)?伤|有问题|有毛病|受过?伤|做过|突出|劳损|断过|磨损|一直(?:疼|痛))|{SUBJECT}(?:怕冷|怕热"
        r"|畏寒|容易(?:上火|过敏|失眠|水肿|中暑|低血糖)|戴(?:着)?(?:眼镜|助听器|牙套)|坐轮椅|拄拐|看不清"
        rf"|(?:不能|没法|不可以)(?:提|搬|抬|跑|跳|爬|久坐|久站|弯腰|熬夜|坐飞机|晒|碰水|剧烈)|[^，,]{{0,3}}听不(?:太|大|怎么)?[清见])",
    ),
    rule(
        FactKind.IDENTITY,
        "name",
        rf"(?:^|{ME})(?:的)?(?:真名|大名|全名|本名|网名|笔名|英文名|名字|姓名)?(?:就|是)?(?:叫做?|名叫|名字是|姓"
        r"|改名(?:叫|为)?)(?!你|他|她|它|我|什么|啥|外卖|车|苦|停|板|醒|做|号|嚣|不|人"
        r"|一)\ufffc*[^，,\ufffc]{1,14}$",
    ),
    rule(
        FactKind.IDENTITY,
        "age",
        rf"{SUBJECT}(?:今年|都|快|刚|满|也|是|\s)*{NUMBER}{{1,4}} ?(?:多|来)?岁|{SUBJECT}今年{NUMBER}{{1,4}}(?:\S?了|$)"
        rf"|{SUBJECT}(?:是)?(?:[7890]0|[八九]零|零零|[0零][05])后|{SUBJECT}(?:是)?\d{{2,4}} ?年(?:出?生)?的?(?:人)?"
        rf"$|{SUBJECT}属[鼠牛虎兔龙蛇马羊猴鸡狗猪](?:的)?$",
    ),
    rule(FactKind.IDENTITY, "birthday", r"生日(?:是|在|为|：)?[^，,]{0,4}[0-9一二三四五六七八九十腊正农阴阳]"),
    rule(
        FactKind.IDENTITY,
        "body.size",
        rf"{SUBJECT}[^，,]{{0,4}}(?:身高|体重|鞋码|尺码|一米[一-九]|1\.\d|1米\d|\d{{2,3}} ?(?:cm|厘米|公斤|kg"
        r"|斤)(?!的))",
    ),
    rule(FactKind.IDENTITY, "body.blood", rf"(?:{ME}|血型)[^，,]{{0,4}}(?:A|B|AB|O) ?型"),
    rule(
        FactKind.IDENTITY,
        "zodiac",
        rf"{SUBJECT}(?:是)?(?:白羊|金牛|双子|巨蟹|狮子|处女|天秤|天蝎|射手|摩羯|水瓶|双鱼)座?"
        rf"|{SUBJECT}(?:是)?(?:个)?[IEie][NSns][TFtf][JPjp](?![a-z])|[IEie]人$",
    ),
    rule(
        FactKind.IDENTITY,
        "marital",
        rf"{SUBJECT}(?:是|还|也|刚|已|早|\s)*(?:单身|已婚|未婚|离婚|离异|丧偶|再婚|丁克|结婚|订婚|领证|分手|不婚"
        r"|单亲)",
    ),
    rule(FactKind.PLAN, "plan.baby", r"预产期|(?:要|快|准备)(?:当|做)(?:爸爸?|妈妈?|父亲|母亲|奶奶|外婆)"),
    rule(
        FactKind.IDENTITY,
        "location",
        rf"(?:{ME}{ADVERB}[^，,]{{0,4}}|^(?:上个?[周月]|去年|前年|月初|年前|年初)?{ADVERB}(?:长期|全家|一家|搬家|都)?"
        rf"|家[^，,]{{0,4}})(?![^，,]*(?:把|接到|和前|和同))(?:住在|住的是"
        r"|(?<![不得熬记站忍抓挡扛撑顶稳困留耐])住(?=[^院酒宾民一几进校过不得的])|居住|定居|常住|常驻|坐标|base"
        r"|人在|(?<![A-Za-z])(?<![A-Za-z] )家在|租住|租在"
        r"|租的房子?在|安家|现居|落户|租房|搬(?:到|去|来|回)(?!这|那))(?!哪)",
        bare=True,
    ),
    rule(
        FactKind.IDENTITY,
        "location",
        rf"{SUBJECT}(?:人)?(?:在|待在|搁) ?{PLACES}(?!(?:出差|旅游|旅行|玩|转机|开会|路上|东路|西路"
        r"|大学))(?![^，,]*(?:了|上班|工作|实习|打工|任职|就职))[^，,]{0,6}$",
    ),
    rule(
        FactKind.IDENTITY,
        "hometown",
        rf"{SUBJECT}(?:是|来自|老家(?:在|是)?|籍贯(?:是)?|出生(?:在|于)|从小在)(?!好|坏|有|个|新"
        rf"|什么){PLACES}?[^，,]{{0,5}}(?<![本个的种客类老业事责手行系])人$|(?:{ME}|^)(?:的)?老家|籍贯"
        rf"|{SUBJECT}来自",
    ),
    rule(
        FactKind.IDENTITY,
        "department",
        rf"{SUBJECT}(?:在(?!找|看|等|订|挑|查|逛|买)|转到了?|调到了?|换到了?|分到了?)[^，,]{{1,8}}(?:部门?|科室?|科|组|处|室|中心|线)了?$",
    ),
    rule(
        FactKind.IDENTITY,
        "employer",
        rf"{SUBJECT}(?:在|于)[^，,]{{1,14}}?(?:工作|上班|任职|就职|供职|实习|打工|值班)$|{SUBJECT}(?:跳槽"
        rf"|跳)到了?[^，,]{{1,12}}|{SUBJECT}(?:在(?!找|看|等|订|挑|查|逛|买)|就职于|任职于|供职于|入职了?|跳槽到了?"
        r"|去了)[^，,]{1,12}(?:公司|集团|银行|医院|学校|大学|中学|小学|事务所|研究所|研究院|院所|部门?|科室?|科"
        r"|组|厂|局|店|馆|社|队)$",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"{SUBJECT}(?:不?是|当|做)(?:一?[名个位]|搞|做|在)?[^，,得跟给]{{0,14}}?{JOB}[^，,]{{0,6}}$"
        rf"|本人[^，,]{{0,6}}{JOB}|^{JOB}{ENDING}",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"{SUBJECT}(?:不?是)?(?:做|搞|干|从事|学|教|开|卖|管|跑|种|写|修|拍|养)(?!过|完|好|不|得|什|到|一下|一个"
        rf"|出|了个|点|个)[^，,]{{1,14}}(?:的|行业|行当|专业|生意|这[行块]){ENDING}",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"{SUBJECT}(?:在|搁|于|待在)[^，,]{{1,18}}?(?:工作|上班|上学|读书|读研|读博|读[大高初本硕博研]|念书|教书"
        r"|任职|就职|供职|实习|打工|创业|值班|当|做|搞|跑|开(?!会|车|玩)|教(?!我)|卖|种|带)",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"{SUBJECT}(?:[跟和][^，,]{{1,4}})?(?:开|经营|盘)了?(?:着|下)?一?[家间][^，,]{{2,}}",
    ),
    rule(
        FactKind.IDENTITY,
        "location",
        rf"{SUBJECT}在[^，,]{{1,6}}租(?:了|着|的)(?:一?[个间套])?[^，,]{{1,8}}$",
    ),
    rule(
        FactKind.IDENTITY,
        "role.since",
        rf"{SUBJECT}(?:打|练|学|玩|弹|跑|画)[^，,]{{1,6}}{NUMBER}{{1,3}}(?:多|来)?年了?$|{SUBJECT}(?:做|干|当|教|从事|开|写|工作|入行|从业"
        rf"|练|学|跑|搞)了?(?:这行|{JOB}"
        rf"|\S{{0,8}})(?:{NUMBER}{{1,4}}(?:多)?年)|{SUBJECT}(?:当|做|干|教|写|开)了(?:快"
        rf"|差不多)?{NUMBER}{{1,4}}(?:多|来)?年|今年第{NUMBER}+年$",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"{SUBJECT}(?:是|在|刚|已经|现在)*(?:自由职业|退休|待业|失业|离职在家|创业|全职|兼职做|考研党|家庭主妇"
        r"|返聘|内退|读(?:大|高|初|研|博|本)|上(?:大|高|初)[一二三四]|念(?:大|高|初|研|博))",
    ),
    rule(
        FactKind.IDENTITY,
        None,  # who speaks French may speak German too
        rf"母语|{SUBJECT}一点[^，,]{{2,4}}都不[懂会]|{SUBJECT}(?:只)?(?:会|不会|不懂|看不懂|听不懂)(?:说|讲)?(?:一点)?(?:中文|英[文语]|日[文语]"
        r"|法[文语]|德[文语]|韩[文语]|西班牙语|粤语|普通话|方言|外语|编程|代码|技术)|(?:英语|日语|法语|德语|韩语"
        r"|普通话)[^，,]{0,4}(?:不好|不行|一般|很差|流利|[四六]级|N[1-5]|水平)",
    ),
    rule(
        FactKind.RELATIONSHIP,
        "pet",
        r"(?<![想要算备虑])(?:养|有|收养|领养|捡)(?:了|着)?[^，,]{0,12}(?:猫|狗|犬|兔|仓鼠|乌龟|龟|鹦鹉|金毛"
        r"|柯基|拉布拉多|泰迪|哈士奇|布偶|英短|美短|蜥蜴|龙猫|荷兰猪|鱼|鸟|鹅|鸭|羊|马(?!上)"
        r"|[只条头缸匹][^，,]{1,6})|(?:我家|家里|我)(?:的)?(?:猫|狗|狗子|猫咪|主子|毛孩子|金毛|兔子|鹦鹉)(?:是"
        r"|叫|今年|\S{0,2}岁)",
        bare=True,
    ),
    rule(
        FactKind.IDENTITY, "family.child", rf"{SUBJECT}(?:没有?|有)[^，,]{{0,4}}(?:孩子|小孩|娃|儿子|女儿|闺女|双胞胎)"
    ),
    rule(
        FactKind.CONSTRAINT,
        "travel.transport",
        rf"{SUBJECT}(?:没有?|不会|不敢|不)(?:驾照|车$|开车|骑车|坐飞机|坐船|游泳)",
    ),
)
