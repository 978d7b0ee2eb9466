"""Simulated devices keep every invariant, and the same seed gives the same trace.

`make test` runs a few seeds, `make sim SEEDS=5000` many. A seed that found a defect stays here, for `make proof`.
"""

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
from itertools import count, islice
from pathlib import Path
from typing import Final

import pytest

from sync.db.engine import Database
from tests.proof import first_in_test
from tests.simulation.checks.expected_state import words_of
from tests.simulation.host.simulated_host import CURRENT, SimulatedDisk, SimulatedHost, SimulatedProcess
from tests.simulation.shrink import command, replay_plan, shrink_plan
from tests.simulation.simulator import run, simulate_seed
from tests.simulation.workload import original_app
from tests.simulation.workload.plan import (
    APPENDS,
    ASKING,
    ASKS,
    AWAY,
    BESIDES,
    ERASED,
    ERASES,
    FORGES,
    FORGING,
    GOES_AWAY,
    IMPORTING,
    IMPORTS,
    IS_SLOW,
    LAN,
    LOGGED_OUT,
    MEETS,
    MEETS_DIRECTLY,
    MOST_APPENDED,
    MOST_ASKED,
    MOST_DIRECT,
    MOST_ERASED,
    MOST_FORGED,
    MOST_IMPORTED,
    MOST_MET,
    MOST_PAIRED,
    MOST_PAUSES,
    MOST_RETURNS,
    ON,
    PAIRING,
    PAIRS,
    PAUSES,
    PAUSING,
    PROGRAMS,
    RETURNING,
    RETURNS,
    SLOW,
    SLOWEST,
    TOGETHER,
    SimulationPlan,
    make_plan,
)
from tests.support import REPOSITORY, run_in_virtual_time

SHARES: Final = 30  # parts of equal size, to use both cores
HISTORIES: Final = 4  # in each of them
FIRST: Final = 1_006

# seeds that found defects; the test written for each describes it
FOUND: Final = {
    12: "a restored home got back an own event from a server and had no delivery for it",
    15: "a file that was cut off within its last line counted as an edit",
    67: "an interrupted handover gave one account's document to the other",
    184: "a number acknowledged ahead of the cursor outlived the server that gave it",
    2_005: "a device whose memory was removed and came back lacked lines that were typed into the file",
    2_010: "the same, and it showed a line again that was deleted from the file",
    113: "two copies of a home stayed one replica, because a local event kept their numbers from colliding",
    529: "a document was uploaded for an event that it did not contain, and the next one with it was refused",
    388: "a copied home could not send events that it recorded under the id of the original, which was still in use",
    1_707: "after a power loss, text typed into a document just handed over was recorded for the former account",
    2_096: "text that was acknowledged during a logout was removed with the memory",
    2_108: "a token refresh failed after its caller had ended, and nobody handled the error",
    2_126: "a restored server was filled again so that the event at a cursor was the same and those before it were not",
    211: "a file that was cut off while newer lines waited was compared with the wrong version",
    2_500: "of two events with equal HLC, a new replica showed its own at the place of its former id",
    3_198: "a line that a copy of a home removed was missing on devices that show the original's document",
    4_767: "an event that a restored home renumbered had, in its backup, the number of an event that the home lacked",
    4_593: "a file that was cut off before its write was noted counted as an edit",
    10_195: "an event that a restored home renumbered had another place there if its clock was years ahead",
    15_417: "an app's save during the removal of a memory was acknowledged and removed",
    7_032: "a line that a conflict left stayed on the device of the conflict after a later edit ended it",
    8_298: "two first logins at the same time made two profiles",
    17_783: "a cut-off file counted as an edit after it had been asked about for twenty versions",
    7_143: "an account without a document recorded what another account's editor saved during the handover",
    3_341: "the document of a copied home was uploaded under the copy's number, and newer ones were refused",
    549: "the first page of a new account was taken for the other account's, whose label was of the same second",
    1_610: "the same",
    1_963: "the same",
    # the simulation was wrong in these, not the program
    4_455: "a second refresh of a session got the access token that had expired meanwhile",
    149: "text in an editor that was open before the first login was expected in the second account",
    201: "copies of one home take turns in the profile of each account; the quiet tail gave them none in the others",
    375: "an editor that loads what it has just saved has the document of the account before",
    428: "a removal that the server refused could not reach the other devices",
    534: "a memory that was removed from a device which was then revoked cannot come back to it",
    637: "a profile that is being made has no tables yet",
    914: "a guest's update without an answer was repeated in the second account",
    2_235: "a home that was restored and then revoked cannot get back what came after its backup",
    2_263: "text that was typed just before a home was copied is in both copies",
    1_005: "an editor saved the document of a removed memory, with a line deleted",
    1_117: "copies of one home use its device id in turn, ten minutes apart; the tail was too short for three",
    1_119: "an inactive profile could not know the new number of an event that others sent again",
    2_375: "a device removed a line and was revoked before it could sync",
    31_086: "a device that one of its two accounts had revoked could not send a removal to it",
    2_528: "two callers that waited for the end of a process each started the next one",
    3_326: "an editor loaded a memory that was being removed, and saved it without a line afterwards",
    4_805: "of two logins at the same moment, the second was taken for the heir of the guest's text",
    5_342: "an update without an answer was repeated in the next account after its memory was removed",
    5_519: "devices that have another device's refused event cannot quarantine it: they never send it",
    6_485: "an editor opened the next account's document before the disk had noted whose it is",
    6_808: "the same",
    7_850: "the same",
    16_388: "a deleted line made a version that was known before, which was taken for read by the program",
    18_120: "an answer that came just before a home was restored was noted just after",
    23_007: "the program was started while its home was being restored, and went on with the replaced files",
    2_504: "what a copy recorded under the original's id waits while the original is active; the tail let it be sent",
}

