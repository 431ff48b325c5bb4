"""Pages of compressed attention (DeepSeek-V4) as vLLM lays them out, from 0.20 on.

All entries and index keys are one group of pages of 256 tokens; sliding windows and the states of
the compressors are groups of their own with pages of 64, 4 and 8 tokens. Every block has room for
the same number of tuples of pages (entries at one ratio, index keys, entries at the other), each a
multiple of 576 bytes, so that a state page of 4 tokens takes as much as 256 tokens of entries.
Read in vLLM 0.24 (v1/core/kv_cache_utils.py, kv_cache_interface.py, models/deepseek_v4); the page
sizes of DeepSeek-V4-Flash are those of vLLM issue 54703: 1,002,240 bytes for the 62 caches of
entries, 823,680 for 22 windows, 870,912 and 656,640 for the states.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from planner.engines.pages import PageRules, requested_tokens
from planner.engines.pool import Pool, Store, Term
from planner.models.compressed import CompressedAttention
from planner.models.parts import Formats
from planner.models.spec import ModelSpec

ALIGNMENT = 576
"""Pages are a multiple of this [byte]."""
BLOCK, WINDOW_BLOCK = 256, 64
"""Tokens of a page of entries, and of a window [token]."""
STATE_BLOCKS = {4: 4, 128: 8}
"""Tokens of a page of a compressor's state, by its ratio [token]."""
NARROW_ENTRY_BYTES = 584 / 512
"""A value of an 8-bit entry: 448 at one byte, 64 at two, and 8 of scales [byte]."""
STATE_VALUE_BYTES = 4
"""A value or gate of a compressor's state [byte]."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Caches that share a table of blocks."""

    pages: tuple[int, ...]
    """Bytes of a page of each [byte]."""
    tokens: int
    window: int = 0

    @property
    def tuples(self) -> int:
        """Caches of the commonest page size [-]."""
        return max(Counter(self.pages).values())


def compressed_pool(
    pool_bytes: float, spec: ModelSpec, formats: Formats, rules: PageRules, pp: int
) -> Pool:
    """Return the pool of a model of compressed attention on one GPU."""
    entries, windows, states = _groups(spec, formats)
    sizes = sorted(set(entries.pages))
    tuples = _common_tuples([g.tuples for g in (entries, windows, *states)], entries.tuples)
    slots = math.ceil(tuples / pp)
    blocks = float(math.floor(pool_bytes / (slots * sum(sizes))))
    whole = sum(entries.pages)
    moving = [*_split(windows, tuples), *states]
    terms = [Term(1.0, entries.tokens)]
    terms += [_window_term(group, rules, whole) for group in moving]
    return Pool((Store(blocks, tuple(terms)),), requested_tokens(blocks, terms, rules.longest))


def _window_term(group: _Group, rules: PageRules, whole: int) -> Term:
    weight = sum(group.pages) / whole
    reach = group.window - 1
    return Term(1.0, group.tokens, reach, extra=1, ahead=rules.ahead, weight=weight)


def _groups(spec: ModelSpec, formats: Formats) -> tuple[_Group, _Group, list[_Group]]:
    """Return the groups of entries, of windows, and of the compressors' states by ratio."""
    entries: list[int] = []
    windows: list[int] = []
    states: dict[tuple[int, int], list[int]] = {}
    reach = 1
    for group in spec.groups:
        for part in group.block.mixers:
            if not isinstance(part, CompressedAttention):
                continue
            entry = part.head_dim * (NARROW_ENTRY_BYTES if formats.kv.bits < 10 else 2)
            reach = part.window
            windows += [_page(WINDOW_BLOCK * entry)] * group.count
            if not part.ratio:
                continue
            entries += [_page(BLOCK // part.ratio * entry)] * group.count
            series = 2 if part.picker else 1
            widths = [part.head_dim]
            if part.picker:
                index = part.picker.head_dim * formats.index_kv.bytes
                entries += [_page(BLOCK // part.ratio * index)] * group.count
                widths.append(part.picker.head_dim)
            block = STATE_BLOCKS[part.ratio]
            page = [_page(block * 2 * series * w * STATE_VALUE_BYTES) for w in widths]
            states.setdefault((block, part.ratio * series), []).extend(page * group.count)
    by_ratio = [_Group(tuple(pages), *tokens) for tokens, pages in states.items()]
    return _Group(tuple(entries), BLOCK), _Group(tuple(windows), WINDOW_BLOCK, reach), by_ratio


def _page(size: float) -> int:
    return math.ceil(size / ALIGNMENT - 1e-9) * ALIGNMENT


def _common_tuples(counts: list[int], least: int) -> int:
    """Return the tuples of a block that waste least when counts are rounded up to multiples."""
    return min(range(least, max(counts) + 1), key=lambda n: (sum(-c % n for c in counts), -n))


def _split(group: _Group, tuples: int) -> list[_Group]:
    """Return groups of at most so many caches, as even as can be."""
    number = math.ceil(len(group.pages) / tuples)
    return [_Group(group.pages[i::number], group.tokens, group.window) for i in range(number)]
