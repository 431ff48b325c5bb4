"""Configs in brief, read, and the kernels of their layers."""

from __future__ import annotations

from typing import Any

from planner.kernels import Kernel
from planner.models.huggingface import import_config
from planner.models.spec import ModelSpec, group_kernels

Config = dict[str, Any]


def read(**config: Any) -> ModelSpec:
    return import_config({"torch_dtype": "bfloat16", **config})


def kernels(spec: ModelSpec, name: str) -> list[tuple[int, Kernel]]:
    formats = spec.formats()
    return [
        (group.count, kernel)
        for group in spec.groups
        for kernel in group_kernels(group, formats)
        if kernel.name == name
    ]


GRANITE: Config = {
    "model_type": "granitemoehybrid",
    "vocab_size": 100352,
    "num_hidden_layers": 40,
    "layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)],
    "mamba_d_conv": 4,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_d_head": 64,
    "tie_word_embeddings": True,
}
NEMOTRON_H: Config = {
    "model_type": "nemotron_h",
    "vocab_size": 131072,
    "num_key_value_heads": 8,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "mamba_num_heads": 128,
}
QWEN35: Config = {
    "model_type": "qwen3_5_moe_text",
    "hidden_size": 3072,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 248320,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 64,
    "linear_value_head_dim": 128,
    "moe_intermediate_size": 1024,
    "shared_expert_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "mtp_num_hidden_layers": 1,
    "mamba_ssm_dtype": "float32",
    "tie_word_embeddings": False,
}
