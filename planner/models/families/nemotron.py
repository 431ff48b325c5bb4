"""Nemotron-H (Mamba-2, attention and MLP or MoE layers) and DeciLM (layers sized by search)."""

from __future__ import annotations

from planner.models.assembly import assemble
from planner.models.attention import Attention
from planner.models.decoder import Importer, Traits, decoder_blocks, read_decoder, read_shape
from planner.models.layers import grouped
from planner.models.mlp import Dense, Experts, Projection
from planner.models.parts import Block, LayerGroup, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import Mamba2
from planner.models.spec import ModelSpec

_KINDS = {
    "M": "mamba",
    "*": "attention",
    "-": "mlp",
    "E": "moe",
    "mamba": "mamba",
    "attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
    "linear_attention": "mamba",
    "full_attention": "attention",
}
_PATTERN = ("layers_block_type", "layer_types", "hybrid_override_pattern")
_KV_HEADS = "num_key_value_heads_per_layer"
_MTP_PATTERN = ("mtp_layers_block_type", "mtp_hybrid_override_pattern")


Layer = tuple[str, ConfigReader]
"""A layer's kind, and the config that sizes it: a block of its own (Puzzle) or the model's."""


def read_nemotron_h(reader: ConfigReader) -> ModelSpec:
    """Read a Nemotron-H: every layer is one norm and one of four kinds of mixer."""
    hidden = reader.size("hidden_size")
    layers = _layers(reader, "block_configs", *_PATTERN)
    mtp = _next_token(reader)
    parts = {layer: _part(*layer, hidden) for layer in dict.fromkeys(layers + mtp)}
    return assemble(
        reader,
        [Block(*_sides(parts[layer]), other_params=hidden) for layer in layers],
        hidden=hidden,
        vocab=reader.size("vocab_size"),
        ties=False,
        mtp=_next_token_layers(reader, [parts[layer] for layer in mtp], hidden),
        state_dtype=state_dtype(reader, "fp32"),
    )


def _layers(reader: ConfigReader, blocks: str, *patterns: str) -> list[Layer]:
    """Return the layers that `blocks` lists one by one, else those of a pattern of kinds."""
    configs = reader.sequence(blocks)
    if not configs:
        return [(kind, reader) for kind in _kinds(reader, *patterns)]
    own = [
        ConfigReader(config, f"{reader.path}{blocks}[{index}].", reader, inherits=True)
        for index, config in enumerate(configs)
    ]
    return [(_kind(block), block) for block in own]


def _kind(block: ConfigReader) -> str:
    name = block.text("block_type")
    if name not in _KINDS:
        raise ConfigError(
            f"{block.path}block_type: {name!r}; accepted: mamba, attention, mlp and moe"
        )
    return _KINDS[name]


def _next_token(reader: ConfigReader) -> list[Layer]:
    if not reader.optional_size("num_nextn_predict_layers"):
        return []
    if reader.has("mtp_block_configs", *_MTP_PATTERN):
        return _layers(reader, "mtp_block_configs", *_MTP_PATTERN)
    return [("attention", reader), ("moe", reader)]


def _next_token_layers(
    reader: ConfigReader, layers: list[tuple[Part, ...]], hidden: int
) -> tuple[LayerGroup, ...]:
    """Return the prediction layers; the first of each joins two hidden states in three norms."""
    blocks = [Block(*_sides(parts), other_params=hidden) for parts in layers]
    if blocks:
        mixers = (Projection("mtp_proj", 2 * hidden, hidden), *blocks[0].mixers)
        blocks[0] = Block(mixers, blocks[0].mlps, 4 * hidden)
    return grouped(blocks * (reader.optional_size("num_nextn_predict_layers") or 0))


def state_dtype(reader: ConfigReader, default: str | None = None) -> str | None:
    """Return the format recurrent state is asked for in, `mamba_ssm_dtype` and its like."""
    name = reader.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype").removeprefix("torch.")
    known = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "": default}
    if name not in known:
        raise ConfigError(
            f"{reader.path}mamba_ssm_dtype: {name!r}; accepted: float32, bfloat16, float16"
        )
    return known[name]


def _kinds(reader: ConfigReader, *names: str) -> list[str]:
    pattern = reader.raw(*names)
    if pattern is None:
        raise ConfigError(f"{reader.path}{names[-1]}: missing; a text of M, *, - and E is needed")
    if not isinstance(pattern, (str, list)) or not all(
        isinstance(kind, str) and kind in _KINDS for kind in pattern
    ):
        raise ConfigError(
            f"{reader.path}{names[-1]}: {str(pattern)[:40]!r}; accepted: M, *, - and E,"
            " or a list of mamba, attention, mlp and moe"
        )
    if not 1 <= len(pattern) <= 4096:
        raise ConfigError(f"{reader.path}{names[-1]}: {len(pattern)} layers; accepted: 1 to 4096")
    return [_KINDS[kind] for kind in pattern]


