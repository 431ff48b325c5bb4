"""quantization_config in each dialect: formats by role, cache, stored bytes."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models import ConfigError, ModelSpec, get_model
from planner.models.huggingface import import_config
from planner.models.modules import Modules
from tests.models.configs import deepseek, llama

GIB = 2**30


def stored(config: dict[str, Any], **changes: Any) -> ModelSpec:
    return import_config(llama(**changes, quantization_config=config))


def formats(spec: ModelSpec) -> dict[str, str]:
    return {role: fmt.id for role, fmt in spec.formats().weights.items()}


def group(
    bits: int,
    kind: str,
    size: int | None = None,
    active: bool = True,
    targets: list[str] | None = None,
    **weights: Any,
) -> dict[str, Any]:
    return {
        "targets": targets or ["Linear"],
        "weights": {"num_bits": bits, "type": kind, "group_size": size, **weights},
        "input_activations": {"num_bits": bits, "type": kind} if active else None,
    }


def compressed(*groups: dict[str, Any], **fields: Any) -> dict[str, Any]:
    named = {f"group_{index}": entry for index, entry in enumerate(groups)}
    return {
        "quant_method": "compressed-tensors",
        "config_groups": named,
        "ignore": ["lm_head"],
        **fields,
    }


@pytest.mark.parametrize(
    ("config", "label", "linear", "bits"),
    [
        ({"quant_method": "fp8"}, "fp8", "fp8", 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", "fp8_block", 8.002),
        ({"quant_method": "fbgemm_fp8"}, "fbgemm_fp8", "fp8", 8),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
            "awq",
            "awq",
            4.156,
        ),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True},
            "gptq",
            "gptq",
            4.156,
        ),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "gptq", "8.1875bit", 8.1875),
        (
            {"quant_method": "intel/auto-round", "bits": 4, "group_size": 128},
            "intel/auto-round",
            "gptq",
            4.156,
        ),
        ({"quant_method": "exl2", "bits": 3.5}, "exl2", "3.5bit", 3.5),
        (
            {
                "quant_method": "hqq",
                "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}},
            },
            "hqq",
            "4.5bit",
            4.5,
        ),
        ({"bits": 3, "group_size": 32}, "mlx", "4bit", 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes", "8bit", 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes", "4.5bit", 4.5),
        ({"quant_method": "bitnet"}, "bitnet", "ternary", 2),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}},
            "fp8",
            "fp8",
            8,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", "nvfp4", 4.5),
        ({"quant_algo": "FP8"}, "fp8", "fp8", 8),
        (compressed(group(8, "float")), "fp8", "fp8", 8),
        (compressed(group(8, "float", active=False)), "fp8", "fp8_weight", 8),
        (compressed(group(8, "int")), "int8", "int8", 8),
        (compressed(group(8, "int", active=False)), "8bit", "8bit", 8),
        (compressed(group(4, "int", 128, active=False)), "int4_g128", "int4_g128", 4.125),
        (compressed(group(4, "int", 32, active=False)), "int4", "int4", 4.5),
        (compressed(group(4, "float", 16)), "nvfp4", "nvfp4", 4.5),
        (compressed(group(4, "float", 16, active=False)), "nvfp4_weight", "nvfp4_weight", 4.5),
        (
            compressed(group(4, "float", 32), format="mxfp4-pack-quantized"),
            "mxfp4_w4a4",
            "mxfp4_w4a4",
            4.25,
        ),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {
                    "weight": {"dtype": "fp4"},
                    "input_tensors": {"dtype": "fp4"},
                },
            },
            "mxfp4_w4a4",
            "mxfp4_w4a4",
            4.25,
        ),
        (
            compressed(group(4, "float", 32, active=False), format="mxfp4-pack-quantized"),
            "mxfp4",
            "mxfp4",
            4.25,
        ),
    ],
)
def test_dialects(config: dict[str, Any], label: str, linear: str, bits: float) -> None:
    spec = stored(config)
    assert spec.quantization.id == label
    weights = spec.formats().weights
    for role in ("attention", "mlp"):
        assert weights[role].id == linear
        assert weights[role].bits == pytest.approx(bits, rel=1e-3)
    embeddings = "4bit" if label == "mlx" else "bf16"
    assert (weights["embedding"].id, weights["router"].id) == (embeddings, "bf16")


def test_heads_stay_in_16_bits_unless_named() -> None:
    assert formats(stored({"quant_method": "fp8"}))["head"] == "bf16"
    assert formats(stored({"quant_method": "exl2", "bits": 4.0, "head_bits": 8}))["head"] == "8bit"
    assert formats(stored({"bits": 4, "group_size": 64}))["head"] == "4.5bit"


@pytest.mark.parametrize(
    ("fields", "kv"),
    [
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": "static"}, "fp8"),
        ({"kv_cache_scheme": "FP8"}, "fp8"),
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_scheme": None}, "bf16"),
        ({}, "bf16"),
    ],
)
def test_cache_formats(fields: dict[str, Any], kv: str) -> None:
    assert stored({"quant_method": "fp8", **fields}).formats().kv.id == kv


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        (["lm_head", "re:.*self_attn.*"], {"attention", "indexer"}),
        (["model.layers.*.self_attn", "lm_head"], {"attention", "indexer"}),
        ([f"model.layers.{i}.self_attn.o_proj" for i in range(8)], {"attention"}),
        (
            [f"model.language_model.layers.{i}.mlp.shared_experts*" for i in range(8)],
            {"shared_experts"},
        ),
        ([r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"], {"mlp"}),
        (["mlp.experts"], {"experts"}),
        (["model.layers.3.self_attn.q_proj", "gate", "e_score_correction_bias", "lm_head"], set()),
        (["model.layers.0.input_layernorm", "model.layers.2.mlp.gate"], set()),
        (["re:(unclosed"], set()),
    ],
)
def test_ignore_lists(ignored: list[str], left: set[str]) -> None:
    config = {"quant_method": "fp8", "modules_to_not_convert": ignored}
    spec = import_config(deepseek(num_hidden_layers=8, quantization_config=config))
    roles = ("attention", "mlp", "experts", "shared_experts", "indexer")
    assert {role for role in roles if formats(spec)[role] == "bf16"} == left


def test_groups_by_name() -> None:
    config = compressed(
        group(8, "float", targets=["re:.*self_attn.*", "re:.*shared_experts.*"]),
        group(4, "float", 16, targets=["re:.*mlp.experts.*"]),
    )
    names = formats(import_config(deepseek(quantization_config=config)))
    assert (names["attention"], names["experts"], names["mlp"]) == ("fp8", "nvfp4", "bf16")


def test_mixed_precision_by_layer_list() -> None:
    listed = {"self_attn.o_proj": "FP8", "mlp.experts": "NVFP4"}
    layers = {
        f"model.layers.{index}.{module}": {"quant_algo": algorithm}
        for index in range(8)
        for module, algorithm in listed.items()
    }
    config = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    spec = import_config(deepseek(quantization_config=config))
    assert (formats(spec)["attention"], formats(spec)["experts"]) == ("fp8", "nvfp4")
    assert spec.quantization.id == "nvfp4 (mixed)"


def test_experts_in_4_bits_beside_fp8() -> None:
    spec = import_config(deepseek(expert_dtype="fp4", quantization_config={"quant_method": "fp8"}))
    assert (formats(spec)["experts"], formats(spec)["attention"]) == ("mxfp4", "fp8")


def test_config_under_another_name() -> None:
    config = llama(compression_config=compressed(group(8, "int")))
    assert import_config(config).quantization.id == "int8"
    assert import_config(llama(quantization={"bits": 4, "group_size": 64})).quantization.id == "mlx"


def test_unknown_method_is_noted() -> None:
    spec = stored({"quant_method": "sorcery"})
    assert [note.code for note in spec.notes] == ["unknown_quantization"]
    assert formats(spec)["mlp"] == "bf16"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"quant_method": "awq"}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 400}, "quantization_config.bits"),
        ({"quant_method": "hqq"}, "weight_quant_params"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        ({"quant_method": "modelopt"}, "quant_algo"),
        ({"quant_method": "quark"}, "global_quant_config"),
    ],
)
def test_refuses(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        stored(config)


@pytest.mark.parametrize(
    ("model", "gib"),
    [
        ("openai/gpt-oss-120b", 60.8),  # model card: checkpoint size 60.8 GiB
        ("openai/gpt-oss-20b", 12.8),  # model card: checkpoint size 12.8 GiB
        ("microsoft/bitnet-b1.58-2B-4T", 1.10),  # packed weights of 1.18 GB
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 67.72),  # vLLM log, one GPU
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8", 67.72),  # vLLM log, one GPU
        ("RedHatAI/Qwen2.5-7B-Instruct-fp8-dynamic", 8.14),  # vLLM log, one GPU
        ("Qwen/Qwen1.5-MoE-A2.7B", 26.67),  # vLLM log, one GPU
        ("google/gemma-7b", 15.91),  # vLLM log, one GPU
        ("ibm-granite/granite-3.1-2b-instruct", 4.74),  # vLLM log, one GPU
    ],
)
def test_bytes_as_engines_load_them(model: str, gib: float) -> None:
    assert get_model(model).weights_bytes() / GIB == pytest.approx(gib, rel=0.01)


def test_modules_cover_what_is_below() -> None:
    modules = Modules(["model.layers.3.mlp", "lm_head", "*.gate", "re:.*attn.*"])
    assert modules.find("layers.3.mlp.up_proj") == "model.layers.3.mlp"
    assert modules.find("layers.4.mlp.up_proj") is None
    assert modules.find("layers.31.mlp.up_proj") is None
    assert modules.find("layers.4.mlp.gate") == "*.gate"
    assert modules.find("layers.4.mlp.gate_proj") is None
    assert modules.find("layers.4.self_attn.q_proj") == "re:.*attn.*"
