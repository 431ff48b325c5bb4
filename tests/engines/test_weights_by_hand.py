"""Weights, adapters, activations and buffers of one small model, every byte worked by hand.

Two layers of 64 values: attention of 8 heads of 8 with 2 KV heads and biases, an MLP of 256 in one,
4 experts of 32 in the other; 100 tokens, a head of its own, 16 bits.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engines.loading import Loading, adapter_bytes, loaded_bytes
from planner.engines.overheads import (
    Overheads,
    Reserve,
    activation_bytes,
    buffer_bytes,
    graph_bytes,
)
from planner.engines.rows import condition, is_table, row_anywhere, row_for
from planner.engines.versions import numbers, version_of
from planner.hw import get_accelerator
from planner.models import get_model
from planner.models.attention import Attention
from planner.models.latent import LatentAttention
from planner.models.mlp import Dense, Experts
from planner.models.parts import Block, LayerGroup
from planner.models.spec import ModelSpec, Quantization
from planner.step.parallel import Sharding

ATTENTION = Attention(64, heads=8, kv_heads=2, head_dim=8, qkv_bias=True)
DENSE = Dense(64, 256)
EXPERTS = Experts(64, experts=4, top_k=2, width=32)
SPEC = ModelSpec(
    id="tiny",
    model_type="tiny",
    hidden=64,
    vocab=100,
    groups=(
        LayerGroup(1, Block((ATTENTION,), (DENSE,), 128)),
        LayerGroup(1, Block((ATTENTION,), (EXPERTS,), 128)),
    ),
    tied_embeddings=False,
    other_params=64,
    max_context=1000,
)
QKV, OUT = 64 * 64 + 2 * 64 * 16, 64 * 64
"""q of 64, k and v of 16 each; the output."""
TABLE = 100 * 64
MLP = 3 * 64 * 256
ROUTED = 4 * 3 * 64 * 32


def loaded(rules: Loading | None = None, spec: ModelSpec = SPEC, **split: int) -> float:
    return loaded_bytes(spec, spec.formats(), Sharding(**split), rules)


def test_all_on_one_gpu() -> None:
    """2·(6,144 + 96 + 4,096) + 49,152 + 24,576 + 256 + 256 + 64 + 12,800 values of two bytes."""
    values = 2 * (QKV + 96 + OUT) + MLP + ROUTED + 64 * 4 + 2 * 128 + 64 + 2 * TABLE
    assert loaded() == 2 * values == 215_552
    assert loaded() == SPEC.weights_bytes() == 2 * SPEC.total_params


@pytest.mark.parametrize(
    ("tp", "values"),
    [
        # Everything that can be is halved; the router, norms and final norm are not.
        (2, (2 * (QKV + 96 + OUT) + MLP + ROUTED + 2 * TABLE) / 2 + 256 + 256 + 64),
        # k and v, 2 heads, are held by pairs of ranks.
        (
            4,
            (2 * (64 * 64 + 64 + OUT) + MLP + ROUTED + 2 * TABLE) / 4
            + 2 * 2 * (64 * 16 + 16) / 2
            + 256
            + 256
            + 64,
        ),
    ],
)
def test_shares_of_tensor_parallelism(tp: int, values: float) -> None:
    assert loaded(tp=tp) == 2 * values


def test_experts_are_spread_over_attention_dp_as_well() -> None:
    """Four ranks of one replica hold a quarter of the experts each, and all of the rest."""
    assert loaded() - loaded(attention_dp=4) == 2 * ROUTED * 3 / 4


@pytest.mark.parametrize("pp", [1, 2])
def test_a_stage_of_a_pipeline_is_their_mean(pp: int) -> None:
    assert loaded(pp=pp) == loaded() / pp


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        # 100 rows padded to 128: 28 of 64 in table and head.
        (Loading(vocab_multiple=64), 2 * 28 * 64 * 2),
        (Loading(vocab_multiple=50), 0),
        # One table of 1000 positions × 8 angles; three where the type scales them.
        (Loading(rotary_bytes=2.0), 16_000),
        (Loading(rotary_bytes=2.0, rotary_tables={"tiny": 3}), 48_000),
        (Loading(rotary_bytes=2.0, rotary_tables={"other": 3}), 16_000),
        # An expert's 64 inputs are padded to 128 in gate and up, its 32 to 128 in down.
        (Loading(expert_multiple={"bf16": 128}), 2 * 4 * (2 * 32 * (128 - 64) + 64 * (128 - 32))),
        (Loading(expert_multiple={"fp8": 128}), 0),
        # No part has an up-projection of a latent, so that nothing is kept beside it.
        (Loading(copied_kernels=("kv_b_proj",), latent_bytes=1000.0), 0),
        # Tensors below 10 MiB are not rounded.
        (Loading(allocator_step_bytes=2**21), 0),
    ],
)
def test_what_an_engine_adds(rules: Loading, more: float) -> None:
    assert loaded(rules) - loaded() == more


@pytest.mark.parametrize(
    ("mib", "more"),
    # Steps of 2 MiB: 11 → 12 (a rest of 1 stays), 10.5 → 12 would leave 1.5, which is handed out.
    [(11, 1.0), (10.5, 0.0), (11.25, 0.75), (12, 0.0), (9, 0.0)],
)
def test_rests_of_large_tensors(mib: float, more: float) -> None:
    rows = round(mib * 2**20 / 2 / 64)
    big = replace(SPEC, vocab=rows, groups=(), other_params=0)
    rules = Loading(allocator_step_bytes=2**21)
    assert loaded(rules, big) - loaded(None, big) == 2 * more * 2**20


LATENT = LatentAttention(64, 8, kv_rank=16, rope_dim=4, nope_dim=8, v_dim=8, q_rank=None)
QUANTISED = replace(
    SPEC,
    groups=(LayerGroup(2, Block((LATENT,), (DENSE,), 128)),),
    quantization=Quantization("fp8", {"attention": "fp8"}),
)


def test_an_absorbed_up_projection_is_kept_in_16_bits_as_well() -> None:
    """kv_b_proj, 16×8·(8 + 8), a byte a weight, and again at two in both layers; 500 more once."""
    rules = Loading(copied_kernels=("kv_b_proj",), latent_bytes=500.0)
    assert loaded(rules, QUANTISED) - loaded(None, QUANTISED) == 2 * 2 * 16 * 128 + 500
    plain = replace(QUANTISED, quantization=Quantization("none"))
    assert loaded(rules, plain) - loaded(None, plain) == 500


SEEING = replace(SPEC, vision_params=1_000)


@pytest.mark.parametrize(
    ("rules", "tp", "more"),
    [
        (Loading(), 1, 0),
        (Loading(encoder=True), 1, 2_000),
        (Loading(encoder=True), 2, 1_000),
        (Loading(encoder=True, replicated_encoders=("tiny",)), 2, 2_000),
    ],
)
def test_an_encoder_is_split_or_held_whole(rules: Loading, tp: int, more: int) -> None:
    assert loaded(rules, SEEING, tp=tp) - loaded(None, SPEC, tp=tp) == more


@pytest.mark.parametrize(
    ("layers", "share", "outside"), [(0, 0.0, False), (1, 0.5, False), (2, 1, False), (3, 1, True)]
)
def test_layers_on_the_gpu(layers: int, share: float, outside: bool) -> None:
    """Embedding, head and final norm follow the last layer."""
    beside = 2 * (2 * TABLE + 64)
    whole = loaded() - beside
    there = loaded_bytes(SPEC, SPEC.formats(), Sharding(), None, layers)
    assert there == pytest.approx(share * whole + outside * beside)


def test_adapters() -> None:
    """Rank 4 beside q, k, v, o (64+64, 64+16, 64+16, 64+64) in both layers, gate, up and down
    (64+256 each) in one and the router (64+4) in the other: 4·(832 + 960 + 68) values each.
    """
    assert adapter_bytes(SPEC, Sharding(), 1, 4) == 2 * 4 * (2 * 416 + 960 + 68) == 14_880
    assert adapter_bytes(SPEC, Sharding(), 3, 8) == 6 * 14_880
    # Inputs whole, outputs halved: q 64+32, k and v 64+8, o 64+32; 64+128 twice, 256+32; 64+4.
    halved = 2 * (96 + 72 + 72 + 96) + 192 + 192 + 288 + 68
    assert adapter_bytes(SPEC, Sharding(tp=2), 1, 4) == 2 * 4 * halved


def activation(
    rules: Overheads, tokens: int = 10, sequences: int = 5, spec: ModelSpec = SPEC, **split: int
) -> float:
    return activation_bytes(spec, spec.formats(), Sharding(**split), rules, tokens, sequences)


@pytest.mark.parametrize(
    ("rules", "peak"),
    [
        (Overheads(), 0),
        # Two copies of fp32 logits of 5 sequences over 100 tokens.
        (Overheads(logits_copies=2), 2 * 5 * 100 * 4),
        # A chunk of 10 tokens: 1,280 bytes of hidden states.
        (Overheads(logits_copies=2, hidden_copies=1.5), 4_000 + 1_920),
        # The widest layer: gate and up of 256, down's 256 inputs and 64 outputs, two bytes each.
        (Overheads(layer_copies=1), 10 * 2 * (512 + 64 + 256) + 1_280),
        (Overheads(layer_copies=3, logits_copies=2), 10 * 1_664 + 3 * 1_280),
        # Whichever is larger.
        (Overheads(layer_copies=1, logits_copies=20), 40_000),
        # Experts: two of them, max(2·32, 64) + 32 values a token.
        (Overheads(workspace_copies=1), 10 * 2 * 96 * 2),
        (Overheads(workspace_copies=2, logits_copies=2), 2 * 3_840 + 4_000),
        # An encoder counts only where the model has one.
        (Overheads(encoder_bytes=9_999), 0),
    ],
)
def test_peak_of_activations(rules: Overheads, peak: float) -> None:
    assert activation(rules) == peak


def test_an_encoder_is_kept_beside_the_sampler() -> None:
    rules = Overheads(logits_copies=2, encoder_bytes=9_999)
    assert activation(rules, spec=SEEING) == 4_000 + 9_999


@pytest.mark.parametrize(
    ("split", "width"),
    [
        # The widest of 32 is split by width, and whole where experts are spread.
        ({"tp": 2}, 16),
        ({"tp": 2, "ep": 2}, 32),
        ({"tp": 2, "attention_dp": 2, "ep": 2}, 16),
    ],
)
def test_workspace_of_split_experts(split: dict[str, int], width: int) -> None:
    expected = 10 * 2 * (max(2 * width, 64) + width) * 2
    assert activation(Overheads(workspace_copies=1), **split) == expected


def test_narrow_activations_copy_their_input() -> None:
    """fp8 MLP: the 256 inputs of down are copied at a byte each; half a chunk's states more."""
    narrow = replace(SPEC, quantization=Quantization("fp8", {"mlp": "fp8"}))
    plain = activation(Overheads(layer_copies=1, narrow_copies=0.5))
    assert (
        activation(Overheads(layer_copies=1, narrow_copies=0.5), spec=narrow) - plain
        == 10 * 256 + 640
    )


