"""English patterns of open grammar: the simple present of I, we, my and our is a state or a habit."""

import re
from typing import Final

FIX: Final = re.compile(
    r"(?i)\b(?:the )?(?:root cause|culprit|cause|reason|problem|issue|bug)(?: \w+){0,3} (?:was|is"
    r"|turned out)\b(?! (?:that|when|what|how|why)?\s*\?)|\bit was (?:the|a|an|because|caused|due)\b.{3,}"
    r"|\bturned out\b.{3,}|.{6,}\b(?:fixed|sorted|solved|cured|resolved) (?:it|that|the)\b|\bthe fix (?:was"
    r"|is)\b"
)
PROJECT: Final = re.compile(
    r"(?i)^(?:and |but |so |all |both )*(?:our|the (?:repo|project|team|app|backend|frontend|database|staging"
    r"|production|build|ci|server|company|api|site|cluster)|at work|all (?:our )?repos|production|staging|prod"
    r"|launch|the beta|support|ci|main branch)\b.{0,40}?\b(?:is|are|'s|uses?|runs?|has|have|lives?|deploys?"
    r"|must|requires?|doesn't|don't|can't|won't|stays?|moves?|will|sits?|goes|needs?|only|never|always|gets?"
    r"|expires?|pinned|supports?|moved|speaks?|'re)\b|^at work we(?:'re| are)\b|^we(?:'re| are) (?:pinned"
    r"|stuck|locked|a (?:team|startup|company|small|\w+-person)|on (?-i:[A-Z])|all on|not allowed|a)\b"
    r"|^we (?:only|don't|do not|can't|have to|must|never|always|support|host|deploy|release|ship|target"
    r"|have (?:a|no|\d|two|three|four|five|six) )\b"
)
# The simple present of the first person is what holds in general; these verbs say what holds at this moment.
_MOMENT_VERBS: Final = (
    r"(?:need|want|think|guess|see|know|understand|mean|get|hope|wonder|agree|disagree|remember|forget|believe"
    r"|suppose|appreciate|thank|promise|feel|bet|doubt|assume|notice|hear|look|seem|ask|wish|say|tell|try"
    r"|can(?! only)|could(?! only)|would|should|will|shall|may|might"
    r"|must|am|was|were|been|had|did|got|went|saw|made|took|came|bought|found|thought|told|said|gave|felt|left"
    r"|met|ran|wrote|ate|drank|broke|forgot|heard|knew|sent|spent|won|began|built|drew|fell|spoke|stood|wore"
    r"|tried|have to|do not know|just|give up|call it|apologi[sz]e"
    r"|beg|swear|accept|regret|care|wait|slept|woke|put|cut|hit|let|read|owe you|love (?:it|this|that|how|you)"
    r"|like (?:it|this|that|how|you|the)|prefer the|have (?:a|an|some|two|three|one|no|the|this"
    r"|\d+) (?:\w+ )?(?:question|idea|clue|problem|issue|meeting|bug|error|files?|feeling|doubt|call|list"
    r"|table|minute|second|moment|exam|test|headache|cold|choice|plan)s?|have no (?:idea|clue|time)|have (?:a"
    r"|an) (?:\w+ )?(?:string|function|table|column|dataset|folder|spreadsheet|pdf|page|paragraph|script|class"
    r"|variable|array|draft|text|sentence|regex|query|screenshot|photo|image)\b|run (?:npm|this|the|it|into"
    r"|out)|use (?:this|it|the (?:above|following)))"
)
OPEN_I: Final = re.compile(
    r"(?i)^(?:i|we)(?: (?:also|only|just|really|always|usually|never|still|mostly|mainly|personally|normally"
    r"|generally|often|typically|both|all|rarely|hardly|sometimes|don't|do not|dont|can't|cannot"
    rf"|cant))* (?!{_MOMENT_VERBS}\b)(?![\w-]+ed\b)[a-z][a-z-]+(?! (?:this|that|these|those|your"
    r"|it)\b)(?: (?!it$|that$|this$)\S+)+"
)
OPEN_IM: Final = re.compile(
    r"(?i)^(?:i'm|i am|im|we're|we are)(?: (?:also|just|still|only|really|very|the only|not"
    r"|getting))* (?!not\b|going\b|gonna\b|\w+ing\b(?! for)|in a\b|on (?:it|my way)|at (?:the|a)\b|so\b|too\b"
    r"|with you|all\b|almost\b|about\b|basically\b|out of\b|like\b|literally\b)[a-z0-9][\w' -]+"
)
OPEN_MY: Final = re.compile(
    r"(?i)^(?:my|our)(?: [\w'-]+){1,4}? (?:is|are|has|have|runs?|lives?|works?|starts?|ends?|costs?|goes"
    r"|takes?|needs?|uses?|speaks?|returns?|forbids?|requires?|allows?|expires?|sits?|faces?|includes?"
    r"|consists?|comes|closes|opens|pays|drives|attends|studies|teaches|plays|sleeps|only|can't|cannot|doesn't"
    r"|don't|won't|must)\b"
)
TASK_NOUNS: Final = re.compile(
    r"(?i)^(?:my|our)(?: [\w'-]+){0,2} (?:question|problem|issue|error|code|script|test|tests|build|essay"
    r"|draft|text|email|letter|file|query|loop|function|output|table|list|point|guess|idea|opinion|bad|mistake"
    r"|answer|brain|wallet|bank account|bed|alarm|request|text|sentence|understanding|impression|plan|internet"
    r"|wifi|page|site|program|image|bot|regex|container|pod)\b"
)
FOR_ME: Final = re.compile(
    r"(?i)^(?:no|only|never)? ?[\w' -]{3,30}(?: only)?,? (?:for me|in our repo|in this repo|here|in our team"
    r"|at our \w+)$|^(?:only )?[\w' -]{3,24} only(?: please)?$|^nothing (?:with|in|from) [\w' -]+"
)
RESULTS: Final = re.compile(
    r"(?i)^(?:i|we)(?:'ve| have) (?:got|never|always)\b(?! (?:to|an? |some |two |the )?(?:\w+ )?(?:question"
    r"|problem|error|minute|second|meeting|idea|file|bug|issue|feeling|doubt|call)s?\b)|^(?:nobody|no one"
    r"|everyone|most|half|some|all) (?:in|on|of) (?:my|our) |^no (?:kids|children|pets|car|siblings|garden"
    r"|oven|tv)\b|^(?:i|we)(?:'ve| have)? (?:(?:just|finally|recently|already) )?(?:quit|gave up|given up"
    r"|never (?:learned|learnt|had|been|drink|ate|eat)|lost my|got (?:married|divorced|engaged)|retired|signed"
    r"|went with|switched|moved|been (?:a |an |on )?(?:vegan|vegetarian|sober|diabetic|married|single|living"
    r"|working|using|doing|running|with)|had my \w+ (?:out|removed|replaced)|stopped|sold|dropped)\b"
    r"|\bmoney is tight\b|\bis off the table\b|^(?:the )?(?:final )?(?:exam|deadline|wedding|launch|trip"
    r"|flight|soil|flat|house|garden|office|race day|due date|defen[cs]e|surgery|move|party|concert|recital"
    r"|trial|hearing) (?:is|are|has|faces)\b"
)
AS_A: Final = re.compile(
    r"(?i)^as (?:a|an|someone|the)\b(?! (?:result|rule|side|matter|whole|last|joke|child|kid|first))"
)
FACTS_OF_OTHERS: Final = re.compile(
    r"(?i)\b(?:broken|failing|fails|slow|crash\w*|down|stuck|error\w*|acting up|weird|late|cancelled|nuts"
    r"|a mess|on fire|great|awesome|boring|good question)\b"
)
SWITCHED_TOOL: Final = re.compile(
    r"(?i)\b(?:switched (?:to|over)|moved (?:over )?to|changed to|went back to|gone back to|now on|now use"
    r"|migrated to)\b"
)
CHANGES: Final = re.compile(
    r"(?i)\b(?:moved?|moves|switched|changed|migrated|went back|gone back|now|no longer|any ?more|no more"
    r"|stop(?:ped)?|quit|gave up|given up|sold|cancel(?:l?ed)?|called off|is off|died|passed away|put \w+ down"
    r"|got rid of|dropped|left|retired|broke up|split up|divorced|replaced?|vetoed|instead|too (?:little|much"
    r"|long|short|few|many)|over with|done with|recovered|cured|outgrew|graduated|fired|laid off)\b"
)
# A clause that leaves out its I: what is put before it so that the rules for I apply.
ELLIPSIS: Final = (
    (
        "i ",
        re.compile(
            r"(?i)^(?:can't|cant|cannot|don't|dont|got|live|work|speak)\b(?! (?:you|worry|mind|bother|forget|know"
            r"|do that|tell|ask|use|say|it\b|that\b|this\b|be|make|give|go|add|include|explain|write))"
        ),
    ),
    (
        "i'm ",
        re.compile(
            r"(?i)^(?:allergic|based in|living in|working as|married|single|vegan|vegetarian|coeliac|celiac|diabetic"
            r"|retired|pregnant|left-handed|lactose|not a native)\b"
        ),
    ),
)
PRESUPPOSED: Final = re.compile(
    r"\b(?:[Mm]y|[Oo]ur) (?:[A-Z][\w'-]+ |small |little |own |online |local ){0,2}(?:shop|store|business|blog"
    r"|podcast|channel|newsletter|bakery|studio|farm|restaurant|cafe|startup|practice|clinic|salon|classroom"
    r"|pupils|patients|allotment|parole officer|carer|caseworker|oncologist|cardiologist|midwife|wheelchair"
    r"|hearing aids?|insulin pump|pacemaker|stepson|stepdaughter|twins|toddler|newborn|year \d+ class)\b"
)
