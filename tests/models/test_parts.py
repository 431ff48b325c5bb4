"""A part declares what is asked of it: one that leaves a member out cannot be made."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from planner.models import get_model, list_models
from planner.models.attention import Attention, CrossAttention, Indexer
from planner.models.caches import Cache
from planner.models.compressed import CompressedAttention
from planner.models.delta import GatedDeltaNet
from planner.models.latent import LatentAttention
from planner.models.mlp import Dense, Experts, Projection
from planner.models.parts import (
    Activation,
    Auxiliary,
    FeedForward,
    Mixer,
    Part,
    RoutedExperts,
    TokenWise,
    Uncached,
)
from planner.models.recurrent import Mamba2, RecurrentMixer

ATTENTION = Attention(4096, heads=32, kv_heads=8, head_dim=128)
V3 = LatentAttention(7168, 128, kv_rank=512, rope_dim=64, nope_dim=128, v_dim=128, q_rank=1536)
V3_EXPERTS = Experts(7168, experts=256, top_k=8, width=2048)
INDEXER = Indexer(7168, query_inputs=1536, heads=64, head_dim=128)
V4 = CompressedAttention(4096, 64, 512, q_rank=1024, o_groups=8, o_rank=1024, window=128)
NEXT = GatedDeltaNet(2048, key_heads=16, value_heads=32, key_dim=128, value_dim=128, taps=4)
CODESTRAL = Mamba2(4096, heads=128, head_dim=64, state=128, groups=8, taps=4)

FULL = {
    name: getattr(kind, name)
    for kind, names in (
        (
            Attention,
            (
                "linears",
                "other_params",
                "caches",
                "states",
                "sharded_heads",
                "rotary_width",
                "cached_head_width",
                "latent_cache",
                "core_kernels",
            ),
        ),
        (Experts, ("routed", "activation")),
    )
    for name in names
}


def abstract(kind: type[Part]) -> list[str]:
    return sorted(kind.__abstractmethods__)


@pytest.mark.parametrize(
    ("base", "name"),
    [(base, name) for base in (Mixer, FeedForward, Auxiliary) for name in abstract(base)],
)
def test_a_part_that_leaves_a_member_out_cannot_be_made(base: type[Part], name: str) -> None:
    members = {member: FULL[member] for member in abstract(base) if member != name}
    incomplete = type("Incomplete", (base,), members)
    with pytest.raises(TypeError, match=name):
        incomplete()
    type("Complete", (base,), members | {name: FULL[name]})()


def test_a_mixer_answers_for_loading_sharding_and_paging() -> None:
    sizes = {"caches", "states", "linears", "other_params", "core_kernels"}
    engines = {"sharded_heads", "rotary_width", "cached_head_width", "latent_cache"}
    assert set(abstract(Mixer)) == sizes | engines
    assert set(abstract(FeedForward)) == {"linears", "other_params", "routed", "activation"}


def subclasses(kind: type[Part]) -> set[type[Part]]:
    return {kind}.union(*(subclasses(child) for child in kind.__subclasses__()))


def test_parts_are_frozen_dataclasses_with_slots() -> None:
    list_models()  # Imports every family, some of which have parts of their own.
    bases = {Part, Mixer, Uncached, TokenWise, FeedForward, Auxiliary, RecurrentMixer}
    kinds = {kind for kind in subclasses(Part) if kind.__module__.startswith("planner")} - bases
    kinds = {kind for kind in kinds if "__slots__" in vars(kind)}
    assert len(kinds) >= 15
    for kind in kinds:
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen
        assert not inspect.isabstract(kind)
        assert "__dict__" not in dir(kind)


@pytest.mark.parametrize(
    ("part", "heads", "rotary", "head"),
    [
        (ATTENTION, 32, 128, 128),
        # Keys of another layer: its table of angles serves both.
        (dataclasses.replace(ATTENTION, own_kv=False), 32, None, 128),
        (CrossAttention(4096, heads=32, kv_heads=8, head_dim=128), 32, None, 128),
        # Only the rotary part of a head turns, and all heads share the latent.
        (V3, 128, 64, None),
        # Every rank runs the whole indexer.
        (INDEXER, None, 128, 128),
        (V4, 64, 512, 512),
        (CODESTRAL, 128, None, None),
        (NEXT, None, None, None),
        (V3_EXPERTS, None, None, None),
    ],
)
def test_heads_and_rotary_tables(
    part: Part, heads: int | None, rotary: int | None, head: int | None
) -> None:
    assert (part.sharded_heads, part.rotary_width, part.cached_head_width) == (heads, rotary, head)


def test_forms_of_a_latents_cache() -> None:
    """A latent of 512 + 64, or 128 heads of 192 for the key and 128 for the value."""
    assert V3.caches() == (Cache(576, 1),)
    assert V3.latent_cache.rank == 512
    assert V3.latent_cache.expanded == Cache(128 * (192 + 128), 128)
    assert ATTENTION.latent_cache is None
    assert V4.latent_cache is None


def test_routed_experts() -> None:
    """DeepSeek-V3: 44,040,192 parameters an expert."""
    routed = V3_EXPERTS.routed()
    assert routed == RoutedExperts(256, 8, 3 * 7168 * 2048, width=2048, inputs=7168, gated=True)
    assert routed.params == 44_040_192
    assert routed.activation_values == 8 * (7168 + 2 * 2048 + 2048 + 7168) == 163_840
    assert Dense(7168, 18432).routed() is None


def test_experts_behind_a_latent_read_and_write_it() -> None:
    """Nemotron 3 Super: 4096 projected to 1024, experts of 2688 without a gate."""
    part = Experts(4096, experts=512, top_k=22, width=2688, gated=False, inner=1024)
    routed = part.routed()
    assert routed == RoutedExperts(512, 22, 2 * 1024 * 2688, width=2688, inputs=1024, gated=False)
    assert routed.activation_values == 22 * (1024 + 2688 + 2688 + 1024)


def test_activations_of_feed_forward_networks() -> None:
    assert Dense(4096, 14336).activation() == Activation(14336, gated=True)
    assert Dense(4096, 14336, gated=False).activation() == Activation(14336, gated=False)
    assert V3_EXPERTS.activation() == Activation(8 * 2048, gated=True)
    assert Projection("laurel", 2048, 64).activation() is None


def test_one_launch_reads_an_operand_once() -> None:
    """Llama-3.1-8B: q is read for all three; k and v, which split otherwise, add their outputs."""
    from planner.models.spec import group_kernels

    spec = get_model("meta-llama/Llama-3.1-8B-Instruct")
    laws = [k for k in group_kernels(spec.groups[0], spec.formats()) if k.name == "qkv_proj"]
    assert [(law.launches, law.activation_values_per_token) for law in laws] == [
        (1, 4096 + 32 * 128),
        (0, 2 * 8 * 128),
    ]
