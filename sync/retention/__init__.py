"""Retention: archive old events, then remove their payloads on this device. The cloud and other devices keep theirs.

Rules say how long, or how much, is stored. A held event stays although it is old. See docs/decisions/013-retention.md.
"""