def _sides(parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    mixers = tuple(part for part in parts if isinstance(part, (Mamba2, Attention)))
    return mixers, tuple(part for part in parts if part not in mixers)


def _part(kind: str, reader: ConfigReader, hidden: int) -> tuple[Part, ...]:
    if kind == "mamba":
        return (_mamba(reader, hidden),)
    if kind == "attention":
        heads = reader.size("num_attention_heads")
        return (
            Attention(
                hidden=hidden,
                heads=heads,
                kv_heads=reader.size("num_key_value_heads", default=heads),
                head_dim=reader.size("head_dim", "attention_head_dim", default=128),
            ),
        )
    bias = reader.flag("mlp_bias")
    if kind == "mlp":
        return (Dense(hidden, reader.size("intermediate_size"), gated=False, bias=bias),)
    experts = reader.size("n_routed_experts")
    routed = Experts(
        hidden,
        experts,
        reader.size("num_experts_per_tok"),
        reader.size("moe_intermediate_size"),
        gated=False,
        inner=reader.optional_size("moe_latent_size"),
        correction=experts,
    )
    shared = reader.size("moe_shared_expert_intermediate_size")
    return (routed, Dense(hidden, shared, gated=False, bias=bias, role="shared_experts"))


def _mamba(reader: ConfigReader, hidden: int) -> Mamba2:
    return Mamba2(
        hidden=hidden,
        heads=reader.size("mamba_num_heads"),
        head_dim=reader.size("mamba_head_dim"),
        state=reader.size("ssm_state_size"),
        groups=reader.size("n_groups", "mamba_n_groups", default=8),
        taps=reader.size("conv_kernel", "mamba_d_conv", default=4),
        conv_bias=reader.flag("use_conv_bias", "mamba_conv_bias", default=True),
        bias=reader.flag("use_bias"),
    )


def read_nemotron_nas(reader: ConfigReader) -> ModelSpec:
    """Read a DeciLM: `block_configs` sizes, thins out or drops each layer's attention and MLP."""
    hidden = reader.size("hidden_size")
    heads = reader.size("num_attention_heads")
    head_dim = reader.size("head_dim", default=hidden // heads)
    configs = reader.sequence("block_configs")
    if not configs:
        raise ConfigError(f"{reader.path}block_configs: missing; a list of layers is needed")
    blocks = [
        _nas_block(
            ConfigReader(config, f"{reader.path}block_configs[{index}].", reader),
            hidden,
            heads,
            head_dim,
        )
        for index, config in enumerate(configs)
    ]
    return assemble(reader, blocks, hidden=hidden, vocab=reader.size("vocab_size"))


def _nas_block(reader: ConfigReader, hidden: int, heads: int, head_dim: int) -> Block:
    attention, ffn = reader.nested("attention"), reader.nested("ffn")
    if attention is None or ffn is None:
        raise ConfigError(f"{reader.path}attention, ffn: missing")
    mixers: tuple[Part, ...] = ()
    mlps: tuple[Part, ...] = ()
    if attention.flag("replace_with_linear"):
        mixers = (Dense(hidden, hidden, gated=False),)
    elif not attention.flag("no_op"):
        group = attention.size("n_heads_in_group")
        if heads % group:
            raise ConfigError(
                f"{attention.path}n_heads_in_group: {group} does not divide {heads} attention heads"
            )
        mixers = (Attention(hidden, heads, heads // group, head_dim),)
    if ffn.flag("replace_with_linear"):
        mlps = (Dense(hidden, hidden, gated=False),)
    elif not ffn.flag("no_op"):
        width = int(2 * ffn.number("ffn_mult", default=1.0) * hidden / 3)
        mlps = (Dense(hidden, -(-width // 256) * 256),)
    return Block(mixers, mlps, other_params=hidden * (bool(mixers) + bool(mlps)))


def read_deci(reader: ConfigReader) -> ModelSpec:
    """Read a DeciLM-7B: a Llama whose layers each have their own number of KV heads."""
    shape = read_shape(reader, kv_heads=1)
    counts = reader.pattern(shape.layers, _KV_HEADS)
    if counts is None:
        raise ConfigError(f"{reader.path}{_KV_HEADS}: missing; a number for each layer is needed")
    sizes = [reader.check_size(_KV_HEADS, count) for count in counts]
    blocks = {
        size: decoder_blocks(reader, read_shape(reader, kv_heads=size), Traits())[0]
        for size in dict.fromkeys(sizes)
    }
    return read_decoder(reader, shape, Traits(), [blocks[size] for size in sizes])


MODEL_TYPES: dict[str, Importer] = {
    "nemotron_h": read_nemotron_h,
    "nemotron_h_puzzle": read_nemotron_h,
    "nemotron-nas": read_nemotron_nas,
    "deci": read_deci,
}
