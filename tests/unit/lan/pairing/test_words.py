from sync.lan.pairing.words import WORDS, words_of


def test_every_byte_has_its_own_word() -> None:
    assert len(set(WORDS)) == len(WORDS) == 256
    assert words_of(b"\0\1\xff") == (WORDS[0], WORDS[1], WORDS[255])


def test_words_are_short_and_of_plain_letters() -> None:
    assert all(word.isalpha() and word.islower() and 3 <= len(word) <= 9 for word in WORDS)
