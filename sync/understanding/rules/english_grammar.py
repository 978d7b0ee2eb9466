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
    r"|must|requires?|forbids?|returns?|starts?|ends?|closes?|opens?|costs?|doesn't|don't|can't|won't|stays?"
    r"|moves?|will|sits?|goes|needs?|only|never|always|gets?"
    r"|expires?|pinned|supports?|moved|speaks?|'re)\b|^at work we(?:'re| are)\b|^we(?:'re| are) (?:pinned"
    r"|stuck|locked|a (?:team|startup|company|small|\w+-person)|on (?-i:[A-Z])|all on|not allowed|a)\b"
    r"|^we (?:only|don't|do not|can't|have to|must|never|always|support|host|deploy|release|ship|target"
    r"|have (?:a|no|\d|two|three|four|five|six) )\b"
)
# Activities: their simple present in the first person is a habit. The present of other verbs holds at this moment.
_HABITUAL: Final = (
    r"(?:works?|live|reside|commute|cycle|walk|drive|ride|swim|climb|hike|train|play|sing|dance|paint|write"
    r"|code|program"
    r"|develop|teach|coach|tutor|lecture|nurse|sell|trade|ship|serve|host|deploy|release|store|name|tag|invoice|bill"
    r"|charge|invest|rent|own|lease|breed|raise|grow|farm|hunt|knit|sew|bake|cook|eat|drink|smoke|sleep|wake|get up"
    r"|wear|speak|read on|listen (?:to|on)|read (?!the\b|this|that|about)|look after|watch|celebrate|observe|shave"
    r"|gamble|vote|study|practi[sc]e|meditate"
    r"|pray"
    r"|volunteer|travel|fly|sail|camp"
    r"|attend|go|use|support"
    r"|accept|close|open|collect|repair|restore|import|export|manage|lead|supervise|organi[sz]e|edit|film|stream|blog"
    r"|publish|translate|interpret|home-?school|babysit|foster|care for|stutter|stammer|lisp|get (?:migraines"
    r"|seasick|carsick"
    r"|nosebleeds|hay fever|hives|dizzy)|run (?!on\b|the\b|into\b|out\b)|do (?:not )?(?:yoga|pilates|shift work"
    r"|code freezes|night shifts)|keep (?:my|our|all|bees|chickens)"
    r"|take (?:(?:[\w-]+ ){0,3}(?:pills?|tablets?|medication|meds|drops|injections|lithium|insulin|statins"
    r"|steroids|supplements)\b|notes|the (?:bus|train|tram|metro)|my (?:coffee|tea))|share (?:a|one|two) (?:bedroom"
    r"|flat|house|room"
    r"|office|desk|car)|shop at|bank with|do|review|merge|get (?:up|home|paid|\w+ (?:days?|weeks?) off)|produce"
    r"|manufacture|brew|take the [\d:]+|squash|rebase|test"
    r"|back up)"
)
_WITH_RHYTHM: Final = (  # verbs of one act, which say a habit beside always or never
    r"(?:(?<=always )|(?<=never )|(?<=usually )|(?<=normally ))(?:book|buy|order|pick|choose|bring|check|start|leave"
    r"|stay|skip|put|add|call|ask|send|pay|keep|take|make|turn)"
)
OPEN_I: Final = re.compile(
    r"(?i)^(?:i|we)(?: (?:also|only|just|always|never|still|often|both|all|sometimes|don't|do not|dont|can't|cannot"
    rf"|cant|no longer|(?!rely|apply|supply|reply|fly|multiply|comply)[a-z]{{3,}}ly))* (?:{_HABITUAL}"
    rf"|{_WITH_RHYTHM})\b(?! (?:this"
    rf"|that|these"
    r"|those|your|it)\b)(?: (?!it$|that$|this$)\S+|$)"
)
# What one has and does not lose tomorrow; whatever else one has may be the matter at hand.
HAVE: Final = re.compile(
    r"(?i)^(?:i|we)(?:'ve)?(?: (?:also|only|both|still|always))* (?:have|got|have got) (?:[\w'-]+ ){0,3}"
    r"(?:newborn|baby|boys|girls|kids|teenagers?|stutter|lisp|feet|skin|hair|eyes|eyesight|teeth|blood|tattoos?"
    r"|pin|plate|implants?|screws|mortgage|garden|soil|yard|allotment|lawn|membership|subscription|season ticket"
    r"|lease|tenants?|employees|staff"
    r"|dialect|accent|(?:dodgy|bad|weak|trick|gammy|sore|stiff|artificial|new) (?:knees?|back|hips?|shoulders?"
    r"|wrists?|neck|heart|ankles?))\b(?! (?:that|which|who)\b)"
)
OPEN_IM: Final = re.compile(
    r"(?i)^(?:i'm|i am|im|we're|we are)(?: (?:also|still|only|not|all))* (?:(?:on|at|with|from) (?:an? )?(?-i:[A-Z])"
    r"|(?:rubbish|terrible|hopeless|useless|bad|good|great|new) (?:with|at|to)\b"
    r"|(?:an?|the only) (?!bit\b|little\b"
    r"|lot\b|tad\b|mess\b)\w|not allowed\b|not on (?-i:[A-Z])|al+erg|colou?r|\d\d\b|short|tall\b|(?:left"
    r"|right)-|never free\b|not much of an?\b|here on an?\b|on the (?:\w+ )?floor\b|away (?:for work|a lot|every)\b"
    r"|used to (?:(?-i:[A-Z])|\w+ing\b)"
    r"|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety)(?:-\w+)?\b|on probation\b|more of an? |(?:not )?religious|getting (?:married|divorced)|(?:terrified"
    r"|scared"
    r"|afraid|fond|in charge|responsible) (?:of|for)\b"
    r"|on my (?:first|second|third|last|\w+th) (?:month|year|week|term|semester|pregnancy))"
)
_OWN_NOUNS: Final = (
    r"(?:memory|institute|university|college|stairs|ceilings?|windows?|roof|walls|place|desk|office|bathroom|bedroom"
    r"|knees?|back|hips?|shoulders?|wrists?"
    r"|neck|ankles?|elbows?|stomach|skin"
    r"|hair|eyes?|ears?|eyesight|hearing"
    r"|voice|teeth"
    r"|blood (?:type|pressure|sugar)|budget|income|salary|rent|mortgage|savings|pension|class(?:es)?|pupils"
    r"|students|team"
    r"|company|firm|shop|store|restaurant|bakery|studio|clinic|practice|office|school|department|lab|startup|business"
    r"|employer|employees|staff|union|shifts?|hours|notice period|contract|lease|flat|house|apartment|home"
    r"|garden|soil"
    r"|kitchen|balcony"
    r"|street|village|neighbou?rhood|missus|hubby|stack|servers?|database|repos?|product|app|api|backend"
    r"|frontend|site"
    r"|codebase|pipeline|brand|colou?rs?|harvest|season|exam|inspection|wedding|birthday|deadline|choir|band"
    r"|club|church"
    r"|religion|faith|diet|allerg\w+|condition|doctor|insurance|visa|passport|accent|dialect|postcode|time ?zone|bus"
    r"|commute|bike|truck|boat|phone|laptop|computer)"
)
OPEN_MY: Final = re.compile(
    rf"(?i)^(?:my|our)(?: [\w'-]+){{0,3}}? {_OWN_NOUNS}(?: (?:for|at|in|of|on) [\w'-]+)?(?:'s (?=(?:an?|the|very"
    rf"|really|pretty|bad|awful|terrible|rubbish|poor|dodgy|in|on|at|closed|open)\b)| )(?:(?<='s )|hurts?|shares?"
    rf"|keeps?|lacks?|begins?"
    rf"|year (?:begins|starts|ends)|is|are|has|have"
    rf"|runs?|lives?|works?|starts?|ends?"
    rf"|costs?|goes"
    r"|takes?|needs?|uses?|speaks?|returns?|forbids?|requires?|allows?|expires?|sits?|faces?|includes?"
    r"|consists?|comes|closes|opens|pays|drives|attends|studies|teaches|plays|sleeps|only|can't|cannot|doesn't"
    r"|don't|won't|must|rehearses|meets)\b"
)
TASK_NOUNS: Final = re.compile(
    r"(?i)^my bad\b|^(?:my|our)(?: [\w'-]+){0,2} (?:question|problem|issue|error|code|script|test|tests|build|essay"
    r"|draft|text|email|letter|file|query|loop|function|output|table|list|point|guess|idea|opinion|mistake"
    r"|answer|brain|wallet|bank account|bed|alarm|request|text|sentence|understanding|impression|plan|internet"
    r"|wifi|page|site|program|image|bot|regex|container|pod)\b"
)
FOR_ME: Final = re.compile(
    r"(?i)^(?!.*\b(?:or|too|enough|good|fine|great|works?|sounds?|looks?|perfect|easy|hard)\b)(?:no|only"
    r"|never)? ?[\w' -]{3,30}(?: only)?,? (?:for me|in our repo|in this repo|in our team"
    r"|at our \w+)$|^(?:no|only|never) [\w' -]{3,30} here$"
    r"|^nothing (?:with|in|from) [\w' -]+|^no [\w' -]{3,30} in (?:my|our) [\w' -]+$"
)
RESULTS: Final = re.compile(
    r"(?i)^(?:i|we) (?:don't|do not|dont) (?:have|own) (?:an |a (?!clue|problem|choice|preference|plan|question"
    r"|minute|second|moment|doubt"
    r"|point|chance|date|name|link|copy|reason|lot|favou?rite|good|single))(?!idea|opinion|answer)\w[\w -]{2,24}$"
    r"|^(?:i|we)(?:'ve| have) (?:never|always)\b|^(?:i|we) haven't got\b|^(?:i|we)(?: (?:don't|do not"
    r"|dont))? (?:have|own) (?:an? |any |no )?(?:smartphone|phone"
    r"|car|licen[cs]e|driving licen[cs]e|tv|oven|dishwasher|garden|balcony|kids|children|pets|siblings"
    r"|internet at home|(?:health |life )?insurance|bank account|credit card|(?-i:[A-Z])[\w-]+$)\b"
    r"|^(?:i've "
    r"|we've )?been"
    r" (?:vegan|vegetarian|sober|married|divorced|diabetic|self-employed|retired)\b"
    r"|^the (?:kids|twins|children|box|boxes) (?:are|is|go|goes|runs?|attend)\b|^(?:the )?baby(?:'s| is) due\b"
    r"|^(?:nobody|no one"
    r"|everyone|most|half|some|all) (?:in|on|of) (?:my|our) |^no (?:kids|children|pets|car|siblings|garden"
    r"|oven|tv)\b|^(?:i|we)(?:'ve| have)? (?:(?:just|finally|recently|already) )?(?:quit|gave up|given up"
    r"|signed up|enrolled|registered|never (?:finished|learned|learnt|had|been|drink|ate|eat)|lost my|got (?:married"
    r"|divorced|engaged)|retired|signed with"
    r"|went with|switched|moved|(?:worked|lived|taught|driven|played|run|owned)\b.*\b(?:for|since)\b|been (?:a |an "
    r"|on |off )?(?:sugar|vegan|vegetarian|sober|diabetic|married|single|living"
    r"|working|using|doing|running|with)|had my \w+ (?:out|removed|replaced)|stopped|sold|dropped)\b"
    r"|^there (?:are|is) (?:only |just )?\w+ of us\b|\bmoney is tight\b|\bis off the table\b|^(?:the )?(?:final "
    r"|whole |entire )?(?:exam|deadline|wedding|launch|trip"
    r"|flight|soil|flat|house|garden|office|race day|due date|defen[cs]e|surgery|move|party|concert|recital"
    r"|trial|hearing) (?:is|are|has|faces)\b"
)
AS_A: Final = re.compile(
    r"(?i)^(?:as|being) (?:a|an|someone|the)\b(?! (?:result|rule|side|matter|whole|last|joke|child|kid|first))"
)
FACTS_OF_OTHERS: Final = re.compile(
    r"(?i)\b(?:broken|failing|fails|slow|crash\w*|down|stuck|error\w*|acting up|weird|late|cancelled|nuts"
    r"|a mess|on fire|great|awesome|boring|good question)\b"
)
SWITCHED_TOOL: Final = re.compile(
    r"(?i)\b(?:switched (?:to|over|from .{1,24} to)|moved (?:over )?to|changed to|went back to|gone back to"
    r"|now on|now use"
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
            r"(?i)^(?:can't|cant|cannot|(?:don't|dont)(?= (?:eat|drink|drive|smoke|speak|own|have|do|like)\b)"
            r"|got|live|work(?! (?:out|through|up|on)\b)|speak)\b(?! (?:you|worry|mind|bother|forget|know"
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
    r"\b[Mm]y (?:insulin|inhaler|[Ee]pi[Pp]en|dialysis|chemo(?:therapy)?|stoma|cochlear implant|prosthe\w+|guide dog"
    r"|blood thinners"
    r"|high blood pressure|asthma|diabetes|coeliac disease|epilepsy|ex-wife|ex-husband|late (?:wife|husband)"
    r"|foster \w+)\b|\b(?:[Mm]y|[Oo]ur) (?:[A-Z][\w'-]+ |small |little |own |online |local ){0,2}(?:shop|store"
    r"|business|blog"
    r"|podcast|channel|newsletter|bakery|studio|farm|restaurant|cafe|startup|practice|clinic|salon|classroom"
    r"|pupils|patients|allotment|parole officer|carer|caseworker|oncologist|cardiologist|midwife|wheelchair"
    r"|hearing aids?|insulin pump|pacemaker|stepson|stepdaughter|twins|toddler|newborn|year \d+ class)\b"
)
