"""What the scorer sees of a message."""

from sync.understanding.reading.segments import read_sentences
from sync.understanding.reading.sentence_features import cut, grams, language_of, read_features
from tests.fit_understanding.data import compose

WORDS = {"花生": "0120", "过敏": "0131", "花": "0990"}


def test_a_message_is_chinese_if_a_tenth_of_its_letters_are() -> None:
    assert language_of("我用 VS Code 和 PyCharm") == "zh"
    assert language_of("I live in 北京 with my two dogs and a cat since last year") == "en"
    assert language_of("123 !") == "en"


def test_runs_know_the_beginning_and_the_end() -> None:
    assert grams(["a", "b"], (1, 2)) == ["^", "a", "b", "$", "^ a", "a b", "b $"]


def test_chinese_is_cut_into_the_longest_known_words() -> None:
    assert cut(list("我对花生过敏"), WORDS) == ["我", "对", "花生", "过敏"]


def test_numbers_are_one_sign_and_known_words_their_class() -> None:
    message = "我对花生过敏15年"
    first = next(compose(read_features(message, "", read_sentences(message), "zh", WORDS)))

    assert "过 敏 0".encode() in first["g"]
    assert b"0120 0131" in first["w"]
    assert b"012 013/" in first["w"]


def test_a_sentence_sees_what_is_before_and_after_it() -> None:
    message = "朋友问我。我对花生过敏。怎么回他？"
    first, second, last = compose(read_features(message, "你好吗？", read_sentences(message), "zh", WORDS))

    assert "朋 友".encode() in second["h"]
    assert "回 他".encode() in second["t"]
    assert (first["h"], last["t"], first["p"]) == ([], [], [])
    assert second["n"] == last["g"]
    assert "好 吗".encode() in first["q"]


def test_marks_say_where_a_sentence_stands_and_how_it_is_written() -> None:
    message = "He wrote:\n- I am vegan\n- I live in Leeds\nWhat should I answer?"
    marks = [groups["k"] for groups in compose(read_features(message, "", read_sentences(message), "en", {}))]

    assert b"form item" in marks[1]
    assert b"first1" in marks[1]
    assert b"followedTrue" in marks[2]
    assert b"last0" in marks[-1]
