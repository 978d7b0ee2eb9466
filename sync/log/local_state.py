"""Names of the rows of the table `watermarks` that are not offsets in the log: versions, flags and counters.

Offsets of projections are in `sync.log.projections.registry`. All other rows are offsets of other programs.
"""

from typing import Final

from sync.db.schema import RECOVERY_STARTED, VERSION_ON_DISK

ORDER_VERSION: Final = "document.order"  # how often the order of the events has changed
FORMERLY_SHARED: Final = "document.shared"  # not 0 if an earlier version had a document of several devices here
SHARED_ORDER_VERSION: Final = "document.shared.order"  # written by the same version, and no longer read
RETURNED_NUMBER: Final = "log.returned"  # the highest own number given back to a restored database
REDACTION_RULES: Final = "redaction.rules"  # the redaction rules under which the whole log was last scanned
MODEL_DAY: Final = "understanding.model_day"  # the day, as an ordinal, that the next two rows count
MODEL_CALLS: Final = "understanding.model_calls"  # calls of the language model on that day
MODEL_TOKENS: Final = "understanding.model_tokens"  # tokens that they cost, as far as the model says so
FACT_LINES_END: Final = "document.facts.end"  # the day, as an ordinal, on which a fact that has a line is over; 0: none
TEXTS_ANNOUNCED: Final = "exchange_texts.announced"  # 1 once `status` has said that whole exchanges are kept
FORGET_SETTLED: Final = "forget.settled"  # up to here every request to forget was carried out or undone
DAILY_STARTED: Final = "daily.begun"  # 1 once daily records have a first offset

NAMES: Final = frozenset(
    {
        ORDER_VERSION,
        FORMERLY_SHARED,
        SHARED_ORDER_VERSION,
        RETURNED_NUMBER,
        REDACTION_RULES,
        TEXTS_ANNOUNCED,
        FORGET_SETTLED,
        DAILY_STARTED,
        MODEL_DAY,
        MODEL_CALLS,
        MODEL_TOKENS,
        FACT_LINES_END,
        RECOVERY_STARTED,  # when versions were lost, in milliseconds; 0 after the recovery
        VERSION_ON_DISK,  # the newest version that was read from or written to the memory file
    }
)
RULES_SUFFIX: Final = ".rules"  # `<projection>.rules` holds the version of the rules that a projection was built under


def rules_name(projection_name: str) -> str:
    """Return the row that holds the rules version of a projection."""
    return f"{projection_name}{RULES_SUFFIX}"


def is_local_state(name: str) -> bool:
    """Return whether a row of `watermarks` is not an offset in the log."""
    return name in NAMES or name.endswith(RULES_SUFFIX)
