from __future__ import annotations

from engine.source import catalogue


def test_that_names_are_found_with_and_without_their_owner() -> None:
    whole = catalogue.find("meta-llama/Llama-3.1-8B")
    assert whole is not None
    assert catalogue.find("llama-3.1-8b") is whole
    assert catalogue.find(" META-LLAMA/LLAMA-3.1-8B ") is whole
    assert catalogue.find("llama-3.1-8") is None
    assert whole.parameters == 8_030_261_248
    assert whole.gated is True
    assert (whole.organisation, whole.name) == ("meta-llama", "Llama-3.1-8B")


def test_that_ids_are_unique_and_the_most_wanted_come_first() -> None:
    entries = catalogue.entries()
    assert len({entry.id.lower() for entry in entries}) == len(entries)
    downloads = [entry.downloads or 0 for entry in entries]
    assert downloads == sorted(downloads, reverse=True)


def test_that_an_entry_is_delivered_as_a_source_delivers_it() -> None:
    entry = catalogue.find("openai/gpt-oss-20b")
    assert entry is not None
    raw = catalogue.raw(entry)
    assert raw is catalogue.raw(entry)
    assert raw.source == "bundled catalogue"
    assert raw.config is not None
    assert raw.config["num_local_experts"] == 32
    assert sum((raw.parameters_by_class or {}).values()) == entry.parameters


def test_that_an_entry_holds_facts_and_no_raw_config() -> None:
    noise = {"auto_map", "transformers_version", "bos_token_id", "rms_norm_eps", "_name_or_path"}
    for entry in catalogue.entries():
        assert not noise & set(entry.config), entry.id


def test_that_folding_loses_nothing() -> None:
    value = {"layer_types": ["s"] * 5 + ["f"], "short": [1, 2], "deep": {"x": [0] * 9}}
    folded = catalogue.fold(value)
    assert folded["layer_types"] == {"runs": [["s", 5], ["f", 1]]}
    assert folded["short"] == [1, 2]
    assert catalogue.unfold(folded) == value


def test_that_names_of_layers_are_written_out() -> None:
    folded = ["lm_head", {"each": "layers.#.mlp", "over": [[0, 1], [3, 3]]}]
    assert catalogue.unfold(folded) == ["lm_head", "layers.0.mlp", "layers.1.mlp", "layers.3.mlp"]
    by_name = {"by_name": [[{"each": "layers.#", "over": [[0, 1]]}, {"a": 1}]]}
    assert catalogue.unfold(by_name) == {"layers.0": {"a": 1}, "layers.1": {"a": 1}}


def test_that_spaces_stand_for_dashes() -> None:
    assert catalogue.find("GLM-5  FP8") is catalogue.find("zai-org/GLM-5-FP8")
    assert catalogue.find("llama 3.2 1b instruct") is not None
    assert catalogue.find("llama 3.2 1b instruct no") is None


def test_that_a_mirrors_copy_is_found_by_its_name_and_says_that_only_the_name_was_compared() -> (
    None
):
    found = catalogue.mirrored(" unsloth/Llama-3.2-3B-Instruct ")
    original = catalogue.find("meta-llama/Llama-3.2-3B-Instruct")
    assert found is not None
    assert original is not None
    assert found.id == "unsloth/Llama-3.2-3B-Instruct"
    assert found.config == catalogue.raw(original).config
    assert found.source == (
        "catalogue entry of meta-llama/Llama-3.2-3B-Instruct; same name, not checked"
    )
    # Others give their own models old names; a suffix makes another model.
    assert catalogue.mirrored("someone/Llama-3.2-3B-Instruct") is None
    assert catalogue.mirrored("unsloth/Llama-3.2-3B-Instruct-bnb-4bit") is None
    assert catalogue.mirrored("Llama-3.2-3B-Instruct") is None
    assert catalogue.mirrored("unsloth/") is None
    assert catalogue.mirrored("unsloth/meta-llama/Llama-3.2-3B-Instruct") is None