@given(st.integers(1, 4096), st.integers(1, 512))
@settings(max_examples=40)
def test_activations_grow_with_tokens_and_sequences(tokens: int, sequences: int) -> None:
    rules = Overheads(logits_copies=2, hidden_copies=1, layer_copies=2, workspace_copies=1)
    base = activation(rules, tokens, sequences)
    assert activation(rules, tokens + 1, sequences) > base
    assert activation(rules, tokens, sequences + 1) >= base


LINKS = Overheads(
    process_bytes=100, link_bytes=10, link_bytes_per_gpu=2, host_link_bytes=50, graph_bytes=7
)


@pytest.mark.parametrize(
    ("split", "linked", "held"),
    [
        ({}, True, 100),
        ({"tp": 4}, True, 100 + 10 + 8),
        ({"tp": 2, "pp": 4}, True, 100 + 10 + 16),
        ({"tp": 4}, False, 150),
    ],
)
def test_buffers(split: dict[str, int], linked: bool, held: float) -> None:
    assert buffer_bytes(Sharding(**split), LINKS, linked) == held


def test_graphs_are_of_the_layers_of_a_stage() -> None:
    rules = replace(LINKS, graph_bytes_per_layer=3)
    assert graph_bytes(SPEC, Sharding(), rules) == 7 + 3 * 2
    assert graph_bytes(SPEC, Sharding(pp=2), rules) == 7 + 3