# seeds with search, daily records, erasure and archives
FOUND_ASKING: Final = {
    44: "an entry of a page that was noted and never written counted as deleted by hand",
    84: "a cut-off file counted as an edit after a line that it still had was erased",
    248: "a document on its way to the server was noted with lines that were erased meanwhile",
    2_562: "a page whose last session was deleted by hand stayed, and blocked the next account's page",
    2_739: "a page that a person had written as the program would counted as another account's after a switch",
    366: "the note of a page that could not be written outlasted the record, erased words included",
    5_093: "a document parked when its account left kept lines that were erased later",
    5_030: "a page that the disk refused twice was compared with the wrong text: a session counted as deleted",
    1_924: "a page that stayed unmarked when its account left had no owner once that account was back",
    12_375: "a line that the app deleted from an answer was back if something else was erased before it saved",
    6_246: "a search was cached, and the index counted as current, by the state of the database after the question",
    18_960: "a page edited by hand whose import could not be noted kept what was erased before the next look",
    553: "a load showed text whose erasure was requested while the database was busy",
    4_650: "the same",
    4_960: "erased words stayed in the write-ahead log of a program that was killed before it was purged",
    4_515: "a token that expired unused during sleep was reported as one that is never good",
    # the simulation was wrong in these, not the program
    1_931: "a document without erased text was not uploaded before the program switched to the other account",
    5_314: "a device that got a request in its last round had no further round to upload its document",
    168: "an edit of a line that another device erases at the same time goes with the line",
    3_574: "text whose erasure was requested is not found any more, though the disk prevents the erasure",
    4_609: "text in a daily record that the server refuses cannot be shown on another device",
    2_749: "what was erased before it was sent is empty everywhere, though the server refuses the request",
    5_852: "a daily record was changed by another device before its author got the answer",
    8_388: "of two that archive at once, the later continues where the earlier has read to",
    8_108: "a program died between reading on and archiving",
    5_469: "a line typed in place of a deleted one reads as its edit, and goes with it if another device erases that",
    6_424: "the same, if the edit quotes the line: the program's own request erases it",
    9_187: "the same",
    18_530: "a request that the server refuses reaches no other device, and a copy of the home has the words",
    216: "archives follow requests of other devices as a running program does; the simulation's tail did not",
    21_578: "a text that came from an archive was erased before its author sent it, and stayed on the server",
}

# seeds with logins after a logout, or slow commits
FOUND_LATER: Final = {
    1_924: "a page whose import was not noted had no owner once its account was back",
}


# seeds with devices that meet directly
FOUND_DIRECT: Final = {
    5_696: "a wait whose timer ended a billionth of a second early began again without end",
    20_833: "an event that a copy had sent under the original's number was verified as never sent",
    4_971: "the server's time gave known events another place, and the document was not uploaded again",
    9_604: "a copy of a home that became a new replica renumbered the original's events",
}

