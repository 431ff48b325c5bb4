"""How an engine lays its cache out: the kinds of layers, and the blocks they take of a pool.

A model whose layers all grow alike is simple: tokens = pool / bytes a token. Where layers differ
(sliding windows, recurrent states, heads of other sizes), vLLM puts layers of one kind into groups
of equal size, gives every group pages of one size, and lets a page serve any group
(vLLM 0.11 and later, v1/core/kv_cache_utils.py); SGLang keeps a pool a kind; others take bytes as
sequences need them. Which one applies is an engine's data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.engines.pool import UNBOUNDED, Pool, Store, Term
from planner.models.caches import Cache, State
from planner.models.parts import Formats, Part
from planner.models.spec import ModelSpec
from planner.step.parallel import Sharding

EVEN = 1.5
"""Kinds whose numbers of layers differ by less than this factor are groups of the larger (vLLM
0.19 to 0.33) [-]."""


@dataclass(frozen=True, slots=True)
class Paging:
    """How an engine divides the pool."""

    layout: str = "bytes"
    """`groups` of layers that share pages, `shares` of the pool for each kind of layer, or `bytes`
    as sequences need them."""
    layout_by_type: Mapping[str, str] = field(default_factory=dict)
    """Layout of model types that have another."""
    printed: str = "blocks"
    """What the printed tokens are in `groups`: `blocks` of one group, or `requests` of the longest
    context that fit, times that context."""
    whole_windows: tuple[str, ...] = ()
    """Model types whose windows keep every token; `*` for all."""
    window_share: float = 1.0
    """In `shares`: tokens a window's pool holds for each of the growing layers' [-]."""
    state_share: float = 0.0
    """In `shares`: share of the pool set aside for recurrent states [-]."""
    steps_in_flight: int = 1
    """Steps scheduled before the first is settled, whose tokens windows keep [-]."""
    state_blocks: int = 1
    """Blocks of a sequence's state [-]."""
    cached_state_blocks: int = 1
    """The same where prefixes are cached [-]."""
    state_blocks_per_draft: int = 0
    """More of them for each token that is drafted a step [-]."""
    window_value_bytes: float = 0.0
    """A value of a convolution's last inputs where only those are kept that the next token needs;
    0 keeps them as the reference implementation does, in the format of states [byte]."""
    packing: str = "widest"
    """Where layers of unequal pages share blocks (`tuples`), what a block has room for: `tuples` of
    one page of each size, `slots` for the most pages of each size, or the `widest` group."""
    start_packing: str = "widest"
    """The same for the check of the longest context at a start."""

    def layout_of(self, model_type: str) -> str:
        """Return the layout of a type of model."""
        return self.layout_by_type.get(model_type, self.layout)

    def keeps_whole_windows(self, model_type: str) -> bool:
        """Return whether its windows keep every token."""
        return "*" in self.whole_windows or model_type in self.whole_windows


@dataclass(frozen=True, slots=True)
class Kind:
    """Layers of one kind on one GPU."""

    layers: float
    token_bytes: float = 0.0
    """Cache bytes of a token in one layer [byte]."""
    window: float = math.inf
    state_bytes: float = 0.0
    """Bytes of a sequence's state in one layer [byte]."""

    @property
    def grows(self) -> bool:
        """Whether it keeps every token."""
        return bool(self.token_bytes) and math.isinf(self.window)


@dataclass(frozen=True, slots=True)
class PageRules:
    """What a deployment says of pages."""

    paging: Paging
    block_tokens: int
    """Tokens of a block [token]."""
    chunk_tokens: int
    """Tokens of a step [token]."""
    longest: int
    """Longest context the engine was started for [token]."""
    model_type: str = ""
    decode_cp: int = 1
    """Ranks that share the tokens of a sequence [-]."""
    prefix_caching: bool = True
    drafts: int = 0
    """Tokens drafted a step [-]."""
    cells: int | None = None
    """Tokens of a cache that is allocated whole; None where it is as large as memory [token]."""

    @property
    def ahead(self) -> int:
        """Tokens of steps that are not settled [token]."""
        return self.chunk_tokens * self.paging.steps_in_flight

    @property
    def state_blocks(self) -> int:
        """Blocks of a sequence's state [-]."""
        paging = self.paging
        blocks = paging.cached_state_blocks if self.prefix_caching else paging.state_blocks
        return blocks + paging.state_blocks_per_draft * self.drafts


