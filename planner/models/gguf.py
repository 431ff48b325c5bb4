"""Importing a .gguf file: its header becomes a Hugging Face config that the families read.

One table says which `model_type` an architecture is and under which field a key is known; what
GGUF leaves out (ties, biases, kinds of layers, widths of shared experts) the tensors tell. The
quantisation mix is the parameter-weighted mean of the tensor types of each role.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.models.gguf_header import Header, Tensor, read_header
from planner.models.gguf_mix import BLOCK_NAME, read_mix, tensors_by_block
from planner.models.gguf_table import ARCHITECTURES, FIELDS
from planner.models.huggingface import import_config
from planner.models.reader import ConfigError
from planner.models.spec import ModelSpec, Note

_UNCOUNTED = re.compile(r"^(rope_|v\.|a\.|mm\.|resampler|blk\.\d+\.(nextn|attn_rot_embd))")
_LISTED_LAYERS = ("qwen3next", "qwen35", "qwen35moe")
"""Architectures whose config lists the kinds of its layers as `layer_types`."""
_EXPERTS = {
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_experts_per_tok",
}
"""Fields that a key of zero experts would set."""
_NO_EXPERTS = {"granitemoehybrid": {"num_local_experts": 0}, "jamba": {"num_experts": 1}}
"""How families whose default is a mixture say that there is none."""
_CLOSE = 0.005
"""Part by which the file's parameters may differ from the model's without a note [-]."""


def import_gguf(path: str | Path) -> ModelSpec:
    """Return the ModelSpec of a .gguf file, from its header alone.

    A file of a model split over several brings in those beside it. Raises ConfigError, in one line
    naming the file, when it is no GGUF file, is cut within the header, or lacks a size.
    """
    path = Path(path)
    header = read_header(path)
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise ConfigError(f"{path.name}: general.architecture: missing; not a language model")
    if "token_embd.weight" not in header.tensors and not header.missing:
        raise ConfigError(f"{path.name}: token_embd.weight: missing; not a language model")
    config = read_fields(header, architecture)
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", path.name.removesuffix(".gguf"))
    try:
        spec = import_config(config, stem, path.name, whole=True)
    except ConfigError as error:
        raise ConfigError(f"{path.name}: {error}") from None
    mtp = _mtp_layers(header, architecture)
    tensors = [t for t in header.tensors.values() if _counts(t, spec.layers if mtp else math.inf)]
    spec = replace(spec, quantization=read_mix(tensors, header, architecture))
    return replace(spec, notes=spec.notes + _doubts(spec, tensors, header))


def read_fields(header: Header, architecture: str) -> dict[str, Any]:
    """Return the config.json fields that the header's keys and tensors stand for."""
    model_type, special = ARCHITECTURES.get(architecture, (architecture, {}))
    names = {**FIELDS, **special}
    config: dict[str, Any] = {"torch_dtype": _own_type(header.tensors.values())}
    prefix = f"{architecture}."
    for key, value in header.metadata.items():
        field = names.get(key.removeprefix(prefix)) if key.startswith(prefix) else None
        for name in (field,) if isinstance(field, str) else field or ():
            config[name] = value
    if not header.metadata.get(f"{prefix}expert_count"):
        for name in _EXPERTS:
            config.pop(name, None)
        config.update(_NO_EXPERTS.get(model_type, {}))
    elif model_type == "llama":
        model_type = "mixtral"
    config["model_type"] = model_type
    _from_tensors(config, header, architecture)
    _from_arrays(config, header, architecture)
    _latent(config, header, prefix)
    _state_space(config, header.metadata, prefix)
    return config


def _own_type(tensors: Iterable[Tensor]) -> str:
    """The model's own type: bf16 if any tensor kept it, else what llama.cpp computes in."""
    return "bfloat16" if any(tensor.type == "bf16" for tensor in tensors) else "float16"


def _mtp_layers(header: Header, architecture: str) -> int:
    value = header.metadata.get(f"{architecture}.nextn_predict_layers")
    return value if isinstance(value, int) else 0


