"""Pools of pages on small made-up sizes, every count worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engines.pages import Kind, PageRules, Paging, kinds, pool_of, requested_tokens
from planner.engines.pool import UNBOUNDED, Pool, Store, Term
from planner.models import get_model
from planner.models.parts import Block, LayerGroup
from planner.models.recurrent import Convolution, Mamba1, Mamba2
from planner.models.spec import ModelSpec
from planner.step.parallel import Sharding

BLOCKS = Paging(layout="groups", printed="blocks")


@pytest.mark.parametrize(
    ("term", "context", "held", "peak"),
    [
        # Pages of 16 tokens, one of each of 2 groups: ⌈100/16⌉ = 7.
        (Term(2.0, 16), 100, 14, 14),
        (Term(2.0, 16), 96, 12, 12),
        (Term(2.0, 16), 97, 14, 14),
        (Term(2.0, 16), 0, 0, 0),
        # A window of 32 tokens: 2 pages; in its prompt steps of 64 keep 32 + 64: 6 pages.
        (Term(1.0, 16, reach=32, ahead=64), 100, 2, 6),
        (Term(1.0, 16, reach=32, ahead=64), 80, 2, 5),
        (Term(1.0, 16, reach=32, ahead=64), 20, 2, 2),
        # A page more for a window that starts within one.
        (Term(3.0, 16, reach=31, extra=1), 100, 9, 9),
        # A state: one page whatever the context.
        (Term(4.0, reach=0, extra=1), 100, 4, 4),
        (Term(4.0, reach=0, extra=1), 0, 4, 4),
    ],
)
def test_blocks_of_a_sequence(term: Term, context: int, held: int, peak: int) -> None:
    assert term.held(context) == held
    assert term.peak(context) == peak


@pytest.mark.parametrize(
    ("blocks", "context", "sequences"),
    [
        # 7 pages each.
        (70, 100, 10),
        (69, 100, 9),
        (6, 100, 0),
        (7, 112, 1),
        (7, 113, 0),
    ],
)
def test_sequences_of_a_growing_store(blocks: float, context: int, sequences: int) -> None:
    store = Store(blocks, (Term(1.0, 16),))
    assert store.sequences(context) == sequences
    assert store.needed(sequences, context) <= blocks < store.needed(sequences + 1, context)


def test_all_but_one_sequence_are_at_rest() -> None:
    """Windows of 32, steps of 64: 2 pages at rest, 6 in the prompt: 20 hold (20 − 6)/2 + 1 = 8."""
    store = Store(20, (Term(1.0, 16, reach=32, ahead=64),))
    assert store.sequences(200) == 8
    assert store.needed(8, 200) == 7 * 2 + 6
    assert Store(5, store.terms).sequences(200) == 0
    assert Store(6, store.terms).sequences(200) == 1


def test_terms_of_a_store_add_up() -> None:
    """100 tokens: 7 growing pages, 2 + 1 of a window of 31, 1 of a state: 11 of 55 blocks."""
    terms = (Term(1.0, 16), Term(1.0, 16, reach=31, extra=1), Term(1.0, reach=0, extra=1))
    assert Store(55, terms).sequences(100) == 5
    assert Store(54, terms).sequences(100) == 4


def test_the_scarcest_store_decides() -> None:
    pool = Pool((Store(70, (Term(1.0, 16),)), Store(3, (Term(1.0, reach=0, extra=1),))), None)
    assert pool.sequences(16) == 3
    assert pool.sequences(16 * 30) == 2
    assert pool.fits(2, 16 * 35)
    assert not pool.fits(2, 16 * 35 + 1)
    assert not pool.fits(4, 1)
    assert Pool((Store(5, ()),), None).sequences(100) == math.inf


terms = st.builds(
    Term,
    count=st.integers(1, 4).map(float),
    tokens=st.sampled_from([1, 4, 16]),
    reach=st.sampled_from([7, 32, 100, UNBOUNDED]),
    extra=st.sampled_from([0.0, 1.0]),
    ahead=st.sampled_from([0, 8, 64]),
)
stores = st.builds(Store, st.integers(0, 500).map(float), st.tuples(terms, terms))
pools = st.builds(Pool, st.tuples(stores), st.none())


@settings(max_examples=50)
@given(pools, st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_arrays_and_scalars_agree(pool: Pool, contexts: list[int]) -> None:
    together = pool.sequences_of(np.array(contexts, float))
    assert together.tolist() == [pool.sequences(context) for context in contexts]


@settings(max_examples=50)
@given(pools, st.integers(1, 400), st.integers(1, 100))
def test_longer_sequences_are_never_more(pool: Pool, context: int, more: int) -> None:
    assert pool.sequences(context) >= pool.sequences(context + more)


@settings(max_examples=50)
@given(pools, st.integers(1, 12), st.integers(1, 1000))
def test_the_longest_context_is_the_longest(pool: Pool, sequences: int, most: int) -> None:
    longest = pool.longest(sequences, most)
    assert 0 <= longest <= most
    assert longest == 0 or pool.sequences(longest) >= sequences
    assert longest == most or pool.sequences(longest + 1) < sequences


@settings(max_examples=50)
@given(stores, st.integers(1, 300))
def test_what_fits_is_what_is_needed(store: Store, context: int) -> None:
    fitting = store.sequences(context)
    assert fitting == 0 or store.needed(fitting, context) <= store.blocks
    assert store.needed(fitting + 1, context) > store.blocks


ALIKE = [Kind(4, token_bytes=100)]


@pytest.mark.parametrize(
    ("pool", "block", "cp", "printed"),
    [
        # 10,000 / (4·100) = 25 tokens; whole blocks of 4 hold 24.
        (10_000, 1, 1, 25),
        (10_000, 4, 1, 24),
        # Two ranks share a sequence: blocks of 4 hold 8 tokens, 6 of them.
        (10_000, 4, 2, 48),
        (0, 4, 1, 0),
    ],
)
def test_layers_that_grow_alike_take_bytes(pool: float, block: int, cp: int, printed: int) -> None:
    rules = PageRules(Paging(), block, 0, 0, decode_cp=cp)
    assert pool_of(pool, ALIKE, rules).printed == printed


def test_ranks_that_share_a_sequence_share_its_pages() -> None:
    """Blocks of 4 tokens on each of 2 ranks: 9 tokens take ⌈9/8⌉ = 2 pages of 1,600 bytes."""
    (store,) = pool_of(10_000, ALIKE, PageRules(Paging(), 4, 0, 0, decode_cp=2)).stores
    assert store.needed(1, 9) == 2 * 1_600
    assert store.sequences(9) == 3


def test_bytes_take_windows_and_states_as_they_come() -> None:
    """2 layers of 100 byte, 3 that keep 10 tokens, 1 state of 5,000: 50 tokens take 18,000."""
    layers = [
        Kind(2, token_bytes=100),
        Kind(3, token_bytes=100, window=10),
        Kind(1, state_bytes=5_000),
    ]
    pool = pool_of(54_000, layers, PageRules(Paging(layout="bytes"), 1, 0, 0))
    assert pool.stores[0].needed(1, 50) == 10_000 + 3_000 + 5_000
    assert pool.sequences(50) == 3
    assert pool.printed == 270  # of what grows: 54,000 / 200


MIXED = [Kind(2, token_bytes=100), Kind(4, token_bytes=100, window=33), Kind(2, state_bytes=3_000)]


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        # Groups as large as the rarest kind: 2 + 4 layers are 1 + 2 groups.
        ((2, 4), 3),
        # 10 and 52: 1 + 6 groups, the last of them padded.
        ((10, 52), 7),
        # 12 and 10 differ by less than half: groups of 12, one each.
        ((12, 10), 2),
        ((15, 10), 3),
        ((14, 10), 2),
    ],
)
def test_groups_of_equal_size(counts: tuple[int, int], groups: int) -> None:
    full, sliding = counts
    layers = [Kind(full, token_bytes=100), Kind(sliding, token_bytes=100, window=64)]
    (store,) = pool_of(10_000_000, layers, PageRules(BLOCKS, 16, 0, 4096)).stores
    assert sum(term.count for term in store.terms) == groups
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    assert store.blocks == 10_000_000 // (1600 * size)


def test_a_group_of_states_takes_a_block_a_sequence() -> None:
    """Pages of 2 blocks of 16 tokens hold a state of 3,000: 3,200 byte; groups of 2 layers.

    A sequence of 100 tokens takes ⌈100/32⌉ = 4 growing pages, 2·(⌈32/32⌉ + 1) of windows and a
    state.
    """
    pool = pool_of(640_000, MIXED, PageRules(BLOCKS, 16, 0, 4096))
    (store,) = pool.stores
    assert store.blocks == 640_000 // (3_200 * 2) == 100
    assert store.needed(1, 100) == 4 + 2 * 2 + 1
    assert pool.sequences(100) == 11
    assert pool.printed == 100 // 4 * 32


@pytest.mark.parametrize(("caching", "blocks"), [(True, 3), (False, 2)])
def test_states_take_more_blocks_where_prefixes_are_cached(caching: bool, blocks: int) -> None:
    paging = Paging(layout="groups", state_blocks=2, cached_state_blocks=3)
    rules = PageRules(paging, 16, 0, 4096, prefix_caching=caching)
    (store,) = pool_of(640_000, MIXED, rules).stores
    assert store.needed(1, 1) - store.needed(1, 0) == 1 + 2
    assert store.needed(1, 0) == 2 + blocks  # a page each of two groups of windows


@pytest.mark.parametrize(("flight", "pages"), [(1, 3), (2, 5)])
def test_windows_keep_the_tokens_of_unsettled_steps(flight: int, pages: int) -> None:
    """A window of 17 with steps of 32: ⌈(16 + 32·n)/16⌉ pages and one more."""
    paging = Paging(layout="groups", printed="requests", steps_in_flight=flight)
    layers = [Kind(1, token_bytes=100), Kind(1, token_bytes=100, window=17)]
    rules = PageRules(paging, 16, 32, 160)
    pool = pool_of(160_000, layers, rules)
    (store,) = pool.stores
    assert rules.ahead == 32 * flight
    assert store.needed(1, 160) == 10 + pages + 1
    assert pool.printed == math.floor(100 / (10 + pages + 1) * 160)


def test_wider_heads_have_shorter_pages() -> None:
    """Layers of 200 and 100 byte: a page of 16·200 holds 16 tokens of one and 32 of the other."""
    layers = [Kind(1, token_bytes=200), Kind(1, token_bytes=100)]
    spread = [*layers, Kind(1, token_bytes=100, window=64)]
    (store,) = pool_of(320_000, spread, PageRules(BLOCKS, 16, 0, 4096)).stores
    assert store.blocks == 100
    assert store.needed(1, 64) == 4 + 2 + (2 + 1)


def test_shares_split_a_pool_in_three() -> None:
    """A fifth for states of 500: 4 slots of 10,000; the rest in pages of 4 tokens.

    8,000 / (4·(2·100 + 0.5·2·50)) = 8 pages: 8 for growing layers, 4 for windows.
    """
    layers = [Kind(2, token_bytes=100), Kind(2, token_bytes=50, window=6), Kind(1, state_bytes=500)]
    paging = Paging(layout="shares", window_share=0.5, state_share=0.2)
    pool = pool_of(10_000, layers, PageRules(paging, 4, 8, 0))
    growing, windows, states = pool.stores
    assert (growing.blocks, windows.blocks, states.blocks) == (8, 4, 4)
    assert pool.printed == 32
    assert growing.sequences(16) == 2
    # 6 of 16 tokens are kept, 6 + 8 in a prompt: 2 pages at rest, 4 in the prompt.
    assert windows.sequences(16) == 1
    assert states.sequences(16) == 4


def test_a_share_of_windows_counts_alone_where_nothing_grows() -> None:
    layers = [Kind(2, token_bytes=100, window=64), Kind(1, state_bytes=10)]
    paging = Paging(layout="shares", window_share=0.1)
    pool = pool_of(20_000, layers, PageRules(paging, 1, 0, 0))
    assert pool.printed == 100
    assert pool.stores[0].blocks == 100


@pytest.mark.parametrize(
    ("model_type", "layout", "whole"),
    [("gemma3", "shares", True), ("llama4", "groups", False), ("", "groups", False)],
)
def test_types_of_models_may_be_laid_out_otherwise(
    model_type: str, layout: str, whole: bool
) -> None:
    paging = Paging("groups", {"gemma3": "shares"}, whole_windows=("gemma3",))
    assert paging.layout_of(model_type) == layout
    assert paging.keeps_whole_windows(model_type) == whole
    assert Paging(whole_windows=("*",)).keeps_whole_windows(model_type)


@pytest.mark.parametrize(
    ("blocks", "longest", "tokens"),
    # ⌈100/16⌉ = 7 pages a request: 10, then 71/7 requests of 100 tokens.
    [(70, 100, 1000), (71, 100, 1014), (7, 100, 100), (3, 100, 42)],
)
def test_printed_tokens_of_requests(blocks: float, longest: int, tokens: int) -> None:
    assert requested_tokens(blocks, [Term(1.0, 16)], longest) == tokens


def model(*parts: Mamba1 | Mamba2) -> ModelSpec:
    groups = tuple(LayerGroup(2, Block((part,))) for part in parts)
    return ModelSpec("x", "x", 64, 100, groups, tied_embeddings=True)


@pytest.mark.parametrize(
    ("tp", "state"),
    # 8 heads of 4×16 and a window of (32 + 2·16)·4: 768 values of two bytes, split at most 8 ways.
    [(1, 1536), (2, 768), (8, 192), (16, 192)],
)
def test_states_are_split_over_their_heads(tp: int, state: float) -> None:
    spec = model(Mamba2(64, heads=8, head_dim=4, state=16, groups=1, taps=4))
    assert kinds(spec, Sharding(tp), spec.formats()) == [Kind(2, state_bytes=state)]


def test_a_state_of_channels_is_split_any_way() -> None:
    spec = model(Mamba1(64, 128, 16, 4, Convolution(128, 4)))
    whole = 2 * 128 * (16 + 4)
    for tp in (1, 4, 32):
        assert kinds(spec, Sharding(tp), spec.formats()) == [Kind(2, state_bytes=whole / tp)]


@pytest.mark.parametrize(
    ("tp", "each"),
    # vLLM keeps 3 of 4 inputs of the convolution, at 16 bits: 512 + 64·3 values, 8 ways at most.
    [(1, 4 * 512 + 2 * 192), (2, 2 * 512 + 192), (16, 512 / 2 + 2 * 24)],
)
def test_engines_keep_the_inputs_a_convolution_needs(tp: int, each: float) -> None:
    spec = replace(
        model(Mamba2(64, heads=8, head_dim=4, state=16, groups=1, taps=4)), state_dtype="fp32"
    )
    paging = Paging(window_value_bytes=2)
    assert kinds(spec, Sharding(tp), spec.formats(), paging=paging) == [Kind(2, state_bytes=each)]


@pytest.mark.parametrize(("tp", "each"), [(1, 4096), (4, 1024), (8, 512), (16, 512)])
def test_heads_of_keys_replicate_beyond_their_number(tp: int, each: float) -> None:
    """Llama-3.1-8B: 2·8·128 values of two bytes a layer; 16 ranks hold a whole head each."""
    spec = get_model("meta-llama/Llama-3.1-8B-Instruct")
    assert kinds(spec, Sharding(tp), spec.formats()) == [Kind(32, token_bytes=each)]


@pytest.mark.parametrize(("pp", "layers"), [(1, 32), (2, 16), (4, 8)])
def test_a_pipeline_divides_layers(pp: int, layers: float) -> None:
    spec = get_model("meta-llama/Llama-3.1-8B-Instruct")
    ((kind,),) = [kinds(spec, Sharding(pp=pp), spec.formats())]
    assert kind.layers == layers


def test_windows_that_keep_every_token_grow() -> None:
    """gpt-oss-20b: 24 layers of 2·8·64 values, half of them 128 tokens long."""
    spec = get_model("openai/gpt-oss-20b")
    apart = kinds(spec, Sharding(), spec.formats())
    assert {(kind.layers, kind.window) for kind in apart} == {(12, 128), (12, math.inf)}
    (whole,) = kinds(spec, Sharding(), spec.formats(), paging=Paging(whole_windows=("*",)))
    assert (whole.layers, whole.token_bytes, whole.grows) == (24, 2048, True)