def kinds(
    spec: ModelSpec,
    sharding: Sharding,
    formats: Formats,
    latent: str = "latent",
    paging: Paging = Paging(),
) -> list[Kind]:
    """Return the kinds of caching layers of a model, layers of one kind together.

    The caches of a layer that grow alike (a latent and its indexer's keys) are one. `latent` says
    how a latent is kept: `latent`, `latent_and_values` (transposed once more), or `expanded` into
    keys and values of every head. `paging` says whether windows keep every token, and which of a
    convolution's inputs are kept.
    """
    whole_windows = paging.keeps_whole_windows(spec.model_type)
    layers_by_kind: dict[tuple[float, float, float], float] = {}

    def add(key: tuple[float, float, float], count: float) -> None:
        layers_by_kind[key] = layers_by_kind.get(key, 0.0) + count

    for group in spec.groups:
        count = group.count / sharding.pp
        for part in group.block.parts:
            by_window: dict[float, float] = {}
            for cache in _CACHES_BY_LAYOUT[latent](part):
                each = cache.elements_per_token * formats.of_cache(cache).bytes
                window = math.inf if whole_windows else cache.window
                each /= min(sharding.tp, cache.ways)
                by_window[window] = by_window.get(window, 0.0) + each
            for window, each in by_window.items():
                add((each, window, 0.0), count)
            state = sum(
                _state_bytes(state, formats, paging) / min(sharding.tp, state.ways)
                for state in part.states()
            )
            if state:
                add((0.0, math.inf, state), count)
    return [Kind(layers, *key) for key, layers in layers_by_kind.items()]


def _state_bytes(state: State, formats: Formats, paging: Paging) -> float:
    """Return the bytes of one state of a sequence, before sharding [byte]."""
    if state.needed and paging.window_value_bytes:
        return state.needed * paging.window_value_bytes
    return state.elements * formats.state.bytes


def _expanded(part: Part) -> tuple[Cache, ...]:
    latent = part.latent_cache
    return part.caches() if latent is None else (latent.expanded,)


def _with_values(part: Part) -> tuple[Cache, ...]:
    latent = part.latent_cache
    return part.caches() if latent is None else (*part.caches(), Cache(latent.rank, 1))


_CACHES_BY_LAYOUT: dict[str, Callable[[Part], tuple[Cache, ...]]] = {
    "latent": lambda part: part.caches(),
    "latent_and_values": _with_values,
    "expanded": _expanded,
}
"""Caches of a part by how latents are kept."""


def pool_of(pool_bytes: float, layers: list[Kind], rules: PageRules) -> Pool:
    """Return a pool of `pool_bytes` on one GPU, laid out by an engine's rules."""
    mixed = any(kind.state_bytes or kind.window < math.inf for kind in layers)
    growing = any(kind.token_bytes for kind in layers)
    layout = rules.paging.layout_of(rules.model_type) if mixed and growing else "bytes"
    return _LAYOUTS[layout](max(0.0, pool_bytes), layers, rules)


def _bytes(pool_bytes: float, layers: list[Kind], rules: PageRules) -> Pool:
    """Blocks are bytes: every kind of layer takes what a sequence needs, in whole pages."""
    block, shared = rules.block_tokens, rules.block_tokens * rules.decode_cp
    terms = []
    for kind in layers:
        page = kind.layers * kind.token_bytes * block
        if kind.grows:
            terms.append(Term(page, shared))
        elif kind.token_bytes:
            window = Term(page / block, 1, int(kind.window), ahead=_window_ahead(rules))
            terms.append(window)
        else:
            terms.append(Term(kind.layers * kind.state_bytes, reach=0, extra=1))
    growth = sum(term.count / term.tokens for term in terms if term.reach == UNBOUNDED)
    stores = [Store(pool_bytes, _merged(terms))]
    printed = math.floor(pool_bytes / (growth * shared)) * shared if growth else None
    if rules.cells is not None:
        stores.append(Store(float(rules.cells), (Term(1.0),)))
        printed = rules.cells
    return Pool(tuple(stores), printed)


