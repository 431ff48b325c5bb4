"""What a config may leave out, what is refused, and how: one line that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.models import ConfigError, get_model
from planner.models.files import LARGEST_FILE
from planner.models.huggingface import import_config, import_file, read_config
from tests.models.configs import LLAMA, LLAMA_PARAMS, deepseek, llama


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_attention_heads": None}, "num_attention_heads"),
        ({"vocab_size": None}, "vocab_size"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"hidden_size": float("inf")}, "hidden_size"),
        ({"hidden_size": 4096.5}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": 10**18}, "hidden_size"),
        ({"hidden_size": 4097}, "not a multiple of 32 attention heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"num_key_value_heads": 7}, "7 does not divide 32 attention heads"),
        ({"num_key_value_heads": 0}, "num_key_value_heads"),
        ({"vocab_size": [1, 2]}, "vocab_size"),
        ({"max_position_embeddings": -5}, "max_position_embeddings"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"model_type": 3}, "model_type"),
        ({"quantization_config": "fp8"}, "quantization_config"),
    ],
)
def test_refuses(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        import_config(llama(**changes))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_experts_per_tok": 17}, "17 of 16 experts"),
        ({"kv_lora_rank": -512}, "kv_lora_rank"),
        ({"n_routed_experts": 10**9}, "n_routed_experts"),
        ({"mlp_layer_types": ["dense"]}, "mlp_layer_types: 1 entries for 8 layers"),
    ],
)
def test_refuses_experts_and_latents(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        import_config(deepseek(**changes))


def test_refuses_what_is_not_an_object() -> None:
    with pytest.raises(ConfigError, match="expected a JSON object"):
        import_config([1])


def test_missing_dtype_is_bf16_with_a_note() -> None:
    spec = import_config(llama(torch_dtype=None))
    assert spec.dtype == "bf16"
    assert [note.code for note in spec.notes] == ["assumed_dtype"]
    assert import_config(llama(torch_dtype=None, dtype="float16")).dtype == "fp16"


def test_unknown_model_type_is_a_plain_decoder_with_a_note() -> None:
    spec = import_config(llama(model_type="brandnew"))
    assert spec.total_params == LLAMA_PARAMS
    assert [note.code for note in spec.notes] == ["assumed_architecture"]
    assert "brandnew" in spec.notes[0].text
    assert import_config(llama(model_type=None)).model_type == "unknown"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"layer_types": ["full_attention", "linear_attention"] * 16}, "layer_types"),
        ({"mamba_d_state": 128}, "mamba_d_state"),
        ({"ssm": {"a": [1]}}, "ssm"),
        ({"layer_types": ["full_attention"] * 2}, "layer_types"),
        ({"num_memory_slots": 64}, "num_memory_slots"),
        ({"kv_shared_layers": 4}, "kv_shared_layers"),
        ({"expert_hidden_dim": 4096}, "expert_hidden_dim"),
    ],
)
def test_unknown_model_type_is_refused_by_what_it_does_not_read(
    fields: dict[str, object], named: str
) -> None:
    with pytest.raises(ConfigError, match=f"{named}.*brandnew") as refusal:
        import_config(llama(model_type="brandnew", **fields))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"layer_types": ["full_attention"] * 32},
        {"sliding_window": 4096, "use_sliding_window": False},
        {"sliding_window": None, "output_hidden_states": False},
    ],
)
def test_unknown_model_type_ignores_what_says_nothing(fields: dict[str, object]) -> None:
    spec = import_config(llama(model_type="brandnew", **fields))
    assert [note.code for note in spec.notes] == ["assumed_architecture"]
    assert spec.window_elements == 0


def test_unknown_model_type_reads_a_pattern_of_windows() -> None:
    spec = import_config(
        llama(model_type="brandnew", sliding_window=1024, sliding_window_pattern=4)
    )
    assert spec.kv_elements_per_token == 8 * 2 * 8 * 128
    assert spec.window_elements == 24 * 2 * 8 * 128 * 1024


def test_unknown_model_type_keeps_all_where_a_window_has_no_pattern() -> None:
    spec = import_config(llama(model_type="brandnew", sliding_window=1024))
    assert {note.code for note in spec.notes} == {"assumed_architecture", "assumed_full_attention"}
    assert spec.kv_elements_per_token == 32 * 2 * 8 * 128


def test_unknown_model_type_is_bounded() -> None:
    """Below without gate, above with every bias and norm: Llama 3.1 8B lies between."""
    spec = import_config(llama(model_type="brandnew"))
    assert spec.total_params == LLAMA_PARAMS
    low, high = spec.params_range or (0, 0)
    # One of three matrices of the MLP, in 32 layers, and 65 norms of 4096.
    assert low == LLAMA_PARAMS - 32 * 4096 * 14336 - 65 * 4096
    assert LLAMA_PARAMS < high < 1.3 * LLAMA_PARAMS


def test_unknown_model_type_keeps_latents_and_experts() -> None:
    known, unknown = import_config(deepseek()), import_config(deepseek(model_type="deeper"))
    assert unknown.kv_elements_per_token == known.kv_elements_per_token == 8 * 576
    assert unknown.routed_params == known.routed_params
    assert "MLA" in unknown.notes[0].text
    assert "mixture" in unknown.notes[0].text


def test_unknown_model_type_without_sizes_names_both() -> None:
    with pytest.raises(ConfigError, match=r"num_attention_heads.*model_type 'brandnew' is unknown"):
        import_config({"model_type": "brandnew", "hidden_size": 64, "num_hidden_layers": 2})


def test_nested_config_with_fields_left_outside() -> None:
    inner = llama(tie_word_embeddings=None, torch_dtype=None)
    outer = {
        "model_type": "some_vlm",
        "tie_word_embeddings": True,
        "dtype": "float16",
        "text_config": inner,
        "quantization_config": {"quant_method": "fp8"},
    }
    spec, used = read_config(outer, "a/b", "here")
    assert (spec.id, spec.model_type, spec.source) == ("a/b", "some_vlm", "here")
    assert (spec.tied_embeddings, spec.dtype, spec.quantization.id) == (True, "fp16", "fp8")
    assert used["text_config"]["hidden_size"] == 4096
    assert import_config(used).total_params == spec.total_params


def test_used_fields_are_the_architecture_only() -> None:
    _, used = read_config({**LLAMA, "rope_theta": 5e5, "architectures": ["LlamaForCausalLM"]})
    assert "rope_theta" not in used
    assert "architectures" not in used
    assert used["num_key_value_heads"] == 8


def written(folder: Path, text: str, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ('{"hidden_size": 4096', "not valid JSON"),
        ('{"hidden_size": NaN}', "NaN is not JSON"),
        ('{"hidden_size": -Infinity}', "Infinity is not JSON"),
        ("[1, 2]", "expected a JSON object, got list"),
        ("{}", "hidden_size"),
        ('{"hidden_size": 1' + "0" * 5000 + "}", "not valid JSON"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    ],
)
def test_refuses_files(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    for named in (path, tmp_path):
        with pytest.raises(ConfigError) as caught:
            get_model(str(named))
        assert words in str(caught.value)
        assert str(named) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_refuses_large_missing_and_binary_files(tmp_path: Path) -> None:
    large = written(tmp_path, " " * (LARGEST_FILE + 1), "large.json")
    with pytest.raises(ConfigError, match="a config has at most"):
        import_file(large)
    with pytest.raises(ConfigError, match=r"config\.json: No such file"):
        import_file(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ConfigError, match=r"binary\.json: not valid JSON"):
        import_file(binary)


def test_reads_any_name_and_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    written(folder, json.dumps(LLAMA))
    assert get_model(str(folder)).id == "my-model"
    other = written(tmp_path, json.dumps(LLAMA), "other.JSON")
    assert get_model(str(other)).id == "other"
    assert get_model(str(other)).total_params == LLAMA_PARAMS


def test_hf_quant_config_beside(tmp_path: Path) -> None:
    stored = {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": "FP8",
        "group_size": 16,
        "exclude_modules": ["lm_head"],
    }
    written(tmp_path, json.dumps(LLAMA))
    written(tmp_path, json.dumps({"producer": {}, "quantization": stored}), "hf_quant_config.json")
    spec = import_file(tmp_path)
    assert (spec.quantization.id, spec.quantization.kv) == ("nvfp4", "fp8")


def test_text_config_of_differences_from_its_class() -> None:
    """LLaVA 1.5 states its Llama by name and vocabulary only."""
    inner = {"model_type": "llama", "vocab_size": 32064, "torch_dtype": "float16"}
    spec = import_config({"model_type": "llava", "text_config": inner})
    assert spec.total_params == 6_738_415_616 + 2 * 64 * 4096
    with pytest.raises(ConfigError, match="hidden_size"):
        import_config(inner)


def test_text_config_two_levels_down() -> None:
    inner = {
        **llama(),
        "model_type": "qwen3_omni_moe_text",
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 768,
    }
    config = {"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": inner}}
    spec, used = read_config(config)
    assert (spec.kind, spec.hidden) == ("moe", 4096)
    assert import_config(used).total_params == spec.total_params