# seeds with every kind of action
FOUND_WITH_ALL: Final = {
    1_000: "an archive came to a home whose own first words were not yet in a file, and they stayed out of it",
    1_435: "a line that a device which is not admitted had changed stopped the search index",
}

DIRECT: Final = (AWAY, "revoke", "clone", "rollback")  # the cloud is away for the whole history; who may not connect
DIRECT_SEEDS: Final = 4  # of each; in a single one the devices may never learn each other's keys


def share(number: int) -> range:
    return range(FIRST + number * HISTORIES, FIRST + (number + 1) * HISTORIES)


@pytest.mark.parametrize("number", first_in_test(range(SHARES), 4))
def test_nothing_is_lost_duplicated_or_leaked_and_devices_agree(number: int) -> None:
    broken = {seed: outcome.defects for seed in share(number) if (outcome := simulate_seed(seed)).defects}
    assert broken == {}, f"make sim SEED={min(broken)} SHRINK=1"


@pytest.mark.parametrize("seed", first_in_test(FOUND))
def test_a_former_defect_stays_fixed(seed: int) -> None:
    assert run(make_plan(seed).besides()).defects == ()  # the plan in which it was found


@pytest.mark.parametrize("seed", first_in_test(FOUND_ASKING))
def test_a_former_defect_of_client_actions_stays_fixed(seed: int) -> None:
    assert run(make_plan(seed).besides(ASKING)).defects == ()


@pytest.mark.parametrize("seed", first_in_test(FOUND_WITH_ALL, 2))
def test_a_former_defect_with_every_kind_of_action_stays_fixed(seed: int) -> None:
    assert run(make_plan(seed)).defects == ()


@pytest.mark.parametrize("seed", first_in_test(FOUND_LATER))
def test_a_former_defect_of_logins_or_slow_commits_stays_fixed(seed: int) -> None:
    assert run(make_plan(seed).besides(ASKING, TOGETHER, RETURNING, SLOW)).defects == ()


@pytest.mark.parametrize(
    ("kind", "share", "most"),
    [
        (ASKING, ASKS, MOST_ASKED),
        (TOGETHER, MEETS / 2, MOST_MET),
        (RETURNING, RETURNS * (1 - (1 - ON) ** len(LOGGED_OUT)), MOST_RETURNS),
        (PAUSING, PAUSES, MOST_PAUSES),
        (ERASED, ERASES, MOST_ERASED),
        (LAN, MEETS_DIRECTLY, MOST_DIRECT),
        (PAIRING, PAIRS, MOST_PAIRED),
        (PROGRAMS, APPENDS, MOST_APPENDED),
        (IMPORTING, IMPORTS, MOST_IMPORTED),
        (FORGING, FORGES, MOST_FORGED),
        (AWAY, MEETS_DIRECTLY * GOES_AWAY, 1),
    ],
)
def test_additional_actions_are_in_a_share_of_plans_and_change_nothing_else(kind: str, share: float, most: int) -> None:
    plans = [make_plan(seed) for seed in range(400)]
    with_it = [plan for plan in plans if kind in plan.kinds]
    assert abs(len(with_it) / len(plans) - share) < 0.05
    for plan in with_it:
        added = set(plan.besides(kind).steps) - set(plan.besides().steps)
        assert [step.number for step in plan.besides().steps] == list(range(len(plan.besides().steps)))
        assert 0 < len(added) <= most
        assert {step.action for step in added} <= {action for action, _ in BESIDES[kind]}


def test_slow_commits_are_in_a_share_of_plans_and_change_nothing_else() -> None:
    plans = [make_plan(seed) for seed in range(400)]
    slow = [plan for plan in plans if SLOW in plan.kinds]
    assert abs(len(slow) / len(plans) - IS_SLOW) < 0.05
    assert all(0.0 < plan.rate(SLOW) <= SLOWEST for plan in slow)
    assert all(plan.without([SLOW]).rate(SLOW) == 0.0 and plan.without([SLOW]).steps == plan.steps for plan in slow)


