"""Fields that trip parsers, one case each; sizes are checked in test_truth."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.models import ModelSpec, get_model
from planner.models.huggingface import import_config
from tests.models.configs import deepseek, llama


def windows(spec: ModelSpec) -> list[float]:
    return [
        cache.window
        for group in spec.groups
        for _ in range(group.count)
        for part in group.block.parts
        for cache in part.caches()
    ]


FALCON = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "num_kv_heads": 71,
    "vocab_size": 65024,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("new", "multi_query", "heads"), [(False, True, 1), (False, False, 71), (True, True, 71)]
)
def test_falcon_kv_heads(new: bool, multi_query: bool, heads: int) -> None:
    spec = import_config({**FALCON, "new_decoder_architecture": new, "multi_query": multi_query})
    assert spec.kv_elements_per_token == 32 * 2 * 64 * heads


def test_falcon_7b_caches_8192_bytes_a_token() -> None:
    """Expected figure of kaito's preset generator test, and vLLM's ground truth of one head."""
    assert 2 * get_model("tiiuae/falcon-7b").kv_elements_per_token == 8192


@pytest.mark.parametrize("model_type", ["qwen2", "qwen3"])
def test_qwen_window_counts_only_when_switched_on(model_type: str) -> None:
    config = llama(model_type=model_type, sliding_window=4096, max_window_layers=20)
    assert set(windows(import_config({**config, "use_sliding_window": False}))) == {math.inf}
    on = windows(import_config({**config, "use_sliding_window": True}))
    assert (on.count(math.inf), on.count(4096)) == (20, 12)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({}, 4096),
        ({"sliding_window": None}, math.inf),
        ({"sliding_window": 1024}, 1024),
        ({"sliding_window": 131072}, math.inf),
    ],
)
def test_mistral_missing_window_is_not_null(fields: dict[str, Any], window: float) -> None:
    config = {**llama(model_type="mistral"), **fields}
    assert set(windows(import_config(config))) == {window}


def test_mistral_missing_kv_heads_are_eight() -> None:
    config = {**llama(model_type="mistral", num_key_value_heads=None), "sliding_window": None}
    assert import_config(config).kv_elements_per_token == 32 * 2 * 8 * 128
    config["model_type"] = "llama"
    assert import_config(config).kv_elements_per_token == 32 * 2 * 32 * 128


@pytest.mark.parametrize(
    ("model", "full", "sliding", "window"),
    [
        ("google/gemma-2-9b-it", 21, 21, 4096),
        ("google/gemma-3-27b-it", 10, 52, 1024),
        ("google/gemma-3-1b-it", 4, 22, 512),
        ("openai/gpt-oss-120b", 18, 18, 128),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 16, 48, 4096),
        ("CohereLabs/c4ai-command-a-03-2025", 16, 48, 4096),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 12, 36, 8192),
    ],
)
def test_alternating_windows(model: str, full: int, sliding: int, window: float) -> None:
    sizes = windows(get_model(model))
    assert (sizes.count(math.inf), sizes.count(window)) == (full, sliding)


@pytest.mark.parametrize(
    ("pattern", "full"), [("LLLG", 8), ("LG", 16), (4, 8), (1, 32), (64, 0), (None, 8)]
)
def test_window_patterns_in_words_and_numbers(pattern: object, full: int) -> None:
    config = llama(model_type="exaone4", sliding_window_pattern=pattern, sliding_window=4096)
    assert windows(import_config(config)).count(math.inf) == full


def test_query_latent_null_differs_from_missing() -> None:
    none = import_config(deepseek(q_lora_rank=None))
    missing = deepseek()
    del missing["q_lora_rank"]
    assert (
        import_config(missing).total_params
        == import_config(deepseek(q_lora_rank=1536)).total_params
    )
    direct, latent = 1024 * 16 * 192, 1024 * 1536 + 1536 + 1536 * 16 * 192
    assert import_config(missing).total_params - none.total_params == 8 * (latent - direct)


def test_latent_cache_ignores_heads() -> None:
    """70272 bytes a token: transformers' cache object, engine logs and kaito agree."""
    for model in ("deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2-Instruct"):
        assert 2 * get_model(model).kv_elements_per_token == 70272


def test_shared_keys_between_layers() -> None:
    large = get_model("tencent/Tencent-Hunyuan-Large--Hunyuan-A50B-Pretrain")
    assert len(windows(large)) == 32
    assert len(windows(get_model("tencent/Hunyuan-A13B-Instruct"))) == 32
    assert large.layers == 64


def test_cross_attention_caches_no_text() -> None:
    assert len(windows(get_model("meta-llama/Llama-3.2-90B-Vision-Instruct"))) == 80


def test_tying_defaults_by_class() -> None:
    untied = llama(tie_word_embeddings=None)
    assert not import_config(untied).tied_embeddings
    assert import_config({**untied, "model_type": "smollm3"}).tied_embeddings
    assert import_config({**untied, "model_type": "cohere"}).tied_embeddings


def test_prediction_layers_are_apart() -> None:
    """One layer of 210790400 parameters is what MiMo's weights hold beyond the network."""
    assert get_model("XiaomiMiMo/MiMo-7B-Base").mtp_params == 210_790_400


def test_lists_that_say_one_number() -> None:
    spec = get_model("tencent/Hunyuan-A13B-Instruct")
    experts = [part.routed() for g in spec.groups for part in g.block.mlps]
    assert {(e.experts, e.top_k) if e else None for e in experts} == {(64, 8), None}
