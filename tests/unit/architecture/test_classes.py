"""What the classes of a type have on top, by transformers 5.24.0 on the meta device."""

from __future__ import annotations

from typing import Any

import pytest

from engine.architecture.read import specify
from engine.architecture.spec import Direction, ModuleClass, Subject

BARE = {
    ("blt", "BltModel"): 4_632_861_440,
    ("dia", "DiaModel"): 1_592_212_480,
    ("dory", "DoryModel"): 3_639_554_048,
    ("kyutai_speech_to_text", "KyutaiSpeechToTextModel"): 2_608_928_768,
    ("udop", "UdopModel"): 742_441_984,
}
CLASSIFYING = {
    ("t5gemma", "T5GemmaForSequenceClassification"): 5_596_865_285,
    ("t5gemma2", "T5Gemma2ForSequenceClassification"): 4_747_857_925,
}


@pytest.mark.parametrize(("named", "wanted"), BARE.items())
def test_that_a_bare_class_has_nothing_on_top(named: tuple[str, str], wanted: int) -> None:
    spec = specify({"model_type": named[0], "architectures": [named[1]]})
    assert spec.parameters == wanted
    assert spec.direction(Subject.WEIGHTS) is None


@pytest.mark.parametrize(
    ("model_type", "name", "is_headed"),
    [
        ("ovis2", "Ovis2Model", False),
        ("kosmos-2.5", "Kosmos2_5Model", False),
        # Its language model is one with a head, in any of its classes that have one.
        ("blip-2", "Blip2Model", True),
    ],
)
def test_that_an_untied_head_is_that_of_a_class_that_has_one(
    model_type: str, name: str, is_headed: bool
) -> None:
    tie = {"tie_word_embeddings": False}
    config = {"model_type": model_type, "architectures": [name], "text_config": tie, **tie}
    head = specify(config).parameters_by_class().get(ModuleClass.LM_HEAD, 0)
    assert (head > 0) is is_headed


@pytest.mark.parametrize(("named", "wanted"), CLASSIFYING.items())
def test_that_a_classifying_head_has_the_bias_that_its_class_gives_it(
    named: tuple[str, str], wanted: int
) -> None:
    config = {"model_type": named[0], "architectures": [named[1]], "num_labels": 5}
    spec = specify(config)
    assert spec.parameters == wanted
    assert spec.direction(Subject.WEIGHTS) is None


@pytest.mark.parametrize(
    ("model_type", "name", "truth"),
    [
        ("colqwen2", "ColQwen2ForRetrieval", 72_137_303_168),
        ("xlm", "XLMForMultipleChoice", 667_092_997),
        ("xlm", "XLMForQuestionAnsweringSimple", 667_092_994),
        ("blip", "BlipForQuestionAnswering", 361_230_140),
        ("blip", "BlipForImageTextRetrieval", 223_744_258),
        ("blip", "BlipModel", 224_726_017),
    ],
)
def test_that_a_class_with_other_parts_is_bounded_on_its_true_side(
    model_type: str, name: str, truth: int
) -> None:
    spec = specify({"model_type": model_type, "architectures": [name]})
    way = spec.direction(Subject.WEIGHTS)
    assert way is Direction.EITHER or (way is Direction.LOWER and spec.parameters <= truth)


@pytest.mark.parametrize("kind", ["llama", "128", ""])
def test_that_a_decoder_beside_an_encoder_that_nobody_knows_is_bounded(kind: str) -> None:
    config: dict[str, Any] = {
        "model_type": "cohere_asr",
        "architectures": ["CohereAsrForConditionalGeneration"],
        "encoder_config": {"model_type": kind},
    }
    spec = specify(config)
    if kind:
        for subject in (Subject.WEIGHTS, Subject.SEQUENCE_STATE):
            assert spec.direction(subject) is Direction.EITHER
    else:
        # An empty word states no type: it is Parakeet's, by the class's default.
        assert spec.parameters == 2_065_647_872