RESERVE = Reserve(
    bytes=100,
    bytes_per_chunk_token=2,
    bytes_per_graph_sequence=3,
    bytes_per_gpu=10,
    least_bytes=1_000,
    least_from_bytes=5_000,
)


@pytest.mark.parametrize(
    ("total", "chunk", "graphs", "gpus", "kept"),
    [
        # 100 + 2·50 + 3·20 + 10·4.
        (4_999, 50, 20, 4, 300),
        (5_000, 50, 20, 4, 1_000),
        (9_999, 500, 20, 4, 1_200),
    ],
)
def test_reserve(total: float, chunk: int, graphs: int, gpus: int, kept: float) -> None:
    assert RESERVE.of(total, chunk, graphs, Sharding(gpus)) == kept


def test_a_reserve_for_ranks_prompts_drafts_and_images() -> None:
    """Ranks count like GPUs, and 5 for each and each of 20 sequences; half more above 15."""
    rules = replace(RESERVE, prompt_graph_bytes=7, latent_prompt_graph_bytes=50, draft_bytes=900)
    rules = replace(rules, bytes_per_rank_sequence=5, least_chunk_tokens=60, many_sequences=25)
    assert rules.of(1, 50, 20, Sharding(2)) == 100 + 7 + 2 * 60 + 3 * 20 + 10 * 2
    assert rules.of(1, 50, 20, Sharding(2), latent=True) == 330 + 50 - 30
    assert rules.of(1, 50, 20, Sharding(2, attention_dp=3)) == 287 + 10 * 6 + 5 * 20 * 3
    many = replace(rules, many_sequences=15)
    assert many.of(1, 50, 20, Sharding(2, attention_dp=3)) == 347 + 1.5 * 5 * 20 * 3
    assert rules.of(5_000, 50, 20, Sharding(2), drafts=1) == 1_000 + 900
    assert rules.with_encoder(1e9) == 1
    images = replace(rules, encoder_share=0.95, encoder_params=300.0)
    assert images.with_encoder(0) == 1
    assert images.with_encoder(300) == 0.95
    assert images.with_encoder(450) == pytest.approx(0.95 * 0.95)
    assert images.with_encoder(100_000) == pytest.approx(0.95 * 0.8)
    assert images.with_encoder(1) == pytest.approx(0.95 * 1.05)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.17.0", ("release", (0, 17))),
        ("v0.8.5", ("release", (0, 8, 5))),
        ("1.0.0rc3", ("release", (1,))),
        ("2025-07", ("date", (2025, 7))),
        ("nightly-dev-20260402", ("date", (2026, 4))),
        ("b6118", ("build", (6118,))),
        ("6118", ("build", (6118,))),
        ("main", None),
        ("", None),
        (None, None),
        ("20251", ("build", (20251,))),
    ],
)
def test_what_a_version_is(text: str | None, version: tuple[str, tuple[int, ...]] | None) -> None:
    assert version_of(text) == version


