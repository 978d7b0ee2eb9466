"""Events of several devices, reduced to one document."""

from typing import Any

from sync.clock import format_hlc
from sync.document.markdown.template import WORK_HABITS
from sync.document.shared.reducer import SharedReducer
from sync.log.model import Event
from tests.support import event

HERE = list(WORK_HABITS)


def make_event(number: int, kind: str, *, device: str = "a", **payload: Any) -> Event:
    """The event at this place of the order."""
    return event(
        number,
        replica=f"rep_{device}",
        device=f"device-{device}",
        type=kind,
        hlc=format_hlc(1_700_000_000_000, number),
        payload={"section": HERE, "shared": True, **payload},
    )


def reduce_events(*events: Event) -> SharedReducer:
    fold = SharedReducer()
    for one in events:
        fold.add(one)
    return fold