def _from_tensors(config: dict[str, Any], header: Header, architecture: str) -> None:
    """Add what only the tensors tell: vocabulary, ties, biases, widths, kinds of layers."""
    tensors = header.tensors
    names = {match[2] for name in tensors if (match := BLOCK_NAME.match(name))}
    table = tensors.get("token_embd.weight")
    if table is not None:
        config["vocab_size"] = table.shape[-1]
    if not header.missing:
        config["tie_word_embeddings"] = "output.weight" not in tensors
    for fields, markers in (
        (
            ("attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias"),
            {"attn_q.bias", "attn_qkv.bias"},
        ),
        (("mlp_bias",), {"ffn_up.bias"}),
        (("attention_out_bias",), {"attn_output.bias"}),
        (("use_qk_norm", "qk_layernorm"), {"attn_q_norm"}),
        (("moe_router_enable_expert_bias", "use_expert_bias"), {"exp_probs_b.bias", "exp_probs_b"}),
        (("mamba_rms_norm",), {"ssm_norm"}),
    ):
        config.update(dict.fromkeys(fields, bool(markers & names)))
    shared = _first(header, "ffn_up_shexp")
    if shared is not None:
        width = shared.shape[1]
        for field in (
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "shared_intermediate_size",
            "share_expert_dim",
        ):
            config[field] = width
    layers = int(config.get("num_hidden_layers") or 0) - _mtp_layers(header, architecture)
    if layers > 0:
        config["num_hidden_layers"] = layers
        _layer_kinds(config, header, architecture, layers)
    per_layer = tensors.get("per_layer_token_embd.weight")
    if per_layer is not None:
        config["vocab_size_per_layer_input"] = per_layer.shape[-1]


def _first(header: Header, name: str) -> Tensor | None:
    return next((block[name] for block in tensors_by_block(header).values() if name in block), None)


def _kind(block: Mapping[str, Tensor]) -> str:
    """Return what one block of a hybrid is, as Nemotron-H names it."""
    if any(name.startswith("ssm_") for name in block):
        return "mamba"
    if "shortconv.conv" in block:
        return "conv"
    if "attn_q" in block or "attn_qkv" in block or "attn_kv_a_mqa" in block:
        return "attention"
    return "moe" if "ffn_gate_inp" in block else "mlp"


def _layer_kinds(config: dict[str, Any], header: Header, architecture: str, layers: int) -> None:
    """Add the pattern of a hybrid's layers under the names its family reads."""
    blocks = tensors_by_block(header)
    if set(blocks) < set(range(layers)):
        return  # parts of a split file are missing
    kinds = [_kind(blocks[index]) for index in range(layers)]
    full = [index for index, kind in enumerate(kinds) if kind == "attention"]
    if architecture.startswith("nemotron_h"):
        config["layers_block_type"] = kinds
    elif architecture in _LISTED_LAYERS:
        words = {True: "full_attention", False: "linear_attention"}
        config["layer_types"] = [words[kind == "attention"] for kind in kinds]
    elif architecture == "kimi-linear":
        delta = config.setdefault("linear_attn_config", {})
        delta["full_attn_layers"] = [index + 1 for index in full]
    elif architecture in ("lfm2", "lfm2moe"):
        words = {True: "full_attention", False: "conv"}
        config["layer_types"] = [words[kind == "attention"] for kind in kinds]
        config["block_auto_adjust_ff_dim"] = False
        config["num_dense_layers"] = sum("ffn_gate_inp" not in blocks[i] for i in range(layers))
    elif architecture == "granitehybrid":
        config["layer_types"] = kinds
        config.setdefault("shared_intermediate_size", config.get("intermediate_size"))
    elif architecture == "jamba":
        _jamba_periods(config, full, [i for i in range(layers) if "ffn_gate_inp" in blocks[i]])


def _jamba_periods(config: dict[str, Any], full: list[int], sparse: list[int]) -> None:
    for name, places in (("attn", full), ("expert", sparse)):
        if places:
            config[f"{name}_layer_offset"] = places[0]
            period = places[1] - places[0] if len(places) > 1 else config["num_hidden_layers"]
            config[f"{name}_layer_period"] = period


def _from_arrays(config: dict[str, Any], header: Header, architecture: str) -> None:
    """Turn per-layer arrays into the one value the family reads, or into its own lists."""
    if architecture == "deci":
        _deci(config)
    window = header.metadata.get(f"{architecture}.attention.sliding_window_pattern")
    if isinstance(window, list) and "layer_types" not in config:
        words = {True: "sliding_attention", False: "full_attention"}
        config["layer_types"] = [words[bool(slides)] for slides in window]
        config["hybrid_layer_pattern"] = [int(bool(slides)) for slides in window]
    kv_heads = config.get("num_key_value_heads")
    if isinstance(kv_heads, list) and isinstance(window, list):
        layers = list(zip(kv_heads, window, strict=False))
        full = {heads for heads, slides in layers if not slides}
        config["num_global_key_value_heads"] = max(full, default=0) or None
        config["num_key_value_heads"] = max((h for h, slides in layers if slides), default=0)
    if architecture == "gemma4":
        _gemma4(config, header)
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        value = config.get(name)
        if isinstance(value, list):
            distinct = sorted({item for item in value if item})
            if len(distinct) > 1 and name != "intermediate_size":
                raise ConfigError(f"{name}: {distinct} in different layers; accepted: one value")
            config[name] = distinct[0] if distinct else 1


