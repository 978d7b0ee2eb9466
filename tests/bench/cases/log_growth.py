"""What the answers cost on a log of a thousand events, and on one of a million: flat, or a defect.

Both sides hold the same number of events: the local log is filled by `tests.bulk_log`, the server's by
`tests.cloud.database.bulk_history`, under the same ids. Start, load, update and memory are measured without the cloud,
which would work beside them; then the server gets some more events, and they are pulled.
"""

import sqlite3
import statistics
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench import process_client
from tests.bench.cases.one_device import serve, updates_ms
from tests.bench.cases.with_cloud import ASKED_ONLY, home_of, new_user, sync_now, wait_until_synced
from tests.bench.process_client import measure_ms, request, run_program
from tests.bulk_log import fill_log
from tests.cloud.database.bulk_history import write_history
from tests.cloud.fixtures import Cloud, running_cloud
from tests.sidecar import Home, Sidecar, TimedSidecar

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)  # events in the log
STARTS: Final = 5
LOADS: Final = 200
UPDATES: Final = 100
PULLED: Final = 1_000
PULLS: Final = 5
IDS: Final = "evt_history_"  # of `tests.bulk_log`


@dataclass(frozen=True)
class GrowthPoint:
    """Medians at one size of the log: milliseconds, and MB of the process after these calls."""

    events: int
    start_ms: float
    load_ms: float
    update_ms: float
    pull_ms: float
    rss_mb: float


def measure_points(folder: Path, most: int) -> Iterator[GrowthPoint]:
    """One for each size up to `most`."""
    with running_cloud() as cloud:
        for count in SIZES:
            if count <= most:
                yield _measure_point(folder / f"{count}", cloud, count)


def _measure_point(folder: Path, cloud: Cloud, count: int) -> GrowthPoint:
    user = new_user(cloud)
    online, offline = home_of(folder, cloud, **ASKED_ONLY), Home(folder)
    with TimedSidecar(online) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update("今天的安排", "好的")
        sidecar.call("sync/now")
        head = sidecar.call("sync/status")["cloud"]["head"]
    write_history(cloud, user.user_id, count, ids=IDS)
    fill_log(online.database, "device-a", count, head=head)
    start = process_client.first_answer_ms(serve(offline), STARTS)
    with run_program(serve(offline)) as sidecar_alone:
        sidecar_alone.ask(request("sync/status"))
        load = statistics.median([measure_ms(sidecar_alone.ask) for _ in range(LOADS)])
        update = statistics.median(updates_ms(sidecar_alone, UPDATES))
        rss = process_client.rss_mb(sidecar_alone.pid)
    with TimedSidecar(online) as sidecar:
        while sidecar.call("sync/status")["pending"]:  # what was recorded meanwhile goes out
            sync_now(sidecar)
        pull = statistics.median([_pull_ms(sidecar, cloud, user.user_id) for _ in range(PULLS)])
    with closing(sqlite3.connect(online.database)) as connection:
        (held,) = connection.execute("select count(*) from events").fetchone()
    assert held > count + PULLED * PULLS
    return GrowthPoint(count, start, load, update, pull, rss)


def _pull_ms(sidecar: Sidecar, cloud: Cloud, user_id: str) -> float:
    sync_now(sidecar)
    head = sidecar.call("sync/status")["cloud"]["head"] + PULLED
    write_history(cloud, user_id, PULLED)
    return measure_ms(partial(wait_until_synced, sidecar, head))
