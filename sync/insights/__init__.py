"""Statistics about how the user works, from the log, with a cache of their own.

A stage (design, implement, test …) is what a tool call belongs to; a transition is one stage or event type after
another in a session. An instinct is a rule that experience suggests, with events for and against it; its confidence,
0 to 1, falls as those events grow old.
"""
