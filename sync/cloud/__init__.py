"""Replication between this device's log and the user's Supabase. Start at `port.py` and `replication/`.

Glossary
    epoch       one incarnation of a user's log on the server; a new epoch means that the log was replaced.
    seq         the server's number of an event. The numbers of a user are assigned under a lock and have no gaps.
    head/floor  the highest seq assigned, and the lowest cursor that the server can serve.
    round       requests until nothing is pending and the cursor is at the head.
"""

import sys

# httpx's command line imports click, rich and pygments if they are installed: 5 MB and 60 ms. Make it look missing.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: not importable
