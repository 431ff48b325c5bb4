"""How an engine divides a cache pool among layers, and the number of tokens it prints for it.

A model whose layers all grow alike is simple: tokens = pool / bytes a token. Where layers differ
(sliding windows, recurrent states, heads of other sizes), vLLM puts layers of one kind into groups
of equal size, gives every group pages of one size, and lets a page serve any group
(vLLM 0.11 and later, v1/core/kv_cache_utils.py); SGLang keeps a pool a kind; others charge windows
in full. Which one applies is an engine's data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.models.caches import Cache
from planner.models.parts import Formats, Part
from planner.models.spec import ModelSpec
from planner.step.parallel import Sharding


@dataclass(frozen=True, slots=True)
class Paging:
    """How an engine divides the pool."""

    layout: str = "pools"
    """`groups` of layers that share pages, or `pools`, one for each kind of layer."""
    printed: str = "blocks"
    """What the printed tokens are in `groups`: `blocks` of one group, or `requests` of the longest
    context that fit, times that context."""
    window_share: float | None = None
    """Tokens a window's pool holds for each of the growing layers' [-]; None keeps as many as fill
    the windows."""
    state_share: float = 0.0
    """Share of the pool set aside for recurrent states; 0 divides it as sequences need [-]."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Layers of one kind on one GPU."""

    layers: float
    token_bytes: float = 0.0
    """Cache bytes of a token in one layer [byte]."""
    window: float = math.inf
    state_bytes: float = 0.0
    """Bytes of a sequence's state in one layer [byte]."""


def kinds(
    spec: ModelSpec, sharding: Sharding, formats: Formats, latent: str = "latent"
) -> list[Kind]:
    """Return the kinds of caching layers of a model, layers of one kind together.

    The caches of a layer that grow alike (a latent and its indexer's keys) are one. `latent` says
    how a latent is kept: `latent`, `latent_and_values` (transposed once more), or `expanded` into
    keys and values of every head.
    """
    layers_by_kind: dict[tuple[float, float, float], float] = {}
    for group in spec.groups:
        count = group.count / sharding.pp
        for part in group.block.parts:
            by_window: dict[float, float] = {}
            for cache in _CACHES_BY_LAYOUT[latent](part):
                each = cache.elements_per_token * formats.kv.bytes / min(sharding.tp, cache.ways)
                by_window[cache.window] = by_window.get(cache.window, 0.0) + each
            for window, each in by_window.items():
                layers_by_kind[each, window, 0.0] = (
                    layers_by_kind.get((each, window, 0.0), 0.0) + count
                )
            state = sum(
                s.elements * formats.state.bytes / min(sharding.tp, s.ways) for s in part.states()
            )
            if state and not by_window:
                layers_by_kind[0.0, math.inf, state] = (
                    layers_by_kind.get((0.0, math.inf, state), 0.0) + count
                )
    return [Kind(layers, *key) for key, layers in layers_by_kind.items()]


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


def printed_tokens(
    pool: float, layers: list[Kind], paging: Paging, block: int, chunk_tokens: int, max_len: int
) -> int | None:
    """Return the tokens an engine prints for a pool of `pool` bytes; None where nothing grows.

    `block` is the tokens of a block, `chunk_tokens` those of a step, `max_len` the longest context
    the engine was started for [token].
    """
    growing = [kind for kind in layers if kind.token_bytes]
    if not growing or pool <= 0:
        return None if not growing else 0
    rest = [kind for kind in layers if kind.state_bytes or kind.window < math.inf]
    layout = _LAYOUTS[paging.layout if rest else "pools"]
    return layout(pool, layers, paging, block, chunk_tokens, max_len)


def _pools(
    pool: float, layers: list[Kind], paging: Paging, block: int, chunk_tokens: int, max_len: int
) -> int:
    del chunk_tokens, max_len
    if any(kind.state_bytes for kind in layers):
        pool *= 1.0 - paging.state_share
    share = 1.0 if paging.window_share is None else paging.window_share
    a_token = sum(
        kind.layers * kind.token_bytes * (share if kind.window < math.inf else 1.0)
        for kind in layers
    )
    return math.floor(pool / (a_token * block)) * block


def _groups(
    pool: float, layers: list[Kind], paging: Paging, block: int, chunk_tokens: int, max_len: int
) -> int:
    """Groups of equal size: of the rarest kind's, or the commonest's if hardly larger."""
    page = _page_bytes(layers, block)
    counts = [kind.layers for kind in layers]
    size = max(counts) if max(counts) < 1.25 * min(counts) else min(counts)
    groups = [math.ceil(kind.layers / size - 1e-9) for kind in layers]
    blocks = math.floor(pool / (page * size))
    if paging.printed == "blocks":
        tokens = [_block_tokens(kind, page, block) for kind in layers if kind.token_bytes]
        return blocks // sum(groups) * min(tokens)
    needed = sum(
        number * _pages(kind, _block_tokens(kind, page, block), chunk_tokens, max_len)
        for kind, number in zip(layers, groups, strict=True)
    )
    return math.floor(blocks / needed * max_len)


def _page_bytes(layers: list[Kind], block: int) -> float:
    """Bytes of a page: a block of the widest layer, made long enough to hold a state."""
    widest = max(kind.token_bytes for kind in layers) * block
    state = max(kind.state_bytes for kind in layers)
    return widest * max(1, math.ceil(state / widest))


def _block_tokens(kind: Kind, page: float, block: int) -> int:
    """Tokens of a page in a layer of this kind: whole blocks."""
    return math.floor(page / (kind.token_bytes * block)) * block if kind.token_bytes else 0


def _pages(kind: Kind, tokens: int, chunk_tokens: int, max_len: int) -> int:
    """Pages a request of `max_len` tokens takes in one group: one for a state; a window keeps what
    a step may add to it."""
    if not kind.token_bytes:
        return 1
    if kind.window == math.inf:
        return math.ceil(max_len / tokens)
    return math.ceil(min(kind.window - 1 + chunk_tokens, max_len) / tokens) + 1


_LAYOUTS: dict[str, Callable[[float, list[Kind], Paging, int, int, int], int]] = {
    "pools": _pools,
    "groups": _groups,
}
