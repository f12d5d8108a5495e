"""``plimsoll verify``: a process of its own builds the model, and both counts are shown.

Torch is no part of this project: the talk with the other Python is tested against small programs
that answer as the real one does, and the whole against torch where a Python here has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import jsonschema
import pytest

import resources
from engine.architecture.read import read
from engine.architecture.spec import ModuleClass
from engine.cancel import CancelToken, JobCancelledError
from engine.errors import VerifyError
from engine.source.raw import RawModel
from engine.verify.interpreter import find
from engine.verify.meta import verify
from tests.helpers.other_python import TENSORS, answering, built, stand_in
from tests.unit.cli.conftest import LLAMA_8B, published


def test_that_equal_counts_are_shown_side_by_side(plimsoll, llama_8b, tmp_path):
    python = answering(tmp_path, built(TENSORS))
    ran = plimsoll("verify", llama_8b, "--python", python, "--json")
    assert ran.status == 0
    jsonschema.validate(ran.answer, published("verify"))
    assert ran.answer["agrees"] is True
    assert ran.answer["parameters"] == ran.answer["built_parameters"] == 8_030_261_248
    shown = plimsoll("verify", llama_8b, "--python", python)
    assert "Equal to the parameter." in shown.output
    assert "8,030,261,248" in shown.output


def test_that_a_difference_is_shown_by_class_and_by_the_exit_status(plimsoll, llama_8b, tmp_path):
    python = answering(tmp_path, built([*TENSORS, ["model.layers.0.mlp.extra.weight", [7]]]))
    ran = plimsoll("verify", llama_8b, "--python", python, "--json")
    assert ran.status == 1
    rows = {row["class"]: row for row in ran.answer["classes"]}
    assert rows["mlp"]["built_parameters"] - rows["mlp"]["parameters"] == 7
    assert "differ by 7 parameters" in plimsoll("verify", llama_8b, "--python", python).output


def test_that_classes_drawn_otherwise_are_explained(plimsoll, llama_8b, tmp_path):
    elsewhere = [[name.replace("lm_head", "model.layers.0.mlp.extra"), s] for name, s in TENSORS]
    ran = plimsoll("verify", llama_8b, "--python", answering(tmp_path, built(elsewhere)))
    assert ran.status == 0
    assert "Equal to the parameter. The class of what was built" in ran.output


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": "no_class", "named": "nanobot", "transformers": "5.24.0"}, "never run"),
        ({"error": "failed", "named": "ValueError: heads"}, "ValueError: heads."),
        ([], "gave no answer"),
    ],
)
def test_that_what_cannot_be_built_is_one_sentence(plimsoll, llama_8b, tmp_path, answer, said):
    ran = plimsoll("verify", llama_8b, "--python", answering(tmp_path, answer))
    assert ran.status == 2
    assert said in ran.complaint.splitlines()[-1]


def test_that_a_python_without_torch_is_named_with_the_way_to_get_it(plimsoll, llama_8b, tmp_path):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    ran = plimsoll("verify", llama_8b, "--python", bare)
    assert ran.status == 2
    assert "pip install torch transformers" in ran.complaint
    missing = plimsoll("verify", llama_8b, "--python", tmp_path / "nowhere")
    assert "is no program" in missing.complaint


def test_that_no_python_with_torch_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("engine.verify.interpreter.find_spec", lambda _name: None)
    with pytest.raises(VerifyError, match="pip install torch transformers"):
        find(CancelToken())


def test_that_a_model_without_a_config_is_refused(plimsoll, tmp_path):
    model = read(RawModel("x", "test", config=LLAMA_8B))
    bare = type(model)(model.id, None, "test", model.spec)
    with pytest.raises(VerifyError, match=r"no config\.json"):
        verify(bare, CancelToken())


def test_that_a_build_can_be_cancelled(tmp_path):
    model = read(RawModel("x", "test", config=LLAMA_8B))
    python = stand_in(tmp_path, "import time\ntime.sleep(600)")
    token = CancelToken()
    threading.Timer(0.3, token.cancel).start()
    with pytest.raises(JobCancelledError):
        verify(model, token, str(python))


def test_that_a_projector_of_sound_is_not_counted_as_vision(tmp_path):
    model = read(RawModel("x", "test", config={"model_type": "qwen2_audio"}))
    python = answering(tmp_path, built([["multi_modal_projector.linear.weight", [4096, 1280]]]))
    found = verify(model, CancelToken(), str(python))
    assert found.built == {ModuleClass.AUDIO: 4096 * 1280}


def test_that_the_look_for_torch_can_be_cancelled(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    token = CancelToken()
    threading.Timer(0.3, token.cancel).start()
    with pytest.raises(JobCancelledError):
        find(token, str(python))


def test_that_a_packaged_program_lends_no_libraries(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/bundle")
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/opt/lib")
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "sys.exit(os.environ['LD_LIBRARY_PATH'] != '/opt/lib')\n"
    )
    python.chmod(0o755)
    assert find(CancelToken(), str(python)) == str(python)


TORCH = """
import contextlib
__version__ = "2"
def device(name):
    return contextlib.nullcontext()
"""
TRANSFORMERS = """
class Config:
    model_type = "toy"
    @classmethod
    def from_dict(cls, given):
        made = cls()
        made.given = given
        return made
class Tensor:
    shape = (2, 3)
class ToyForCausalLM:
    config_class = Config
    def __init__(self, config):
        self.config = config
    def tie_weights(self):
        pass
    def named_parameters(self):
        print("talk on stdout is no part of the answer")
        return [(repr(self.config.given), Tensor())]
__version__ = "5"
"""


def test_that_the_script_leaves_out_what_would_ask_for_code(tmp_path):
    auto = tmp_path / "transformers" / "models" / "auto"
    auto.mkdir(parents=True)
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "transformers" / "__init__.py").write_text(TRANSFORMERS)
    (auto / "configuration_auto.py").write_text(
        "import transformers\nCONFIG_MAPPING = {'toy': transformers.Config}\n"
    )
    (auto / "modeling_auto.py").write_text("MODEL_MAPPING_NAMES = {'toy': 'ToyForCausalLM'}\n")
    remote = {"auto_map": {"AutoModel": "code.Model"}, "quantization_config": {"bits": 4}}
    config = {"model_type": "toy", **remote, "text_config": {"hidden_size": 8, **remote}}
    done = subprocess.run(
        [sys.executable, str(resources.path("scripts", "parameters_on_meta.py"))],
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    answer = json.loads(done.stdout)
    assert answer["class"] == "ToyForCausalLM"
    assert answer["tensors"] == [["{'text_config': {'hidden_size': 8}}", [2, 3]]]


def test_that_transformers_builds_what_we_count():
    try:
        python = find(CancelToken())
    except VerifyError:
        pytest.skip("no Python here has torch and transformers")
    gemma = {"model_type": "gemma3", "text_config": {"num_hidden_layers": 3}}
    for config in (LLAMA_8B, gemma):
        found = verify(read(RawModel("x", "test", config=config)), CancelToken(), python)
        assert found.agrees
        assert found.built == found.ours


def test_that_a_draft_is_not_held_against_another_class(plimsoll, tmp_path):
    stated = LLAMA_8B | {
        "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1,
        "draft_vocab_size": 32000,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(stated))
    ran = plimsoll("verify", tmp_path, "--python", answering(tmp_path, built(TENSORS)))
    assert ran.status == 2
    assert "is a draft model" in ran.complaint
