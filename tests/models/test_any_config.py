"""What any config.json is read by: class defaults, tying, bounds, contexts, the index beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import Scenario, plan
from planner.models import ConfigError, describe, get_model, list_models
from planner.models.attention import Attention
from planner.models.huggingface import import_config, import_file
from planner.models.spec import ModelSpec
from tests.models.configs import LLAMA_PARAMS, llama


def notes(spec: ModelSpec, code: str) -> str:
    return " ".join(note.text for note in spec.notes if note.code == code)


def mixtral(**changes: Any) -> dict[str, Any]:
    return llama(model_type="mixtral", **changes)


def test_experts_that_a_file_leaves_out_are_those_of_the_class() -> None:
    """Mixtral's class has 8 experts, 2 a token; transformers 5.24.0 and earlier."""
    spec = import_config(mixtral())
    stated = import_config(mixtral(num_local_experts=8, num_experts_per_tok=2))
    assert spec.total_params == stated.total_params
    assert spec.active_params == stated.active_params
    assert "num_local_experts 8" in notes(spec, "class_defaults")
    assert not notes(stated, "class_defaults")


def test_heads_need_not_divide_the_width_of_a_class_that_rounds() -> None:
    """Glm4MoeConfig has no head_dim, and its attention takes 5120 // 96 then, though 96 heads do
    not divide 5120."""
    config = llama(
        model_type="glm4_moe",
        hidden_size=5120,
        num_attention_heads=96,
        moe_intermediate_size=1536,
        n_routed_experts=160,
        num_experts_per_tok=8,
        n_shared_experts=1,
        first_k_dense_replace=3,
    )
    stated = import_config({**config, "head_dim": 53})
    assert import_config(config).total_params == stated.total_params


@pytest.mark.parametrize(
    ("outer", "inner", "tied"),
    [(True, False, True), (False, True, False), (None, True, True), (None, False, False)],
)
def test_the_outer_config_says_whether_embeddings_are_tied(
    outer: bool | None, inner: bool, tied: bool
) -> None:
    inside = llama(tie_word_embeddings=inner)
    config: dict[str, Any] = {"model_type": "llava", "text_config": inside}
    if outer is not None:
        config["tie_word_embeddings"] = outer
    saved = 128256 * 4096 if tied else 0
    assert import_config(config).total_params == LLAMA_PARAMS - saved


def test_an_unknown_type_of_known_fields_is_bounded() -> None:
    spec = import_config(llama(model_type="acme", tie_word_embeddings=None))
    assert spec.params_range is not None
    least, most = spec.params_range
    assert least <= LLAMA_PARAMS - 128256 * 4096 < LLAMA_PARAMS <= most
    assert notes(spec, spec.notes[0].code)


def test_an_unknown_type_slides_as_it_says() -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    spec = import_config(llama(model_type="acme", layer_types=kinds, sliding_window=512))
    assert spec.kv_elements_per_token == 16 * 2 * 8 * 128
    assert spec.window_elements == 16 * 2 * 8 * 128 * 512


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ssm_state_size", 128),
        ("linear_num_value_heads", 32),
        ("layer_types", ["convolution"] * 32),
        ("engram_layers", [2]),
        ("is_encoder_decoder", True),
    ],
)
def test_an_unknown_type_of_unread_structure_is_refused_by_the_field(
    field: str, value: object
) -> None:
    with pytest.raises(ConfigError, match=field):
        import_config(llama(model_type="acme", **{field: value}))


def test_what_makes_speech_of_text_is_named_and_not_counted() -> None:
    config = {
        "model_type": "qwen2_5_omni",
        "thinker_config": {"text_config": llama(model_type="qwen2_5_omni_text")},
        "talker_config": {"model_type": "qwen2_5_omni_talker", "hidden_size": 896},
    }
    spec = import_config(config)
    assert "talker_config" in notes(spec, "parts_left_out")


def test_the_longest_context_wins() -> None:
    config = llama(max_position_embeddings=8192, model_max_length=131072)
    assert import_config(config).max_context == 131072
    assert import_config(llama(model_max_length=4096)).max_context == 131072
    assert get_model("CohereLabs/c4ai-command-r-v01").max_context == 131072


