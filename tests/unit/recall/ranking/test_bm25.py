"""Scores by words: BM25 over the candidates."""

from collections.abc import Mapping, Sequence

from sync.recall.ranking.bm25 import (
    KeywordMatch,
    collect_candidates,
    idf,
    score_candidates,
    sentence_factors,
    term_values,
    term_weights,
)
from sync.recall.text.tokenizer import content_terms


def find_matches(
    asked: Mapping[str, float], held: Mapping[str, Sequence[tuple[int, int]]], counts: Mapping[str, int], most: int = 99
) -> list[KeywordMatch]:
    """The matches among 100 items; `held`: the (id, length) of those that hold a term."""
    worth = term_values(asked, counts, items=100)
    best = collect_candidates(worth, {term: [item_id for item_id, _ in rows] for term, rows in held.items()}, most)
    lengths = dict(row for rows in held.values() for row in rows)
    return score_candidates(best, lengths, query_value=sum(worth.values()), mean_length=10.0)


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    asked = {"火锅": 1.0, "公司": 1.0}
    held = {"火锅": [(1, 10)], "公司": [(2, 10)]}
    assert [match.item_id for match in find_matches(asked, held, {"火锅": 1, "公司": 50})] == [1, 2]
    assert idf(1, 100) > idf(50, 100) > 0


def test_a_short_item_counts_more_than_a_long_one_with_the_same_words_and_the_newest_of_equals() -> None:
    held = {"火锅": [(1, 10), (2, 40), (3, 10)]}
    assert [m.item_id for m in find_matches({"火锅": 1.0}, held, {"火锅": 3})] == [3, 1, 2]


def test_a_search_is_not_answered_by_a_single_character_of_it() -> None:
    asked = term_weights(content_terms("三点"))
    held = {"点": [(1, 10)]}
    assert find_matches(asked, held, {"点": 1}) == []
    assert find_matches(term_weights(content_terms("点")), held, {"点": 1})


def test_of_many_items_those_that_hold_the_most_are_weighed_and_the_newest_of_equals() -> None:
    held = {"火锅": [(at, 10) for at in range(1, 50)], "公司": [(7, 10)]}
    assert [match.item_id for match in find_matches({"火锅": 1.0, "公司": 1.0}, held, {"火锅": 49, "公司": 1}, 3)] == [
        7,
        49,
        48,
    ]


def test_saying_a_word_again_makes_it_count_more() -> None:
    assert term_weights(content_terms("火锅 火锅"))["火锅"] == 2 * term_weights(content_terms("火锅"))["火锅"]


def test_an_item_that_answers_a_whole_sentence_counts_more_most_of_all_the_last_one() -> None:
    sentences = [{"爬山", "昨晚"}, {"火锅"}]
    values, holding = {"爬山": 1.0, "昨晚": 1.0, "火锅": 1.0}, {"爬山": [1], "昨晚": [2, 1], "火锅": [3]}
    factors = sentence_factors(sentences, values, holding)
    assert factors[3] > factors[1] > factors[2] > 1.0
