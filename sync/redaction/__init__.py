"""Redaction: text in, `Clean` text out. Event payloads contain only clean text.

Glossary
    kind      what a value is (手机号, 密钥 …). The placeholder `[手机号]` replaces the value.
    span      where a value was found, in characters of the original text.
    view      the normalised text that detectors search; values that were replaced are barriers in it.
    detector  a function from a view to spans.
"""

from sync.redaction.model import KINDS, Clean, CleanPayload, ExaminedText, SecretSpan, placeholder
from sync.redaction.redactor import Redactor

__all__ = ["KINDS", "Clean", "CleanPayload", "ExaminedText", "Redactor", "SecretSpan", "placeholder"]
