"""Sets of numbers as ranges behave as sets of numbers."""

from collections.abc import Iterable
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from sync.lan.protocol.ranges import NumberRanges, contains, count, first_numbers, intersect, subtract, union

Numbers = set[tuple[str, int]]
numbers = st.sets(st.tuples(st.sampled_from(["rep_a", "rep_b"]), st.integers(1, 30)), max_size=40)


def ranges_of(single: Iterable[tuple[str, int]]) -> NumberRanges:
    sets: list[NumberRanges] = [{replica: ((number, number),)} for replica, number in single]
    return reduce(union, sets, {})


def members(ranges: NumberRanges) -> Numbers:
    return {(replica, number) for replica, of in ranges.items() for a, b in of for number in range(a, b + 1)}


def test_neighbours_are_one_range() -> None:
    assert ranges_of([("r", 3), ("r", 1), ("r", 2), ("r", 7)]) == {"r": ((1, 3), (7, 7))}


@given(numbers, numbers)
def test_union_difference_and_intersection_are_those_of_sets(left: Numbers, right: Numbers) -> None:
    a, b = ranges_of(left), ranges_of(right)
    assert union(a, b) == ranges_of(left | right)
    assert subtract(a, b) == ranges_of(left - right)
    assert intersect(a, b) == ranges_of(left & right)
    assert count(a) == len(left)


@given(numbers, st.integers(0, 50))
def test_the_first_numbers_are_as_many_as_asked_for(held: Numbers, most: int) -> None:
    first = members(first_numbers(ranges_of(held), most))
    assert first <= held
    assert len(first) == min(most, len(held))


@given(numbers)
def test_a_set_contains_its_members_and_no_other(held: Numbers) -> None:
    for number in range(1, 31):
        assert contains(ranges_of(held), "rep_a", number) == (("rep_a", number) in held)
