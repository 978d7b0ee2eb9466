"""Redaction: text in, `RedactText` text out, the only text an event payload may hold.

Glossary. A *kind* names what was found (手机号, 密钥 …) and is all that stays of it, as a placeholder `[手机号]`. A
*span* is where it was found, in characters of the original. The *view* is the text as detectors see it: folded,
stripped of invisible characters, with what is already replaced as a barrier. A *detector* is a function from view to
spans.
"""

from sync.redaction.model import KINDS, Clean, CleanPayload, ExaminedText, SecretSpan, placeholder
from sync.redaction.redactor import Redactor

__all__ = ["KINDS", "Clean", "CleanPayload", "ExaminedText", "Redactor", "SecretSpan", "placeholder"]
