"""Configs of unknown model_type: read as a plain decoder between bounds, or refused by field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.models.decoder import EXPERTS, Moe, Traits, decoder
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import PERIODS, SIZES, patterned, slides

_STRUCTURE = re.compile(
    r"mamba|ssm|conv(?!ert)|linear_|state_size|recurren|rwkv|lru|delta|retention|loop|hybrid|sparse"
    r"|layer_types|layers_block_type|block_types|layer_pattern|attention_types|index_|indexer"
    r"|compress|cross_attention|memory|latent|_rank$|rank_|lowrank|adapter|zero_expert|expert_dim"
    r"|altup|laurel|ngram|per_layer|_per_|engram|codebook|residual_streams|hc_mult|hc_count"
    r"|kv_shar|shared_layers|cla_|mem_|experts_per_group|position_bias|segment_types|lm_head_bias"
    r"|n_mamba|num_mem|router_hidden|first_k|dense_replace|num_dense|moe_hidden|moe_latent"
    r"|interleave|_mlp$|multi_query|new_decoder"
)
"""Names of fields that say a network is no plain decoder."""
_HARMLESS = re.compile(
    r"^(initializer|max_window_layers|use_sliding_window|num_logits_to_keep|n_group|topk_group|num_expert_group"
    r"|norm_topk_prob|rope_|partial_rotary|quantization|tie_|tokens?_per|num_nextn|mtp_)|_coef$"
    r"|_theta$|_per_second$|_act(ivation)?$|_token_id$|_multiplier$|_scale$"
)
_SIZE = re.compile(r"(_size|_dim|_dims|_width|_heads|_layers|_experts|_channels|_kernel|_factor)$")
_PLAIN_KINDS = {"full_attention", "attention", "global", "full", "dense", "sparse", "moe"}
_UNGATED = ("relu2", "relu", "xielu", "gelu", "gelu_new", "gelu_fast", "relu_squared")
_KNOWN_SIZES = {
    "max_position_embeddings",
    "original_max_position_embeddings",
    "rotary_dim",
    "qk_head_dim",
    "head_dim",
    "chunk_size_feed_forward",
    "attention_chunk_size",
    "block_size",
    "rotary_emb_dim",
    "routed_scaling_factor",
    "router_scaling_factor",
    "moe_router_scaling_factor",
    "rope_scaling_factor",
    "partial_rotary_factor",
    "qk_scale_factor",
    "attn_factor",
    "max_seq_len",
    "intermediate_size",
    "max_window_layers",
    "vocab_size",
    "unpadded_vocab_size",
    "image_size",
    "patch_size",
}
"""Sizes that change no parameter and no cache, or that are read under another name."""


def read_assumed(reader: ConfigReader) -> ModelSpec:
    """Read a config of unknown model_type as a plain decoder, between stated bounds.

    Raises ConfigError naming a field that says it is none, or one that is missing.
    """
    name = reader.text("model_type")
    kind = f"model_type {name!r} is unknown" if name else "there is no model_type"
    traits, words = _assumed(reader)
    try:
        spec = decoder(traits)(reader)
        low, high = (_bound(reader, traits, most) for most in (False, True))
    except ConfigError as error:
        raise ConfigError(f"{error} ({kind})") from error
    for field in _unread(reader):
        raise ConfigError(
            f"{reader.path}{field}: {_short(reader.config[field])} is not read, and may change"
            f" what the network is ({kind})"
        )
    reader.note(
        "assumed_architecture",
        f"{kind}: read as {words}; total_params is between {low:,} and {high:,}",
    )
    return replace(spec, params_range=(low, high))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _assumed(reader: ConfigReader) -> tuple[Traits, str]:
    """Return traits from the fields that are there, and them in words."""
    config = reader.config
    latent, moe = reader.has("kv_lora_rank"), reader.has(*EXPERTS)
    gated = config.get("hidden_act", config.get("hidden_activation")) not in _UNGATED
    bias = ("attention_bias", "qkv_bias", "use_qkv_bias", "use_bias", "add_qkv_bias", "bias")
    out = ("attention_bias", "attention_out_bias", "use_bias", "bias")
    traits = Traits(
        qkv_bias=bias,
        out_bias=out,
        mlp_bias=("mlp_bias", "use_bias", "bias"),
        qk_norm="head" if _asks_norm(config) else "",
        gated=gated,
        windows=_windows,
        latent=latent,
        moe=Moe(shared_width=("shared_expert_intermediate_size", "shared_intermediate_size"))
        if moe
        else None,
    )
    attention = "latent attention (MLA)" if latent else "grouped-query attention"
    mlp = "a mixture of gated experts" if moe else f"{'a gated' if gated else 'an ungated'} MLP"
    return traits, f"a pre-norm decoder with {attention} and {mlp}"


def _asks_norm(config: Mapping[str, Any]) -> bool:
    return any(config.get(name) is True for name in ("use_qk_norm", "qk_norm", "qk_layernorm"))


def _windows(reader: ConfigReader, layers: int) -> list[float]:
    """Return the windows a pattern states; without a pattern none, which is the most memory."""
    if reader.config.get("use_sliding_window") is False:
        return [math.inf] * layers
    kinds = reader.pattern(layers, "layer_types")
    for kind in kinds or ():
        if not (slides(kind) or kind in _PLAIN_KINDS):
            raise ConfigError(
                f"{reader.path}layer_types: {kind!r} is not read; accepted: full_attention,"
                " sliding_attention"
            )
    if kinds is None and not reader.has(*PERIODS):
        if reader.has(*SIZES):
            reader.note(
                "assumed_full_attention",
                f"{reader.stating(*SIZES)} is there without a pattern of layers: every layer is"
                " taken to keep the whole context, which is the most memory it can be",
            )
        return [math.inf] * layers
    return patterned(None, math.inf)(reader, layers)


def _bound(reader: ConfigReader, traits: Traits, most: bool) -> int:
    """Return the parameters of the smallest or largest decoder that states the same fields."""
    view = ConfigReader(reader.config, reader.path, reader.outer)
    view.notes, view.class_defaults = [], reader.class_defaults
    tied = view.config.get("tie_word_embeddings")
    extreme = replace(
        traits,
        gated=most,
        qkv_bias=most,
        out_bias=most,
        mlp_bias=most,
        output_gate=most and not traits.latent,
        sinks=most,
        norms=8 if most else 0,
        final_norms=4 if most else 0,
        qk_norm=("" if traits.latent or not most else "full"),
        tied=not most,
        head_bias=most,
        moe=traits.moe and replace(traits.moe, gated=most, correction=most, shared_gate=most),
    )
    spec = decoder(extreme)(view)
    hidden, layers = spec.hidden, spec.layers
    total = spec.total_params
    if most and tied is not True and spec.tied_embeddings:
        total += spec.vocab * hidden
    # Learned positions, and two more square matrices a layer: gates of latents, mixing of streams.
    positions = min(spec.max_context or 0, 8192) * hidden
    return total + (positions + 2 * layers * hidden * hidden if most else 0)


def _unread(reader: ConfigReader) -> Iterator[str]:
    """Yield fields that were not read and say that the network is something else."""
    implied = _implied(reader)
    for name, value in reader.config.items():
        if name in reader.used or name in _KNOWN_SIZES or name in implied or _HARMLESS.search(name):
            continue
        if _plain(name, value):
            continue
        sized = _SIZE.search(name) and isinstance(value, (int, float)) and value not in (0, 1)
        if _STRUCTURE.search(name) or (sized and not isinstance(value, bool)):
            yield name


def _implied(reader: ConfigReader) -> set[str]:
    """Return fields that others, which were read, make say nothing new."""
    implied: set[str] = set()
    if reader.has("kv_lora_rank"):  # one latent serves all heads
        implied |= {"num_key_value_heads"}
    if reader.has("mlp_layer_types"):
        implied |= {"first_k_dense_replace", "num_dense_layers", "decoder_sparse_step"}
    if reader.has("layer_types"):
        implied |= set(PERIODS)
    heads = reader.raw("num_attention_heads")
    listed = reader.config.get("num_attention_heads_per_layer")
    if isinstance(listed, list) and all(item == heads for item in listed):
        implied.add("num_attention_heads_per_layer")
    return implied


def _plain(name: str, value: Any) -> bool:
    """Return whether a value says nothing: none, off, or the plain kind in every layer."""
    values = value if isinstance(value, list) else [value]
    if name in SIZES:
        return True
    return all(
        item in (None, False, 0, 0.0, "") or item in _PLAIN_KINDS
        for item in values
        if not isinstance(item, (list, dict))
    ) and not any(isinstance(item, (list, dict)) and item for item in values)
