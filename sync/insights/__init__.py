"""What the log tells about how somebody works: read-only views with a cache of their own (seed 002 §6.2-6.3).

Glossary
    stage       design, implement, test, document …: where in the work a tool call stands.
    transition  one stage, or one type of event, that came after another in the same session.
    instinct    a rule that experience suggests, with the events that speak for and against it.
    confidence  0 to 1: how far those events carry; it falls by itself as they grow old.
"""
