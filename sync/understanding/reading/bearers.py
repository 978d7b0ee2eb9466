"""Say whom a clause is about: the user, a relation by its class word, or unknown. Pure.

A clause without a subject has that of the clause before it; a pronoun refers to the last relation before it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from sync.understanding.model import UNKNOWN_BEARER, USER_SUBJECT
from sync.understanding.reading.segments import Sentence

_OTHERS: Final = "other"  # the class of friends and colleagues, of whom nothing is kept

_LINKS: Final = (
    r"[\W_]|上个?(?:月|周|礼拜)|去年|前年|最近|刚刚?|这个?(?:月|周)|而且|但是?|不过|另外|其实|因为|所以|就是|对了|还有|现在|目前|以后|今年|可是|只是|从小|一直|平时|反正|主要|关键"
    r"|天生|先天|早就|已经|也|都|又|还|就|真的?|确实|本来|毕竟|并且|然后|注意|提醒|且|而|常年|长期|向来|从来|是|有|会|的|每天|天天|严重"
    r"|(?<![a-z])(?:and|but|also|so|because|since|cos|cuz|btw|fyi|by the way|actually|still|now|currently|just|plus"
    r"|note|ps|oh|well|ok|yes|yeah|no|am|is|be|been|a|an|the|on|with|both"
    r"|always|not|never|really|very|severely|badly|slightly|are|have|has|got"
    r"|last (?:week|month|year)|recently|finally"
    r"|older|elder|younger|eldest|youngest|oldest|little|big|dear|late|new)(?![a-z])"
)
_FIRST: Final = r"我|俺|咱|本人|偶|(?<![a-z])(?:i'm|im|i've|ive|i'd|i'll|i|my|me|we're|we've|we|our|mine)(?![a-z'])"
_OWNERS: Final = r"我|俺|咱|本人|(?<![a-z])(?:my|our)(?![a-z])"
_THIRD: Final = r"[他她它]|(?<![a-z])(?:he|she|they|he's|she's|they're|his|her|their|ta)(?![a-z'])"
_ONLY_LINKS: Final = re.compile(rf"(?i)(?:{_LINKS})*$")
_HAS_FIRST: Final = re.compile(r"(?i)[我俺咱](?!的)|本人|(?<![a-z])(?:i|i'm|im|i've|ive|we|we're|we've)(?![a-z'])")
_HAS_THIRD: Final = re.compile(f"(?i){_THIRD}")


@cache
def relations() -> Mapping[str, str]:
    """The class of each relation's word."""
    classes: dict[str, str] = tomllib.loads(resources.files(__package__).joinpath("relations.toml").read_text("utf-8"))
    return {word: name for name, words in classes.items() for word in words.split()}


def relation_of(word: str) -> str | None:
    """The class of a relation's word; unknown for the words that name others, None for another word."""
    named = relations().get(word.lower())
    return UNKNOWN_BEARER if named == _OTHERS else named


@cache
def relation_pattern() -> str:
    """A pattern for a relation's word; one of a single character needs its possessor."""
    longest = sorted(relations(), key=len, reverse=True)
    whole = "|".join(re.escape(word) for word in longest if not word[0].isascii() and len(word) > 1)
    short = "|".join(word for word in longest if not word[0].isascii() and len(word) == 1)
    latin = "|".join(re.escape(word) for word in longest if word[0].isascii())
    return rf"(?:{whole}|(?<=[我俺咱家的们])(?:{short})|(?<![a-z])(?:{latin})(?=s?(?![a-z])|'s))"


@cache
def _subject() -> re.Pattern[str]:
    owner = rf"(?:(?:{_OWNERS})\s*(?:家里|们家|家|们|的|那|亲|大|小|二|老)*\s*(?:\w+ )??)?"
    return re.compile(
        rf"(?i)(?:{_LINKS})*(?:{owner}(?P<relation>{relation_pattern()})|(?P<first>{_FIRST})|(?P<third>{_THIRD}))"
    )


def explicit_bearer(text: str, antecedent: str | None = None) -> str | None:
    """Whom the subject at the beginning of a clause names, None without one; a pronoun refers to `antecedent`."""
    match = _subject().match(text)
    if match is None:
        return None
    if match["relation"]:
        return relation_of(match["relation"])
    return USER_SUBJECT if match["first"] else antecedent or UNKNOWN_BEARER


def is_link(clause: str) -> bool:
    """Whether a clause only links sentences, and says nothing: 对了, by the way."""
    return _ONLY_LINKS.match(clause) is not None


def bearer_before(prefix: str, carried: str, antecedent: str | None) -> str:
    """Whom what follows these words of a clause is about; unknown if they name another person."""
    named = explicit_bearer(prefix, antecedent)
    if named is not None:
        return named
    if _ONLY_LINKS.match(prefix):
        return carried
    if _HAS_FIRST.search(prefix):
        return USER_SUBJECT
    return antecedent or UNKNOWN_BEARER if _HAS_THIRD.search(prefix) else UNKNOWN_BEARER


class ClauseBearer(msgspec.Struct, frozen=True):
    """Whom a clause is about.

    `explicit`: whom its subject names. `carried`: of the clause before, without which it is about the user.
    `antecedent`: whom a pronoun in it refers to.
    """

    explicit: str | None
    carried: str
    antecedent: str | None

    @property
    def about(self) -> str:
        return self.explicit or self.carried


def clause_bearers(sentences: Sequence[Sentence]) -> list[list[ClauseBearer]]:
    """Whom each clause of each sentence is about. A sentence begins with the user, or with whom a pronoun names."""
    found: list[list[ClauseBearer]] = []
    antecedent: str | None = None
    for sentence in sentences:
        carried, row = USER_SUBJECT, []
        for at in range(len(sentence.clauses)):
            explicit = explicit_bearer(sentence.clause_text(at), antecedent)
            row.append(ClauseBearer(explicit, carried, antecedent))
            carried = explicit or carried
            if explicit not in {None, USER_SUBJECT, UNKNOWN_BEARER}:
                antecedent = explicit
        found.append(row)
    return found
