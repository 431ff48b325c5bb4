"""Pages of compressed attention (DeepSeek-V4) as vLLM lays them out, from 0.20 on.

All entries and index keys are one group of pages of 256 tokens; sliding windows and the states of
the compressors are groups of their own with pages of 64, 4 and 8 tokens. A page is a multiple of
576 bytes, and a block serves one group at a time. What a block has room for changed:

========= ================================================================ =====================
vLLM      bytes of a block                                                 check at the start by
========= ================================================================ =====================
0.20-0.23 tuples: a page of each size of the entries, for the most tuples  the same
0.24-0.26 slots: of each size the most pages any group has                 tuples
0.27-0.28 the widest group                                                 tuples
0.29-0.33 the widest group                                                 the same
========= ================================================================ =====================

Up to 0.26 the pages of states are padded to those of entries, and the tokens printed count a page
of a group by its bytes over those of the entries'; from 0.27 neither. Read in vLLM 0.20, 0.22 to
0.33 (v1/core/kv_cache_utils.py, kv_cache_planning.py, kv_cache_interface.py, models/deepseek_v4);
the page sizes of DeepSeek-V4-Flash are those of vLLM issue 54703: 1,002,240 bytes for the 62 caches
of entries, 823,680 for 22 windows, 870,912 and 656,640 for the states without padding.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from planner.engines.pages import PageRules, requested_tokens
from planner.engines.pool import UNBOUNDED, Pool, Store, Term
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

    def padded(self, sizes: list[int]) -> _Group:
        """Return the group with pages as large as the next of these sizes."""
        pages = tuple(min(size for size in sizes if size >= page) for page in self.pages)
        return replace(self, pages=pages)

    def on_stage(self, pp: int) -> dict[int, int]:
        """Return the caches of one pipeline stage by the size of their pages [-]."""
        return {size: math.ceil(count / pp) for size, count in Counter(self.pages).items()}


def compressed_pool(
    pool_bytes: float, spec: ModelSpec, formats: Formats, rules: PageRules, pp: int
) -> Pool:
    """Return the pool of a model of compressed attention on one GPU."""
    entries, windows, states = _groups(spec, formats)
    tuples = _common_tuples([g.tuples for g in (entries, windows, *states)], entries.tuples)
    moving = [*_split(windows, tuples), *states]
    padded = rules.paging.packing != "widest"
    if padded:
        sizes = sorted(set(entries.pages))
        moving = [group.padded(sizes) for group in moving]
    each = {
        "tuples": math.ceil(tuples / pp) * sum(set(entries.pages)),
        "slots": _slots([entries, *moving], pp),
        "widest": max(_bytes_on_stage(group, pp) for group in (entries, *moving)),
    }
    blocks = float(pool_bytes // each[rules.paging.packing])
    terms = [Term(1.0, entries.tokens)]
    terms += [_window_term(group, rules, sum(entries.pages) if padded else 0) for group in moving]
    store = Store(blocks, tuple(terms))
    at_start = replace(store, blocks=float(pool_bytes // each[rules.paging.start_packing]))
    longest = Pool((at_start,), None).longest(1, UNBOUNDED) if at_start != store else UNBOUNDED
    if rules.paging.printed == "blocks":
        printed = int(blocks // len(terms)) * min(term.tokens for term in terms)
    else:
        printed = requested_tokens(blocks, terms, rules.longest)
    return Pool((store,), printed, longest)


def _slots(groups: list[_Group], pp: int) -> int:
    """Return the bytes of the most pages of each size that any group has [byte]."""
    most: Counter[int] = Counter()
    for group in groups:
        most |= Counter(group.on_stage(pp))
    return sum(size * count for size, count in most.items())


def _bytes_on_stage(group: _Group, pp: int) -> int:
    return sum(size * count for size, count in group.on_stage(pp).items())


def _window_term(group: _Group, rules: PageRules, whole: int) -> Term:
    """Return the term of a group that moves on; the tokens printed count its pages in full where
    `whole`, the bytes of the entries' pages, is 0."""
    weight = sum(group.pages) / whole if whole else 1.0
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