def _gemma4(config: dict[str, Any], header: Header) -> None:
    """Gemma 4: `head_dim` is the sliding layers', shared layers may be twice as wide."""
    wide = config.get("head_dim")
    config["global_head_dim"] = wide
    config["head_dim"] = header.metadata.get("gemma4.attention.key_length_swa", wide)
    full = [block for block in tensors_by_block(header).values() if "attn_q" in block]
    config["attention_k_eq_v"] = any("attn_k" in b and "attn_v" not in b for b in full)
    config["enable_moe_block"] = any("ffn_gate_inp" in block for block in full)
    widths = config.get("intermediate_size")
    config["use_double_wide_mlp"] = isinstance(widths, list) and len(set(widths)) > 1


def _deci(config: dict[str, Any]) -> None:
    """Nemotron-NAS: heads, groups and widths differ layer by layer."""
    lists = [
        config.get(name)
        for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size")
    ]
    if not all(isinstance(values, list) for values in lists):
        config["model_type"] = "llama"
        return
    heads = max(lists[0] or [1])
    hidden = config["hidden_size"]
    config["block_configs"] = [
        {
            "attention": {"no_op": not kv_heads, "n_heads_in_group": count // (kv_heads or 1) or 1},
            "ffn": {"no_op": not width, "ffn_mult": (width or 1) * 3 / (2 * hidden)},
        }
        for count, kv_heads, width in zip(*lists, strict=True)
    ]
    config["num_attention_heads"] = heads


def _latent(config: dict[str, Any], header: Header, prefix: str) -> None:
    """Add the sizes of latent attention; older files state them as key and value lengths."""
    if "kv_lora_rank" not in config:
        return
    keys = header.metadata
    rope = keys.get(f"{prefix}rope.dimension_count", 64)
    key = keys.get(f"{prefix}attention.key_length_mla", keys.get(f"{prefix}attention.key_length"))
    value = keys.get(
        f"{prefix}attention.value_length_mla", keys.get(f"{prefix}attention.value_length")
    )
    if not isinstance(key, int) or not isinstance(rope, int):
        raise ConfigError(f"{prefix}attention.key_length: missing; a whole number is needed")
    config.update(qk_rope_head_dim=rope, qk_nope_head_dim=key - rope, v_head_dim=value)
    config.setdefault("q_lora_rank", None)
    if config["model_type"] == "deepseek_v3" and _first(header, "exp_probs_b.bias") is None:
        config["model_type"] = "deepseek_v2"


def _state_space(config: dict[str, Any], keys: Mapping[str, Any], prefix: str) -> None:
    """Add the sizes of recurrent mixers; `time_step_rank` is a head count but for Mamba-1."""
    inner, rank = keys.get(f"{prefix}ssm.inner_size"), keys.get(f"{prefix}ssm.time_step_rank")
    heads = config.get("num_attention_heads")
    if "linear_attn_config" in config:
        config["linear_attn_config"].update(
            num_heads=heads if isinstance(heads, int) else max(heads or [1]),
            head_dim=keys.get(f"{prefix}kda.head_dim"),
            short_conv_kernel_size=keys.get(f"{prefix}ssm.conv_kernel", 4),
        )
    if not isinstance(inner, int) or not isinstance(rank, int) or not rank:
        return
    head_dim = inner // rank
    config.update(
        intermediate_size_ssm=inner,
        mamba_d_ssm=inner,
        mamba_num_heads=rank,
        mamba_n_heads=rank,
        mamba_head_dim=head_dim,
        mamba_d_head=head_dim,
        linear_num_value_heads=rank,
        linear_value_head_dim=head_dim,
    )
    hidden = config.get("hidden_size")
    if config["model_type"] == "mamba":
        config["intermediate_size"] = inner
    elif config["model_type"] == "mamba2":
        config.update(num_heads=rank, head_dim=head_dim)
    elif isinstance(hidden, int) and hidden:
        config["mamba_expand"] = max(1, inner // hidden)


def _counts(tensor: Tensor, layers: float) -> bool:
    """Return whether a tensor is of the network that decodes, without prediction layers."""
    match = BLOCK_NAME.match(tensor.name)
    return not _UNCOUNTED.match(tensor.name) and (match is None or int(match[1]) < layers)


def _doubts(spec: ModelSpec, tensors: list[Tensor], header: Header) -> tuple[Note, ...]:
    """Return notes where files are missing or the parameters do not add up."""
    if header.missing:
        text = f"split files missing: {', '.join(header.missing[:3])}; their tensors are assumed"
        return (Note("gguf_split", text + " to be like the others"),)
    held = sum(tensor.elements for tensor in tensors)
    if abs(held - spec.total_params) <= _CLOSE * held:
        return ()
    text = f"the file holds {held} parameters, the model read from it has {spec.total_params}"
    return (Note("gguf_mismatch", text),)
