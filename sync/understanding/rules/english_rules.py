"""English rules for a person: diet, health, name, place, work, family, things, tools, taste, rhythm, plans, money."""

from typing import Final

from sync.understanding.model import FactKind
from sync.understanding.rules.english_gates import FAMILY
from sync.understanding.rules.reading import rule

_I: Final = (
    r"(?:\b(?:i|we|me and (?:my|the) \w+|my \w+ and i)\b|^)(?: (?:also|only|just|really|always|usually|never|still"
    r"|mostly|mainly|personally|normally|generally|often|typically|now|currently|already|actually|absolutely"
    r"|both|all|don't|do not|dont|can't|cannot|cant|can not|won't|do|sometimes|rarely|hardly|definitely"
    r"|tend to|try to|have to|kinda|sort of|totally))*"
)
_IM: Final = (
    r"\bi(?:'m| am|m)\b(?: (?:also|just|still|actually|currently|now|originally|only|really|mostly|very"
    r"|severely|slightly|mildly|technically|legally|partly|fully|completely|newly|recently))*"
)


_CONDITION_WORDS: Final = (
    r"(?:asthma\w*|diabet\w+|celiac|coeliac|epilep\w+|adhd|add|autis\w+|dyslex\w+|migraines?|arthritis|ibs"
    r"|crohn\w*|eczema|psoriasis|depress?\w+|anxiety|insomnia|hypertension|blood pressure|pacemaker"
    r"|hearing aids?|wheelchair|crutches|parkinson\w*|dementia|alzheimer\w*|cancer|chemo\w*|dialysis|pregnant"
    r"|pregnancy|breast-?feeding|colou?r-?blind|blind|deaf|hard of hearing|short-?sighted|near-?sighted"
    r"|tinnitus|vertigo|gout|anaemi\w+|anemi\w+|lactose\w*|gluten\w*|intoleran\w+|bad (?:back|knee|hip"
    r"|shoulder|heart)|herniated|slipped disc|stroke|heart (?:condition|attack)|hip replacement"
    r"|knee replacement|surgery|cast|sciatica|scoliosis|endometriosis|pcos|thyroid|hypothyroid\w*|ocd|ptsd"
    r"|bipolar|seizures?|immunocompromised|transplant|prosthe\w+|dentures|braces|hay fever|acid reflux|kidney|hives"
    r"|chronic \w+|visually impaired|screen reader"
    r"|allerg\w+|phobi\w+|fear of (?:heights|flying))"
)
RULES: Final = (
    rule(
        FactKind.CONSTRAINT,
        "diet.allergy",
        r"(?i)(?:\b(?:i|i'm|im|i've|we|my|our|me)\b.{0,40}|^(?:severely |badly |very |also )?)(?:\ballerg(?:ic|y|ies)"
        r" (?:to )?(?P<o>[\w' -]{2,24})|\bintolerant\b|\bintolerance\b|\b\w+ allergy\b)",
    ),
    rule(
        FactKind.CONSTRAINT,
        "diet.restriction",
        rf"(?i){_IM} (?:not )?(?:a |an )?(?:strict |lifelong )?(?:vegan|vegetarian|pescatarian|halal|kosher|muslim"
        r"|jewish|hindu|on keto|keto|gluten[- ]free|dairy[- ]free|teetotal|sober|fasting"
        rf"|on a (?:\w+[- ]){{0,3}}diet)|{_I} (?:keep kosher|eat (?:halal|kosher|vegan|vegetarian|plant)"
        r"|fast until|avoid (?:sugar|gluten|dairy|carbs|salt|caffeine))",
    ),
    rule(
        FactKind.CONSTRAINT,
        "diet.restriction",
        r"(?i)\b(?:i|we) (?:don't|do not|dont|can't|cannot|cant|never|no longer|won't)(?: really| even"
        r"| ever)? (?:eat|drink|do|have|touch|tolerate|digest|handle) (?:any )?(?P<o>(?:spicy|meat|pork|beef|fish"
        r"|dairy|milk|gluten|alcohol|coffee|caffeine|sugar|nuts|shellfish|seafood|eggs|mushrooms|wheat|carbs|soy"
        r"|lactose|raw|red meat|wine|beer|booze|breakfast)[\w ]{0,16})|\b(?:coffee|caffeine|alcohol|dairy|gluten"
        r"|spicy food|sugar|wine)\b[^,]{0,20}\b(?:keeps me up|makes me|gives me|upsets|doesn't agree)"
        r"|^[\w ]{3,24} (?:gives|brings) me (?:out in )?"
        r"(?:an? )?(?:heartburn|rash|hives|migraines?|headaches?|cramps|spots|indigestion)",
    ),
    rule(
        FactKind.CONSTRAINT,
        "health",
        rf"(?i)(?:{_IM}|\bi(?:'ve| have| hav| suffer| live| wear| use| had| got)\b|\bi've got\b|^(?:the"
        rf"|my) ).{{0,24}}\b{_CONDITION_WORDS}\b|{_IM} (?:wearing|on (?:blood thinners|insulin|medication"
        r"|antidepressants|crutches|warfarin|statins))|\bi(?:'m| am) (?:\d+|\w+) (?:weeks|months) pregnant"
        r"|\bi (?:broke|tore|fractured|injured|dislocated) my\b(?!.*\b(?:grade|school|as a|when i)\b)|\bi can(?:no"
        r"|')t (?:lift|bend|hear|see|smell|run|swim"
        r"|climb|kneel|stand for|sit for)\b|\bi(?:'m"
        r"| am) (?:left|right)-handed|\bmy (?:back|knee|hip|shoulder|wrist|neck|eyesight|hearing|heart"
        r"|doctor)\b.{0,20}\b(?:bad|weak|hurts?|injur\w+|is done|gives out|is gone|torn|told|says|put me"
        r"|wants me)",
    ),
    rule(
        FactKind.IDENTITY,
        "name",
        r"(?i)\bmy (?:full |first |last |real |legal )?(?:name|surname)(?:'s| is)\b|^(?:i'm|i am"
        r"|it's) (?-i:[A-Z][a-z]+)(?: (?-i:[A-Z][\w-]+))?$|\bthey call me\b",
    ),
    rule(
        FactKind.IDENTITY,
        "age",
        rf"(?i){_IM} (?:about |nearly |almost |turning )?\d{{1,2}}(?: years? old| y/?o)?$|{_IM} (?:in my (?:early "
        r"|mid |late )?\w+ies)|\bi (?:turn|turned) \d\d\b|\bi was born\b",
    ),
    rule(FactKind.IDENTITY, "birthday", r"(?i)\bmy birthday(?:'s| is)\b"),
    rule(
        FactKind.IDENTITY,
        "body.size",
        rf"(?i){_IM} (?:\w+ foot|\d+ ?(?:cm|kg|lbs|pounds|ft|')|\d\.\d+ ?m)|\bi weigh\b|\bmy (?:shoe|height|weight"
        r"|dress) ?(?:size)?(?:'s| is)?\b|\bi (?:wear|take) (?:a )?size\b",
    ),
    rule(
        FactKind.IDENTITY,
        "location",
        r"(?i)(?:\b(?:i|we)\b|^)(?: (?:now|currently|actually|still|both|all|just))* (?:live|reside|rent"
        rf"|stay permanently)\b|{_IM} (?:based|living|located|in (?-i:[A-Z])|from (?-i:[A-Z])|calling from)|\b(?:i"
        r"|we|me and (?:my|the) \w+)(?:'ve| have)? (?:just |recently |finally )?(?:moved?|relocated|settled) (?:to|in"
        r"|into|from|back)"
        r"|\bmy (?:time ?zone|address|home ?town|city)(?:'s| is)",
    ),
    rule(
        FactKind.IDENTITY,
        "hometown",
        r"(?i)\bi(?:'m| am)? (?:originally )?(?:come from|born in|from (?-i:[A-Z]))|\bi'm (?-i:[A-Z])\w+(?:ese"
        r"|ish|ian|an|ch)$",
    ),
    rule(
        FactKind.IDENTITY,
        "role",
        rf"(?i){_IM} (?<!just )(?:not )?(?:a|an|the (?:lead|head|only|sole|main|youngest|eldest|oldest|cto|ceo"
        rf"|owner|founder"
        r"|treasurer|secretary)|your) (?!bit|little|lot|fan of|big fan|huge fan|tad|idiot|mess"
        r"|genius|fool|wreck|zombie|disaster|hurry|rush|total|complete|bad person|moron|potato"
        rf"|machine)[\w' -]{{3,60}}|{_IM} (?:retired|unemployed|self-employed|freelanc\w+|between jobs"
        r"|semi-retired|studying|training (?:to|as)|doing (?:an?|my) (?:[\w-]+ )?(?:phd|master'?s|degree|mba)"
        r"|in (?:my )?(?:first|second"
        rf"|third|final|\d\w+) year|on (?:parental|maternity|paternity|sick) leave)|{_I} (?:teach|run|own|manage"
        r"|lead|study|drive|farm|freelance|nurse|coach|volunteer|home-?school|do (?:[\w-]+ ){0,2}(?:work"
        r"|research|design|consulting)|work (?:as|for|at|in|on|with|night|from|part|full|remotely|saturdays"
        r"|sundays|weekends|shifts)|work(?= (?:mondays|nights)))\b(?! (?:into|it|out|through|errands|this"
        r"|the (?:script|tests|command|code|build)|a (?:test|script|query)))|\bmy (?:job|role|title|day job"
        r"|profession|employer|company|field|major)(?:'s| is)\b|\bi(?:'ve| have) been (?:a|an|working|teaching"
        r"|running|doing|in) .{0,40}\b(?:for|since)\b",
    ),
    rule(
        FactKind.IDENTITY,
        "marital",
        rf"(?i){_IM} (?:married|single|divorced|widowed|engaged|separated|a (?:single|widow)\w*)",
    ),
    rule(
        FactKind.IDENTITY,
        None,  # who speaks French may speak German too
        rf"(?i){_IM} (?:not )?(?:a )?(?:native|fluent|bilingual)|\bi (?:only |don't |do not |can't "
        r"|barely )?speak\b|\bmy (?:native|first|mother) (?:language|tongue)|\bmy (?:english|french|german"
        r"|spanish) (?:is|isn't)",
    ),
    rule(
        FactKind.IDENTITY,
        "identity",
        r"(?i)\bi hold (?:a|an)\b|\bi(?:'ve| have)(?: got)? (?:a|an) (?:[\w-]+ ){0,3}(?:licen[cs]e|degree|phd|masters"
        rf"|certificate|green card|visa|citizenship|passport)\b|{_IM} (?:an? )?(?:night owl|early bird"
        r"|morning person|introvert|extrovert|vegan|atheist|christian|buddhist|only child|twin|veteran|expat"
        r"|immigrant)\b",
    ),
    rule(
        FactKind.RELATIONSHIP,
        "pet",
        r"(?i)\b(?:i|we)?(?:'ve| have)? ?(?:got|have|own|keep|adopted|rescued)\b.{0,30}\b(?:dogs?|cats?|pupp(?:y"
        r"|ies)|kittens?|greyhounds?|parrots?|budgies?|hamsters?|rabbits?|goldfish|fish|tortoises?|turtles?"
        r"|horses?|ponies|pony|chickens|hens|goats?|guinea pigs?|ferrets?|snakes?|gecko|labradors?|lab|poodle"
        r"|corgi|terrier|collie|beagle|spaniel|retriever)\b|\bmy (?:dog|cat|puppy|kitten|parrot|budgie|hamster"
        r"|rabbit|horse|labrador|poodle|corgi)(?: (?-i:[A-Z])\w+)?(?:'s| is| has| can)\b",
    ),
    rule(
        FactKind.RELATIONSHIP,
        "family",
        rf"(?i)^(?:and )?(?:(?:both|all|half|one|two|neither)(?: of)? )?(?:my|our) (?:[\w-]+ )?(?:{FAMILY}(?:-in-law)?"
        r"|family)\b(?! (?:asked|asks|said|says|wants|wanted|told|thinks|keeps asking|sent|gave|made|just|was"
        r"|were|had|went|bought|loves?|likes?|hates?|always|never|swears|drives me|keeps|called|texted|forgot"
        r"|just|really|worked|lived|came|grew|fought|served|played|taught|built|died in"
        r"|\w+ worked))(?:,? [\w' ]{1,20},?)?(?:'s|s'|'ve)? ?\w+|^(?:mum|mom|dad|gran|nan|grandma"
        r"|grandpa)(?:'s)? (?:is|has|lives|moved|was diagnosed|can't|uses|doesn't|needs|turns)\b|\b(?:i|we)(?:'ve"
        r"| have)? (?:got )?(?:have )?(?:a|two|three|four|five|no|\d)\b[\w -]{0,16}\b(?:kids?|children|sons?"
        r"|daughters?|brothers?|sisters?|boys|girls|grandkids|siblings)\b|^(?:the )?(?:older|younger|eldest"
        r"|youngest) (?:one|son|daughter)? ?(?:is|has)\b",
    ),
    rule(
        FactKind.RELATIONSHIP,
        "work.boss",
        r"(?i)^(?:and )?(?:my|our) (?:[\w-]+ )?(?:manager|boss|editor|client|lead|supervisor|advis[oe]r|director"
        r"|ceo|cto|professor)\b.{0,30}\b(?:hates|wants (?:everything|all|every|no|only|me to always)\b|only"
        r"|insists|prefers|likes"
        r"|requires|expects|reads|won't|refuses)\b",
    ),
    rule(  # what those who have a say about the author's home or work do not allow
        FactKind.CONSTRAINT,
        "house.rule",
        r"(?i)^(?:my|our|the) (?:landlord|landlady|building|school|employer|company|hoa|council|nursery"
        r"|landlords)(?:'s)? (?:won't"
        r"|will not|doesn't|does not|don't|do not|never) (?:allow|permit|let|accept)s?\b|^(?:my|our) (?:landlord"
        r"|landlady"
        r"|building|school"
        r"|employer|company|office|lease|contract) (?:forbids|bans|blocks|only allows|prohibits|requires)\b",
    ),
    rule(
        FactKind.POSSESSION,
        "device",
        r"(?i)\b(?:my|our)(?: \w+){0,2} (?:laptop|computer|pc|desktop|phone|machine|tablet|car|ride|bike|camera"
        r"|keyboard|monitor|printer|router|tv|watch|oven|kitchen|flat|house|apartment|garden|server|nas|console"
        r"|setup|rig|guitar|piano|van|truck|motorbike|e-?reader)(?:'s| is| are| has| runs?|s are)\b(?! (?:broken"
        r"|slow|dead|down|making|about to|dying|not (?:working|turning)|too|acting|freezing|stuck|full))|\b(?:on|from"
        rf"|with) my (?-i:[A-Z])[\w-]+|{_I} (?:own|drive|ride|only own)\b(?! (?:me|it|home|there|to))|\b(?:i"
        rf"|we)(?:'ve| only)? (?:have|got|have got) an? (?:[\w-]+ ){{0,2}}(?-i:[A-Z])\w+ (?-i:[A-Z]*)\d+|\b(?:i"
        r"|we)(?:'ve| only)? (?:have|got|have got) (?:a|an|two|no|only a) (?:[\w-]+ ){0,3}(?:car|bike|laptop|pc"
        r"|macbook|iphone|oven|garden"
        r"|balcony|piano|guitar|camera|printer|nas|van|house|kitchen|pixel|galaxy|thinkpad|chromebook|phone|tablet"
        r"|microwave|dishwasher|3d printer|telescope|allotment|acres|plot|field|barn|shed|cottage"
        r"|boat)\b",
    ),
    rule(
        FactKind.PREFERENCE,
        "tool",
        r"(?i)(?:\b(?:i|we)\b|^)(?: (?:also|only|just|always|usually|still|mostly|mainly|both|now"
        r"|currently))* (?:use|code in|write (?:all|my|our|everything)|write (?-i:[A-Z])|program in|deploy|host"
        r"|build|edit|develop|run (?-i:[A-Z])|track|keep (?:my|our|all)|take (?:my )?notes|browse"
        r"|pay)\b(?! (?:to (?!write)|it\b|this|that (?!one)|a (?:lot|ton)))|\bmy (?:main |go-to |favou?rite "
        r"|default |daily |preferred )?(?:editor|ide|browser|shell|terminal|os|language|stack|framework|database"
        r"|font|theme|distro|keyboard layout)(?:'s| is)\b",
    ),
    rule(
        FactKind.PREFERENCE,
        "taste",
        r"(?i)\b(?:i|we)(?!'d (?:really |absolutely )?(?:like|love)\b)(?:'d)?(?: (?:really|absolutely|only|just"
        r"|do|don't"
        r"|dont|do not|much|never|generally|usually|always|tend to|'d|would|quite|strongly|kinda|still|no longer"
        r"|also))* (?:love|like|prefer|prefre|perfer|hate|dislike|enjoy|detest|adore|can't stand|cannot stand"
        r"|cant stand"
        r"|despise|favou?r|rather)\b(?! (?:the \w+ (?:of|in) (?:the|your|this|that)|to (?:know|see|get|hear|ask|learn"
        r"|make|buy|book|find|have)|it|this"
        r"|that|you|your|how|the (?:idea|way|sound|first|second|third|last|old|new|other|short|long|previous"
        r"|original|current|one|answer|blue|red)|an? \w+ template|if|when|be\b|option|version|variant|number"
        r"|plan [a-z]\b))(?P<o>[^,.]{2,40})"
        rf"|{_IM} (?:a (?:big |huge )?fan of|into|not into|not a fan of|obsessed with|fond of|scared of"
        r"|afraid of)(?P<p>[^,.]{2,30})|\bmy favou?rite (?!line|part|scene|quote"
        r"|moment)(?P<q>[\w ]{3,20}?)(?:'s| is)\b",
    ),
    rule(
        FactKind.HABIT,
        "schedule",
        rf"(?i)(?:{_I}|^(?:my|our)(?! (?:team |group )?(?:lead|manager|boss|director|head"
        rf"|kid))(?: [\w'-]+){{1,3}}) [\w' ]{{0,30}}\b(?:every (?:day|week|month|year|morning|evening|night|other"
        rf"|second|third|monday"
        rf"|tuesday"
        r"|wednesday|thursday|friday|saturday|sunday|weekend|sunday night)|each (?:morning|evening|week|day"
        r"|monday|friday|sunday)|on (?:mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|weekends"
        r"|weekdays)|(?:once|twice|three times|\w+ times) a (?:day|week|month|year)|daily|weekly"
        r"|in the (?:mornings?|evenings?)|before bed|at (?:five|six|seven|eight|nine|ten|noon|midnight"
        r"|\d{1,2}(?::\d\d)? ?(?:am|pm)?)\b)|\b(?:i|we) (?:get up|wake up|go to bed|start work|finish|clock off"
        r"|work out|commute|train|meditate|deploy|ship|release) (?:at|around|by|before|on|every|until)\b|\b(?:i"
        r"|we) work (?:nights|days|mornings|evenings|weekends|saturdays|sundays|shifts|remotely|from home"
        r"|part[- ]time|full[- ]time)",
    ),
    rule(
        FactKind.PLAN,
        "plan",
        r"(?i)\b(?:i|we) (?:plan|intend) to .{4,}|\b(?:i|we)(?:'m|'re| am| are)? (?:planning|going|off|moving"
        r"|flying|getting married|starting|leaving"
        r"|travell?ing|expecting|retiring|switching|launching|due|graduating|selling|taking|having|running"
        r"|seeing)\b.{0,40}\b(?:in|on|by|next|this|before|after|until|at the end of) (?:\d|january|february|march"
        r"|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct"
        r"|nov|dec|spring|summer|autumn|fall|winter|monday|tuesday|wednesday|thursday|friday|saturday|sunday|week"
        r"|month|year|christmas|easter|the \d|quarter|semester|term|q[1-4])|\b(?:i|we) (?:fly|leave|move|start|see"
        r"|have|get|travel|sit|take|graduate|retire|launch)\b.{0,30}\b(?:on|in|next|by|from) (?:\d|the \d|january"
        r"|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul"
        r"|aug|sep|oct|nov|dec|next|monday|tuesday|wednesday|thursday|friday|saturday|sunday|spring|summer|autumn"
        r"|winter)|\bmy (?:exam|wedding|deadline|flight|surgery|interview|due date|appointment|visa|lease|contract"
        r"|defen[cs]e|passport|thesis|check|operation|probation)\b.{0,24}\b(?:is|on|in|expires?|ends?|runs out"
        r"|starts?|to)\b|\bthe deadline(?:'s| is)\b|\bmy (?:aim|goal|plan|target|resolution)(?:'s| is)? to\b"
        r"|\b(?:i|we)(?:'m| am|'re| are) (?:saving (?:up )?for|training for|learning|studying for|preparing for"
        r"|trying for a baby|expecting)\b|\bmoved my \w+ to\b",
    ),
    rule(
        FactKind.KNOWLEDGE,
        "finance",
        r"(?i)\b(?:i|we) (?:earn|make|owe|save|pay|send|spend|take home)\b.{0,20}(?:[£$€]|\d|\bthousand\b|\bhundred\b"
        r"|\bgrand\b)|\b(?:my "
        r"|our )?(?:rent|mortgage|salary|income|budget|loan)\b(?:'s| is| are).{0,12}\d|\b(?:i've|i have|we've"
        r"|we have) (?:got )?(?:about )?[£$€]?\d[\d,.]*k?\b.{0,12}\b(?:left|saved|in)\b",
    ),
    rule(
        FactKind.DECISION,
        "decision",
        r"(?i)\b(?:i|we)(?:'ve| have)? (?:(?:just|finally|all|also) )*(?:de[cs]id\w*|agreed|chose|chosen"
        r"|settled on|picked|opted|signed off|committed to|resolved to|voted)\b(?! (?:yet|whether|it"
        r"|this|that (?!nothing|every|no\b|all\b|we\b|the\b))\b)|\bwe(?:'re"
        r"| are) (?:going with|dropping|sticking with|moving to|switching to|standardi[sz]ing on|migrating)\b"
        r"|\b(?:i|we) (?:won't|will not|will) be (?:renewing|using|moving|dropping|switching)\b|\bit(?:'s"
        r"| is) (?:decided|settled|final)\b",
    ),
)
