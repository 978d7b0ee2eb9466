"""What the answers cost on a log of a thousand events, and on one of a million: flat, or a defect.

Both sides hold the same number of events: the local log is filled by `tests.history`, the server's by
`tests.cloud.history`, under the same ids. Start, load, update and memory are measured without the cloud, which would
work beside them; then the server gets some more events, and they are pulled.
"""

import sqlite3
import statistics
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import child
from tests.bench.child import request, running, timed_ms
from tests.bench.measures import serve, updates_ms
from tests.bench.with_cloud import ASKED_ONLY, home_of, new_user, sync_now, until_level
from tests.cloud.fixtures import Cloud, running_cloud
from tests.cloud.history import write_history
from tests.history import fill_log
from tests.sidecar import Home, Measured, Sidecar

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)  # events in the log
STARTS: Final = 5
LOADS: Final = 200
UPDATES: Final = 100
PULLED: Final = 1_000
PULLS: Final = 5
IDS: Final = "evt_history_"  # of `tests.history`


@dataclass(frozen=True)
class Point:
    """Medians at one size of the log: milliseconds, and MB of the process after these calls."""

    events: int
    start_ms: float
    load_ms: float
    update_ms: float
    pull_ms: float
    rss_mb: float


def points(folder: Path, most: int) -> Iterator[Point]:
    """One for each size up to `most`."""
    with running_cloud() as cloud:
        for count in SIZES:
            if count <= most:
                yield _point(folder / f"{count}", cloud, count)


def _point(folder: Path, cloud: Cloud, count: int) -> Point:
    user = new_user(cloud)
    online, offline = home_of(folder, cloud, **ASKED_ONLY), Home(folder)
    with Measured(online) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update("你好", "好的")
        sidecar.call("sync/now")
        head = sidecar.call("sync/status")["cloud"]["head"]
    write_history(cloud, user.user_id, count, ids=IDS)
    fill_log(online.database, "device-a", count, head=head)
    start = child.first_answer_ms(serve(offline), STARTS)
    with running(serve(offline)) as sidecar_alone:
        sidecar_alone.ask(request("sync/status"))
        load = statistics.median([timed_ms(sidecar_alone.ask) for _ in range(LOADS)])
        update = statistics.median(updates_ms(sidecar_alone, UPDATES))
        rss = child.rss_mb(sidecar_alone.pid)
    with Measured(online) as sidecar:
        while sidecar.call("sync/status")["pending"]:  # what was recorded meanwhile goes out
            sync_now(sidecar)
        pull = statistics.median([_pull_ms(sidecar, cloud, user.user_id) for _ in range(PULLS)])
    with closing(sqlite3.connect(online.database)) as connection:
        (held,) = connection.execute("select count(*) from events").fetchone()
    assert held > count + PULLED * PULLS
    return Point(count, start, load, update, pull, rss)


def _pull_ms(sidecar: Sidecar, cloud: Cloud, user_id: str) -> float:
    sync_now(sidecar)
    head = sidecar.call("sync/status")["cloud"]["head"] + PULLED
    write_history(cloud, user_id, PULLED)
    return timed_ms(partial(until_level, sidecar, head))
