"""Between this device's log and the user's Supabase: one port, two implementations, one loop, one account.

Glossary
    epoch       names one life of a user's log on the server; another epoch means the log was replaced.
    seq         the server's dense number of an event within a user; given under a lock, so it has no holes.
    head/floor  the highest number given, and the lowest cursor that the server can serve.
    round       requests until nothing waits and the cursor stands at the head.
"""

import sys

# httpx has a command line of its own, which brings click, rich and pygments wherever they are installed: 5 MB of a
# sidecar, 60 ms of a start. To it, they are missing here.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # the import system's word for "not there"