def test_versions_compare_by_their_numbers() -> None:
    texts = ["0.5.8", "0.5.8.post1", "0.5.10", "0.10.1", "0.33", "0.33.1", "1.0"]
    assert sorted(texts, key=numbers) == texts
    assert numbers("0.33.0") == numbers("0.33") == (0, 33)


ROWS = (
    {"value": 1, "below_gib": 70.0},
    {"value": 2, "tp_from": 4, "except": ["a100"]},
    {"value": 3, "only": ["h200"]},
    {"value": 4},
)


@pytest.mark.parametrize(
    ("gpu", "tp", "value"),
    # A100 40 GB is below 70 GiB; H100 of 80 GB holds 79.6 GiB or so.
    [
        ("rtx-4090", 8, 1),
        ("h100-sxm5", 4, 2),
        ("h100-sxm5", 2, 4),
        ("h200-sxm", 2, 3),
        ("h200-sxm", 4, 2),
    ],
)
def test_the_first_row_that_holds_counts(gpu: str, tp: int, value: int) -> None:
    row = row_for(ROWS, get_accelerator(gpu), tp)
    assert row is not None
    assert row["value"] == value


def test_rows_in_words() -> None:
    assert [condition(row) for row in ROWS] == [
        "below 70 GiB",
        "from TP 4 not on a100",
        "on h200",
        "",
    ]
    assert row_anywhere(ROWS) == ROWS[0]
    assert row_for((), get_accelerator("h100-sxm5"), 1) is None
    assert row_anywhere(()) is None
    assert is_table(ROWS)
    assert not is_table(ROWS[3:])
    assert is_table(ROWS[:1])


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_more_ranks_never_hold_more(tp: int) -> None:
    spec = get_model("openai/gpt-oss-120b")
    one, more = (loaded_bytes(spec, spec.formats(), Sharding(n)) for n in (tp, 2 * tp))
    assert one / 2 <= more <= one
    assert math.isfinite(more)