@pytest.mark.parametrize("window", [512, 4096, 100_000])
def test_a_window_that_no_context_fills_still_says_which_layers_are_small(window: int) -> None:
    """Gemma 4: sliding layers have heads of 256, full ones of 512, whatever the window's size; a
    window as long as the context is none to the cache."""
    kinds = ["sliding_attention", "full_attention"]
    config = llama(
        model_type="gemma4_text",
        num_hidden_layers=2,
        layer_types=kinds,
        sliding_window=window,
        max_position_embeddings=4096,
        head_dim=256,
        global_head_dim=512,
    )
    spec = import_config(config)
    mixers = [part for g in spec.groups for part in g.block.mixers]
    widths = sorted(part.head_dim for part in mixers if isinstance(part, Attention))
    assert widths == [256, 512]
    assert spec.window_elements == (2 * 8 * 256 * window if window < 4096 else 0)
    assert spec.kv_elements_per_token == 2 * 8 * (512 + (256 if window >= 4096 else 0))


@pytest.mark.parametrize(
    ("model_type", "outer", "tied"),
    [("voxtral", True, False), ("blip-2", True, False), ("muse_glimmer", True, True)],
)
def test_classes_that_tie_nothing_ignore_who_says_so(
    model_type: str, outer: bool, tied: bool
) -> None:
    """transformers 5.24.0: Voxtral's class names no weights to tie; BLIP-2's language model is
    whole, and ties by its own config."""
    inner = llama(tie_word_embeddings=False)
    config = {"model_type": model_type, "text_config": inner, "tie_word_embeddings": outer}
    spec = import_config(config)
    assert spec.tied_embeddings == tied


def folder(tmp_path: Path, total_size: int) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(llama()))
    index = {"metadata": {"total_size": total_size}, "weight_map": {}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


def test_the_bytes_of_an_index_are_true(tmp_path: Path) -> None:
    spec = import_file(folder(tmp_path, 2 * LLAMA_PARAMS))
    assert spec.weights_bytes() == 2 * LLAMA_PARAMS
    assert not spec.notes
    more = import_file(folder(tmp_path, 17_000_000_000))
    assert more.weights_bytes() == 17_000_000_000
    assert more.total_params == LLAMA_PARAMS
    assert "17,000,000,000" in " ".join(note.text for note in more.notes)


def test_other_files_are_named_for_what_they_are(tmp_path: Path) -> None:
    for config, words in (
        ({"peft_type": "LORA"}, "adapter"),
        ({"dim": 4096, "n_layers": 32, "vocab_size": 32000}, "params.json"),
        ({"_class_name": "FluxPipeline"}, "diffusers"),
        ({"metadata": {}, "weight_map": {}}, "index of safetensors"),
        ({"producer": {}, "quantization": {"quant_algo": "FP8"}}, "hf_quant_config.json"),
        ({"model_type": "t5"}, "encoder with a decoder"),
        ({"model_type": "bert"}, "encoder"),
        (llama(architectures=["LlamaForSequenceClassification"]), "classifies"),
    ):
        path = tmp_path / "x.json"
        path.write_text(json.dumps(config))
        with pytest.raises(ConfigError, match=words):
            import_file(path)


@pytest.mark.parametrize(
    ("model", "bytes_"),
    [
        # 48 layers of 48 x 128 x 128 values and 4 inputs of 10,240 channels, 4 bytes each.
        ("Qwen/Qwen3.6-27B", 4 * 48 * (48 * 128 * 128 + 4 * 10240)),
        # As above with 36 layers of 32 value heads, in 2 bytes: its file states no format.
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 2 * 36 * (32 * 128 * 128 + 4 * 8192)),
    ],
)
def test_state_bytes_shown_are_those_of_a_plan(model: str, bytes_: int) -> None:
    memory = plan(Scenario(model=model, gpu="h200-sxm", tp=4, batch=[1], context=[100])).memory
    assert memory.state_bytes_per_sequence == bytes_
    assert describe(get_model(model))["state_bytes_per_sequence"] == bytes_


def test_recalled_models_say_so() -> None:
    unchecked = [spec.id for spec in list_models() if spec.unchecked]
    assert "inclusionAI/Ling-flash-2.0" in unchecked
    assert len(unchecked) < 10
    for name in unchecked:
        shown = describe(get_model(name))
        assert not shown["checked"]
        assert any(note["code"] == "unchecked_source" for note in shown["notes"])