def _window_ahead(rules: PageRules) -> int:
    return rules.ahead if rules.paging.printed == "cells" else 0


def _merged(terms: list[Term]) -> tuple[Term, ...]:
    """Growing terms of equal pages are one, so that few are read for every point of a plan."""
    growing: dict[int, float] = {}
    for term in terms:
        if term.reach == UNBOUNDED:
            growing[term.tokens] = growing.get(term.tokens, 0.0) + term.count
    rest = [term for term in terms if term.reach != UNBOUNDED]
    return (*(Term(count, tokens) for tokens, count in growing.items()), *rest)


def _shares(pool_bytes: float, layers: list[Kind], rules: PageRules) -> Pool:
    """A pool for growing layers, one for windows and one for states, in fixed proportions."""
    paging, page = rules.paging, rules.block_tokens
    state = sum(kind.layers * kind.state_bytes for kind in layers)
    tokens_bytes = pool_bytes * (1.0 - paging.state_share) if state else pool_bytes
    growing = sum(kind.layers * kind.token_bytes for kind in layers if kind.grows)
    windows = [kind for kind in layers if kind.token_bytes and not kind.grows]
    share = paging.window_share if growing else 1.0
    a_token = growing / rules.decode_cp
    a_token += share * sum(kind.layers * kind.token_bytes for kind in windows)
    pages = math.floor(tokens_bytes / (a_token * page))
    stores = []
    if growing:
        stores.append(Store(float(pages), (Term(1.0, page),)))
    if windows:
        reach = int(max(kind.window for kind in windows))
        blocks = float(math.floor(pages * share))
        stores.append(Store(blocks, (Term(1.0, page, reach, ahead=rules.ahead),)))
    if state:
        slots = float(math.floor((pool_bytes - tokens_bytes) / state))
        stores.append(Store(slots, (Term(1.0, reach=0, extra=1),)))
    return Pool(tuple(stores), pages * page)


def _groups(pool_bytes: float, layers: list[Kind], rules: PageRules) -> Pool:
    """Groups of equal size: of the rarest kind's, or the commonest's if hardly larger."""
    page = _page_bytes(layers, rules.block_tokens)
    counts = [kind.layers for kind in layers]
    size = max(counts) if max(counts) < EVEN * min(counts) else min(counts)
    blocks = float(math.floor(pool_bytes / (page * size)))
    terms, spans = [], []
    for kind in layers:
        number = math.ceil(kind.layers / size - 1e-9)
        if not kind.token_bytes:
            terms.append(Term(number, reach=0, extra=rules.state_blocks))
            continue
        tokens = _block_tokens(kind, page, rules.block_tokens)
        spans.append(tokens)
        if kind.grows:
            terms.append(Term(number, tokens * rules.decode_cp))
        else:
            reach = int(kind.window) - 1
            terms.append(Term(number, tokens, reach, extra=1, ahead=rules.ahead))
    if rules.paging.printed == "blocks":
        printed = int(blocks // sum(term.count for term in terms)) * min(spans) * rules.decode_cp
    else:
        printed = requested_tokens(blocks, terms, rules.longest)
    return Pool((Store(blocks, tuple(terms)),), printed)


def requested_tokens(blocks: float, terms: list[Term], longest: int) -> int:
    """Return the requests of `longest` tokens that blocks hold, times their tokens [token]."""
    needed = math.ceil(sum(float(term.peak(longest)) * term.weight for term in terms) - 1e-9)
    return math.floor(blocks / needed * longest)


def _page_bytes(layers: list[Kind], block: int) -> float:
    """Bytes of a page: a block of the widest layer, made long enough to hold a state."""
    widest = max(kind.token_bytes for kind in layers) * block
    state = max(kind.state_bytes for kind in layers)
    return widest * max(1, math.ceil(state / widest))


def _block_tokens(kind: Kind, page: float, block: int) -> int:
    """Tokens of a page in a layer of this kind: whole blocks."""
    return math.floor(page / (kind.token_bytes * block)) * block


_LAYOUTS: dict[str, Callable[[float, list[Kind], PageRules], Pool]] = {
    "bytes": _bytes,
    "shares": _shares,
    "groups": _groups,
}