@pytest.mark.parametrize(("slowest", "commits"), [(0.0, 3), (SLOWEST, 1)])
def test_writers_share_a_commit_that_waits_for_the_disk(tmp_path: Path, slowest: float, commits: int) -> None:
    async def written() -> int:
        CURRENT.set(SimulatedProcess("a", random.Random(1), SimulatedDisk(), print, slowest=slowest))
        database = await Database.open(tmp_path / "memory.db")
        before, _ = database.change_token()
        await asyncio.gather(*(database.write(lambda _: None) for _ in range(3)))
        after, _ = database.change_token()
        await database.close()
        return after - before

    with SimulatedHost(1).running():
        assert run_in_virtual_time(written()) == commits


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Ids, times, order of arrival and faults come from the seed; not from the machine, nor from Python's hashes."""
    code = "from tests.simulation.simulator import simulate_seed; print(simulate_seed(3).digest)"
    other_hashes = str(int(os.environ.get("PYTHONHASHSEED", "random") == "1") + 1)
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": other_hashes},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == f"{simulate_seed(3).digest}\n"


@pytest.mark.parametrize("seed", first_in_test(FOUND_DIRECT))
def test_a_former_defect_of_direct_meetings_stays_fixed(seed: int) -> None:
    assert run(make_plan(seed).besides(LAN, AWAY)).defects == ()


@pytest.mark.parametrize("kind", first_in_test(DIRECT))
def test_devices_that_meet_directly_have_all_events_once_with_the_cloud_or_without(kind: str) -> None:
    plans = (plan for plan in map(make_plan, count()) if {LAN, kind} <= plan.kinds)
    outcomes = [run(plan.besides(LAN, AWAY)) for plan in islice(plans, DIRECT_SEEDS)]
    assert [(outcome.seed, outcome.defects) for outcome in outcomes if outcome.defects] == []
    lines = [line for outcome in outcomes for line in outcome.trace]
    assert any(line.endswith(": Events") for line in lines), "no event travelled directly"


def test_other_objects_in_memory_do_not_change_the_trace() -> None:
    """Sets of tasks are iterated in order of creation; no finalizer runs in between."""

    async def tasks() -> list[asyncio.Task[None]]:
        made = [asyncio.create_task(asyncio.sleep(0)) for _ in range(100)]
        return [*made, *set(random.sample(made, len(made)))]

    told = run_in_virtual_time(tasks())
    assert told[100:] == told[:100]
    with SimulatedHost(1).running():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_letters_of_a_key_or_signature_are_not_words() -> None:
    signature = "/w8x" + "A" * 82 + "=="
    own = "Ezw3xuI:" + signature.rstrip("=")
    text = f"{{'key': 'ed25519:{signature[:43]}=', 'value': '{signature}', 'own': 'E{own}', 'text': 'w1x w2x'}}"
    assert words_of(text) == ["w1x", "w2x"]


@pytest.mark.proof
def test_workers_run_many_seeds_and_print_one_json_line() -> None:
    command_line = [sys.executable, "-m", "tests.simulation", "--seeds", "2", "--first", "3", "--json"]
    told = json.loads(subprocess.run(command_line, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout)
    assert (told["histories"], told["failed_seeds"]) == (2, [])


@pytest.mark.proof
def test_a_printed_command_repeats_its_plan() -> None:
    plan = make_plan(4).only(range(10, 30)).without(["crash"])
    named = dict(part.split("=") for part in command(plan).split()[2:])
    again = replay_plan(make_plan(4), steps=named["STEPS"], kinds=named["KINDS"], fuses=named["FUSES"])
    assert (again.steps, again.kinds) == (plan.steps, plan.kinds)
    assert run(again).digest == run(plan).digest


def test_a_failing_plan_is_shrunk_to_what_still_fails() -> None:
    def fails(plan: SimulationPlan) -> bool:
        actions = [step.action for step in plan.steps]
        return "edit" in actions and "sync" in actions[actions.index("edit") :]

    assert [step.action for step in shrink_plan(make_plan(3), fails).steps] == ["edit", "sync"]


@pytest.mark.proof
def test_the_original_algorithm_loses_words_in_the_same_plans() -> None:
    losses = [original_app.run(make_plan(seed)) for seed in range(200)]
    assert sum(loss.lost for loss in losses) > 0
    assert all(loss.lost <= loss.remembered for loss in losses)
