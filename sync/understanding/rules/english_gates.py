"""What an English sentence or clause must not be to count, how it is cut into clauses, and who its people are."""

import re
from typing import Final

FAMILY: Final = (
    r"(?:wife|husband|spouse|partner|fianc[eé]e?|girlfriend|boyfriend|son|daughter|sons|daughters|kids?"
    r"|child(?:ren)?|baby|toddler|twins?|eldest|youngest|oldest|older one|younger one|mum|mom|mother|dad"
    r"|father|parents?"
    r"|old man|brother|sister|siblings?|grandm\w+|grandp\w+|gran|nan|grandfather|grandmother|grand(?:son"
    r"|daughter|kids)|uncle|aunt|niece|nephew|in-laws?|mother-in-law|father-in-law|stepson|stepdaughter"
    r"|teenager)"
)
OTHERS: Final = (
    r"(?:friends?|mates?|buddy|colleagues?|co-?workers?|neighbou?rs?|room-?mates?|flat-?mates?|boss|manager"
    r"|interns?|clients?|customers?|teacher|landlord|classmates?|teammates?|cousins?|ex|professor|coach|doctor"
    r"|dentist|barista"
    r"|reviewers?|guy|guys|girl|lady|man|woman|someone|somebody|people|everyone|everybody|they|he|she|users?"
    r"|students?|accountants?|lawyers?|plumbers?|builders?|electricians?|hairdressers?|tutors?|trainers?"
    r"|receptionists?|secretary|assistants?|recruiters?|agents?|salesm[ae]n|postman|vendors?|suppliers?|contractors?"
    r"|designers?|developers?|admins?|the radio|the news|the article|google|reddit|twitter|the internet)"
)
FICTION: Final = re.compile(
    r"(?i)\bbe my (?:[\w-]+ ){0,2}(?:tutor|teacher|interviewer|boss|opponent|therapist|partner|coach|guide|host)\b"
    r"|\bas if i\b|\blet's (?:do a|play|act|enact|rehearse)\b|\byou (?:be|play) (?:the|a|an|my)\b|\blet me be (?:the"
    r"|a|your)\b|\byour move\b|\brun lines\b"
    r"|\bi(?:'ll)? play the (?!piano|guitar|violin|cello|drums|flute|trumpet|organ|sax|harp|bass|viola|clarinet|banjo"
    r"|ukulele|accordion)|\byou(?:'re| are) (?-i:[A-Z])\w+ and i(?:'m| am|'ll)\b|\bsimulate\b|\bblind date\b"
    r"|\byou (?:start|go first)$|\b(?:sci-?fi|fantasy) (?:world|novel"
    r"|story|setting)\b|\bmy (?:orc|villain|hero|narrator|detective|protagonists?)\b|\bpicture this\b|\b(?:our"
    r"|my) campaign\b|\b(?:elf|wizard|ranger|bard|paladin)\b"
    r"|\bchapter (?:one|two|three|\d+)\b|\bmock (?:trial|interview|exam|court)|\b(?:for|in) (?:the|this|a|our"
    r"|my) (?:\w+ )?(?:scene|scenario"
    r"|sketch|skit"
    r"|exercise|simulation|game)\b|\brole-?play|\bpretend\b|\bimagine\b|\bnovel\b|\bheroine\b|\bprotagonist\b"
    r"|\bmy (?:main )?character\b|\bin (?:my|the|this) (?:story|game|play|script|book|film|movie)\b"
    r"|\bshort story\b|\bpoem\b|\bhaiku\b|\blyrics\b|\bdebate\b"
    r"|\bact as\b|\byou(?:'re| are) (?:the|a|an|my) (?!right|star|life|legend|great|best)|\bplay the (?:part"
    r"|role)|\b(?:write|tell|make up|invent|continue|finish) (?:me |us )?(?:a|an|the|my"
    r"|this) (?:[\w-]+ ){0,2}(?:scene|story"
    r"|tale|sketch|skit|dialogue|ballad|song|rap|diary|joke|riddle|fairy ?tale)\b|\bmonologue\b|\bone-?liner\b"
    r"|\bpunch ?line\b|\bimpersonat|\bd&d\b|\bdungeon\b|\bcaption\b"
    r"|\bslogan\b"
)
CONDITION: Final = re.compile(
    r"(?i)(?:^|[,;] )(?:and |but |so )?(?:if|suppose|supposing|assuming|say|let's (?:say|assume|suppose)|assume (?:i"
    r"|we|that|my|our)|what if|hypothetically"
    r"|were i|had i|even if|unless|in case|provided)\b(?! (?:you|i may|it is|it's|that's|possible|convenient|helpful"
    r"|hi|hello|thanks))|\bwould i\b|\bif i (?:were|had|was|ever|decided?|moved?|quit|wanted)\b|\bi wish\b"
    r"|\bone day\b"
)
# A cheer that what follows does not deserve.
SARCASM: Final = re.compile(
    r"(?i)^\W*(?:oh,? |well,? |ah,? )?(?:great|wonderful|fantastic|brilliant|lovely|perfect|awesome|terrific|splendid"
    r"|marvell?ous|super|yeah,? right|sure|of course|yay|wow|nice|thanks a lot|how (?:nice|lovely)),? (?!thanks|thank"
    r"|please|can|could|so\b|also|btw|by the way|here|then|that works|idea)(?:\w+ ){0,2}(?:i|we|another|my|just"
    r"|exactly)\b"
    r"(?!'(?:m|ve)|'d like| (?:am|live|work|use|have)\b)"
    r"|\b(?:just|totally|absolutely) love it when\b|\bexactly what i needed\b"
)
TAG: Final = re.compile(r"(?i)[, ]+(?:yeah|right|ok(?:ay)?|alright|please|thanks|you know|innit|cool|deal) ?\?\s*$")
# This one thing at hand: a request that names it does not last.
POINTS: Final = re.compile(
    r"(?i)\b(?:this|that|these|those) (?!repo|project|codebase|team|company|house|way|kind|sort|i\b|you\b|we\b)\w+"
    r"|\bplaceholder\b|\b(?:here|above|below|only)$|\byes or no\b|\bno (?:explanation|comment|intro|preamble)$"
    r"|\bit again\b"
    r"|\b(?:in|of|to|from|for|at) the (?!future|end|beginning|start|top|metric|morning|mornings|evening|same)\w+"
)
REPORTED: Final = re.compile(
    r"(?i)\b(?<!gotta )(?:says?|said|told|tells|claims?|claimed|reckons?|insists?|asked|asks|wrote|writes|argues?"
    r"|announced"
    r"|according to|apparently|rumou?r|i(?:'ve)? heard|i(?:'ve)? read that|i (?:read|saw) (?:that|somewhere)"
    r"|nothing official|saying|proverb|catchphrase|mantra|word is|they say)\b"
    rf"|\b{OTHERS} (?:thinks?|believes?|wants?|keeps?|always|never)\b"
)
OTHER_SUBJECT: Final = re.compile(
    r"(?i)^(?:and |but |so |well |oh |because |since |as )*(?:(?:my|our|the|a|an|some|this|that|one of my|his"
    rf"|her|their|another|every) (?:[\w'-]+ ){{0,2}}?)?{OTHERS}\b(?!-)|^(?:his|her|their|its|your)\b"
    rf"|^(?:most|some|half|all|many|one|two|both|none) of (?:my|our|the) (?:[\w-]+ )?{OTHERS}"
    rf"|^my (?:[\w'-]+ )?{FAMILY}'s (?:friend|boss|colleague|teacher|neighbou?r|class|boyfriend|girlfriend|ex\b|coach"
    rf"|flatmate|roommate"
    r"|co-?worker|teammate|landlord|uncle|aunt|cousin|nephew|niece|brother|sister)|^(?:it|this|that|there(?! (?:are"
    r"|is) (?:only |just )?\w+ of us\b)"
    r"|these|those)\b"
)
PAST: Final = re.compile(
    r"(?i)\b(?:i|we) (?:always |often |usually |never |sometimes )?(?!need|feed|speed|breed|bleed|succeed"
    r"|proceed)[a-z]+ed\b.{0,40}\b(?:every|each|daily)\b"
    r"|\b(?:i|we) (?:always |often |usually |never |just )?(?:ate|drank|slept|drove|wrote|ran|took|got|kept|made|came"
    r"|sat|spent|felt)\b"
    r"|\bduring (?:lockdown|covid|the pandemic|the war|my|high|college)\b|\bbefore$|\b(?:picked|chose|used|had|was"
    r"|were|went|started|built|wrote)\b.*\boriginally\b|\binitially\b|\bat first\b|\bthe year i\b|\bin those days\b"
    r"|\bmy (?:last|old|previous|former)"
    r" (?:job|company|boss|flat|house|school|employer|team|laptop|phone|car)\b|(?<!'m )(?<!am )(?<!im )\bused to\b"
    r"|\bwhen i was\b"
    r"|\bback (?:in|when|then)\b|\b(?:years?|months?|weeks?|days?|ages) ago\b"
    r"|\blast (?:week|year|month|night|summer|winter|spring|autumn|time|monday|tuesday|wednesday|thursday"
    r"|friday|weekend)\b(?!'s)|\byesterday\b|\bas a (?:kid|child|teen|student)\b|\bgrew up\b|\bin (?:college"
    r"|university|high school|school|my (?:twenties|teens|youth))\b|\bonce (?:had|was|lived|worked|tried"
    r"|owned)\b|\bpreviously\b|\bformerly\b|\bi (?:had|was|were|went|did|lived|worked|owned|tried|wanted"
    r"|thought|played|studied)\b|\bwe (?:had|were|went|did|used)\b"
)
ONCE: Final = re.compile(
    r"(?i)\bthis (?:time|one|once|slide|email|paragraph|section|file|function|draft|answer|reply|message|list"
    r"|task|image|photo|sentence|chapter|morning|evening|afternoon|week|weekend)\b|\btoday\b|\btonight\b"
    r"|\bright now\b|\bfor now\b|\bat the moment\b|\btomorrow\b|\bjust (?:this|here|once|for)\b|\bonly (?:here"
    r"|this|for this)\b|\bfor this\b|\bof this\b|\bgo straight to\b|\bin this\b(?! (?:repo|project|codebase"
    r"|team|company|house)\b)|\bat \d+ percent|\bhere only\b|\bthat (?:one|part|line|bit|paragraph|slide)\b"
    r"|\bcurrently (?:on|at|in)\b|\bfirst,? (?:show|give|list)\b|\bhold on\b|\bthe (?:first|second|third|last"
    r"|next) (?:one|part|line|paragraph|slide|point|row|column)\b"
)
PASSING: Final = re.compile(
    r"(?i)\bon (?:holiday|vacation)\b|\bkilling me\b|(?:'s|'re| is| are) (?:visiting|coming|staying (?:over|tonight)"
    r"|over for)\b|\boff sick\b|\bout of (?:the )?office\b|\bnearly (?:done|there|finished)\b"
    r"|\bhave(?: only)? (?:[\w-]+ )?(?:minutes?|hours?|seconds?)\b|^(?:i|we)(?:'ve"
    r"| have) been \w+ing\b(?!.*\b(?:for|since)\b)"
    r"|\bi(?:'m| am|m)(?: (?:so|really|very|just|pretty|a bit|a little|quite|still|already|kinda"
    r"|kind of))* (?:tired|hungry|bored|stuck|confused|sorry|not sure|unsure|afraid(?! of)|looking|trying|wondering"
    r"|getting(?! (?:married|divorced|a (?:dog|cat|puppy)))|having|here(?! on\b)|back|done|ready|late|busy|happy|glad"
    r"|sure|curious|thinking|writing|reading|watching|waiting|fine|ok|okay|good|great|sad|angry|annoyed|cold"
    r"|hot|lost|impressed|worried|exhausted|sleepy|home|off(?! to\b)|out|about|asking|aware|interested|hoping|seeing"
    r"|kidding|joking|feeling|gonna)\b|\bcan't believe\b|\blol\b|\blmao\b|\bjk\b|\bhaha\b.*\bjoke"
)
OPINION: Final = re.compile(
    r"(?i)\b(?:thought|figured|suspected|assumed|blamed)\b|^(?:and |but |so |well |honestly,? )*(?:i (?:think"
    r"|guess|feel|believe|suppose|wonder|doubt|reckon"
    r"|bet|hope|imagine|find (?:it|that)|agree|disagree)\b|in my (?:opinion|view)|imho|imo"
    r"|personally,? i (?:think|find|feel))|\bmade (?:of|entirely of)\b"
)
JOKE: Final = re.compile(
    r"(?i)\ballergic to (?:mondays|mornings|work"
    r"|exercise|people|effort|meetings|maths?|homework|my \w+|drama|bad)\b|\b(?:ph\.?d|degree|masters?"
    r"|doctorate|diploma|medal) in (?!engineering|nursing|marketing|accounting|computing|banking"
    r"|teaching|counselling|housing|planning|manufacturing|printing)\w+ing\b|\bblack belt in (?!karate|judo|tae"
    r"|aiki|jiu|brazil)"
    r"|\blove language\b|\bseafood diet\b|\bonly hobby\b|\b(?:simply|totally|so) (?:adore|love|enjoy)\b"
    r"|\bsarcasm\b|\b(?:held together|powered|fuel+ed|sponsored) (?:with|by) (?:[\w-]+ and )?(?:prayers?|hope"
    r"|duct tape|tape|luck"
    r"|coffee|caffeine|spite|tears|panic|love|rage|magic|snacks|tea|sugar|anxiety)\b|\bmy (?:cat|dog|kids?|toddler"
    r"|plants?|couch|bed|fridge"
    r"|inbox|toaster|printer|wifi|router|laptop|code|mirror|scale)\b.{0,20}\b(?:real|true|actual|secretly) (?:owner"
    r"|boss|master|ceo|landlord"
    r"|plots?|hates?|judges?|runs?)\b|\b(?:i|we) (?:just|only) pay (?:the )?rent\b|\blives? (?:in|on) (?:denial|fear"
    r"|hope|chaos|sin|my head"
    r"|the past|the moment|the edge|a bubble|another planet|mars|the moon)\b|\b(?:blood type|love language|cardio"
    r"|therapist|personality|religion"
    r"|superpower|spirit|soul|dna|middle name)(?: \w+)? (?:is|are) (?!a\b|b\b|ab\b|o\b|rh|christian|muslim|hindu"
    r"|jewish|buddh|sikh|catholic)"
    r"|\bfluent sarcasm|\bmarried to (?:my"
    r"|the) (?:job|work|bed|sofa|couch|game)|\bconstant state of\b|\bph\.?d in (?:over|pro)\w+|\bidentify as\b"
    r"|\bput the \w+ in\b|\d+ ?% (?:coffee|caffeine|water|sarcasm|cheese)|\bon my \w+ (?:coffee|cup|beer)"
    r"|\bunread emails\b|\bcommitted relationship\b|\b(?:run|runs|running|live|survive) on (?:coffee|caffeine"
    r"|tea|sugar|spite|vibes|bad|memes|snacks)|\bi am become\b|\bfor breakfast\b|\bmy (?:wallet|bank account"
    r"|bed|alarm|couch|fridge|liver"
    r"|brain) (?:says?|said|decided|thinks|hates|loves|is)\b|\bspirit animal\b|\bfluent (?:in )?(?!\w+(?:ish|ese|ian"
    r"|an|ch|ic|ew|ek)\b|hindi|urdu|farsi|english|two|three|four|both|sign)[a-z]+\b"
    r"|\bprofessional (?:over\w+|procrast\w+|nap\w+|couch|complain\w+|worr\w+|snack\w+)\b|\bdays (?:ending"
    r"|that end) in y\b|\bsecond home\b"
    r"|\benergy[- ]sav\w+ mode\b|\b(?:don't|do not) have [\w ]{2,24}, (?:i|we) have\b|\blike a (?:baby|zombie|log"
    r"|potato|sloth|king|pig|horse)\b|\blives? (?:in|inside) (?:a|the|my) (?:bug|code|spreadsheet)"
    r"|\bmy (?:alarm|gym|bed|couch|sofa|fridge|scale|inbox|bank account|wallet|brain) and (?:i|me)\b|\bput the pro in\b"
    r"|\bcalled procrastination\b|\blife (?:motto|goal)\b|\bon speaking terms\b|\bwork of fiction\b"
    r"|\b(?:house ?plant|potato|goblin|gremlin|raccoon|robot|vampire|zombie|sloth|couch) (?:with|who|that|in)\b"
    r"|\bso (?:long|much|many|often|bad|old|slow) (?:that )?(?:i|my|we|it) (?:now|could|can|should|might)\b"
)
QUESTION: Final = re.compile(
    r"(?i)\?\s*$|^(?:and |but |so |ok |well |also |hey |hi |then )*(?:do|does|did|what|what's|whats|why|how"
    r"|which|who|whose|when (?:is|do|does|did|will|can|should)|where|is|are|can(?!'t(?! (?:you|we|i|they|he|she"
    r"|it)\b))|could|should|would|will|am|was"
    r"|were|has|have (?:you|we|i)|any|got any|shall|may i|might)\b(?! (?:not )?(?:possible|needed))"
)
REQUEST: Final = re.compile(
    r"(?i)^(?:(?:and|then|so|now|just|also|ok|okay|please|kindly|pls|hey|hi) )*(?:can you|could you|would you"
    r"|will you|help|write|make|give me (?:a|an|the|some|two|three|five|\d)|show|tell me (?:a|about|how|what"
    r"|why|the)|explain(?! (?:things|everything|it|like|simply|in|your|concepts|as|with|step|briefly|only|first"
    r"|code)\b)|fix|refactor|rewrite|generate|create|list|find|check|convert"
    r"|let's|look|build|run|book|plan|suggest (?!only\b|no\b|nothing\b)|recommend|translate|draft|put|turn|compare"
    r"|design|add (?:some|a few|a bit)|add (?:a|an|the) (?!joke|summary|note|source)|remove|delete|open|close|sort"
    r"|count|summari[sz]e"
    r"|order|get|send|remind me|read|name|pick|move|change|set up|set|start|continue|go on|do it|try"
    r"|format (?:it|the)|proofread|brainstorm|outline)\b"
)
STANDING: Final = re.compile(
    r"(?i)(?<!who )(?<!that )(?<!which )\b(?:always|never|from now on|going forward|in (?:the )?future"
    r"|by default|every time|whenever|when i (?:write|ask|say|paste|send)|all (?:your |future )?(?:answers|replies"
    r"|responses)|in everything|everywhere|(?<=^stop )\w+ing(?= \w)|with every|(?<=^don't )(?:send|recommend|suggest"
    r"|offer|show) me (?!the|this|that|it|any more)\w+|all (?:prices|dates|times|amounts|numbers|distances"
    r"|temperatures)|each (?:reply|answer|response|time)|every (?:reply|answer|response|message"
    r"|email|summary"
    r"|function|commit)|as a rule|in general|generally|unless i (?:ask|say)|al+w[ays]{2,4}|when(?:ever)? you (?:write"
    r"|review|explain|answer|reply|respond|show|suggest|code|comment|talk|speak|list)"
    r"|any ?more|ever"
    r"|(?<=don't )\w+ (?:\w+ )*again|no matter|henceforth|in this (?:repo|project|codebase))\b"
)
# A phrase in front that limits the sentence to this once: For tonight's dinner, nothing with garlic.
ONCE_FIRST: Final = re.compile(
    r"(?i)^(?:and |but |so |ok |please |just )*(?:for|in|on|at|with|during) (?:this|tonight|today|tomorrow|now"
    r"|just this|the next)\b"
)
# The requests before it in the sentence are meant to last: no emojis, short paragraphs, always.
GENERALISES: Final = re.compile(
    r"(?i)^(?:always|every time|from (?:now|here) on(?: out)?|going forward|by default|in (?:the )?future)$"
    r"|\bfrom (?:now|here) on(?: out)?$"
)
DIRECTIVE: Final = re.compile(
    r"(?i)^(?:(?:and|so|but|also|please|pls|plz|kindly|just|then|hence|therefore|oh|ok|in code"
    r"|would you(?: please)?|remember(?: to| that)?|note(?: that)?|you can|you should|from now on"
    r"|going forward|in (?:the )?future|by default|when i [^,]{1,40}),? )*(?:always|never(?! mind| again$)"
    r"|al+w[ays]{2,4}"
    r"|allways|don't|dont|do not|stop|avoid|use|keep|answer|reply|respond|write|speak|talk(?! (?:later|soon|tomorrow"
    r"|to you)\b)|call me|address me"
    r"|refer to me|give|send|recommend|offer|skip|no\b|be (?:more |less )?(?:brief|concise|direct|blunt|honest|formal"
    r"|casual"
    r"|polite|short)|explain|assume|include|add|cite|format|prefer|stick to|show|put|begin|start|end|make sure"
    r"|default to|leave out|tell me|suggest|ask|treat|limit|spell|drop|cut)\b"
)
WISH: Final = re.compile(
    r"(?i)\bi(?:'d| would) (?:(?:really|much|always|usually|generally|strongly) )*(?:prefer|like|love"
    r"|appreciate|rather)"
    r"(?: it)? (?:(?=.*\b(?:from (?:now|here) on|in (?:the )?future|always|by default)\b)|you(?! (?:to|could"
    r"|would) (?:help|write|make|do|give|check|look|fix|find|see|tell|show|read"
    r"|take|come|try"
    r"|go|think|explain|translate)\b)|your (?:answers|replies|responses)|to get|get|answers?|replies|responses"
    r"|explanations"
    r"|metric|bullets?|short|if you|when you|to be (?:called|addressed)|that you|have|see|read)"
    r"|\bi (?:(?:really|much|always|usually|generally|strongly) )*(?:prefer|like|want"
    r"|need)(?: it)? (?:you to (?:always|never"
    r"|use|keep|answer|reply|call|address|be|avoid|stop)|when you|if you|answers?|replies|responses"
    r"|explanations|metric"
    r"|bullets?|to be (?:called|addressed)|that you)\b|\bi(?:'d| would) ask (?:that )?you\b|\bi(?:'d"
    r"| would) be (?:\w+ )?(?:grateful|glad|happy"
    r"|thankful) if you always\b|\bmy preference\b|^(?:charts|dates|numbers|units|answers"
    r"|replies|summaries"
    r"|code|tables|titles|headings|emails?|comments|examples|prices|times|temperatures|citations"
    r"|commit messages) (?:in|as|with|without|should|must|always|go|at|under|on|to be)\b"
)
FILLER: Final = re.compile(
    r"(?i)^(?:(?:may i (?:mention|add|note)(?: that)?|kindly note(?: that)?|(?:i(?:'d"
    r"| would) be (?:\w+ )?(?:grateful|glad"
    r"|happy|thankful)|it would be (?:great|nice|lovely|helpful)) if you (?:could|would)|gotta say|nah|nope|tbh"
    r"|that(?= i\b)"
    r"|haha|hah|lol|yeah|yep|sure|ok(?:ay)?|oh wait|oh|uh|um|erm|hmm|so basically|so|like|well|right"
    r"|right then|and|but|also|plus|btw|by the way|fyi|anyway|actually(?! i)|before i forget|basically"
    r"|honestly|look|listen|hey|hi|hello|good (?:morning|evening|afternoon)|thanks|thank you"
    r"|please note(?: that)?|note(?: that)?|remember(?: that)?|one (?:more )?thing|just so you know"
    r"|for (?:context|the record|reference)|heads[- ]up|given that|since|because|as(?! (?:a|an|the|someone)\b)"
    r"|although|bearing in mind(?: that)?|knowing(?: that)?|even though|though|while|now that|seeing (?:that"
    r"|as)|considering(?: that)?|(?:please )?be (?:advised|aware)(?: that)?|i (?:ought|want|would like"
    r"|should like) to (?:say|add|mention|note)(?: that)?|i should (?:mention|say|add|note)(?: that)?|i (?:must"
    r"|have to) (?:mention"
    r"|say)(?: that)?|keep in mind(?: that)?|don't forget(?: that)?|in case it helps|if it (?:is"
    r"|'s) not too much trouble|if possible|if you don't mind|the thing is|turns out|it turns out|you know"
    r"|in my case|my case|first|second|third|lastly|finally|quick note|correction|sorry|update|reminder"
    r"|context|background|yo|y'all)[\s,.:!–—-]+)+"
)
CLAUSE: Final = re.compile(
    r"[,;](?!\d)|:(?=\s)|\s[–—-]{1,2}\s|\s(?=(?:and|but|so|because|since|while)\s(?:i|i'm|im|i've|we|we're|my"
    r"|our|please|do|have|work|am|don't|never|always|it|she|he|they|that|the|coffee|support|numbers|live|finish|use"
    r"|run|prefer|hate|love|can't)\b)|\s(?=(?:so|and) (?:please|don't|do not)\b)",
    re.IGNORECASE,
)
INTRODUCTION: Final = re.compile(
    r"(?i)^\s*(?:and |but |also |please |so )*(?:from now on|going forward|in (?:the )?future|by default"
    r"|in general|for future reference|in code|at work|at home|these days|nowadays|(?:when|whenever|every time"
    r"|each time) i [\w' ]{1,40})\s*$"
)
