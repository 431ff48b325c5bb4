"""Names of modules in ignore lists and target lists, resolved to the roles of weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PREFIX = re.compile(
    r"^(model\.language_model\.|language_model\.model\.|language_model\.|model\.|backbone\.)+"
)

_ATTENTION = ("self_attn.q_proj", "self_attn.o_proj", "self_attn.kv_b_proj", "self_attn.qkv_proj",
              "mixer.q_proj")  # fmt: skip
SAMPLES: dict[str, tuple[str, ...]] = {
    "attention": _ATTENTION,
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mixer.up_proj"),
    "experts": ("mlp.experts.1.gate_proj", "mlp.experts.1.down_proj", "experts.1.down_proj",
                "block_sparse_moe.experts.1.w1", "mixer.experts.1.up_proj", "mlp.experts.w2"),
    "shared_experts": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.down_proj",
                       "mlp.shared_experts.down_proj", "mixer.shared_experts.up_proj",
                       "mlp.shared_mlp.up_proj"),
    "indexer": ("self_attn.indexer.wq_b", "self_attn.indexer.wk"),
    "mixer": ("linear_attn.in_proj_qkv", "linear_attn.out_proj", "mamba.in_proj", "mixer.in_proj",
              "conv.in_proj"),
}  # fmt: skip
"""Modules that stand for a role, below `layers.N.`."""


class Modules:
    """A list of module names, globs and regular expressions ("re:…") of a checkpoint.

    A name covers the modules below it, and may leave out the front of a path.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: dict[str, str] = {}
        expressions: list[str] = []
        for pattern in patterns:
            if pattern.startswith("re:"):
                expressions.append(f"(?:{pattern[3:]})")
                continue
            name = _PREFIX.sub("", pattern)
            if "*" in name:
                body = re.escape(name).replace(r"\*", ".*")
                expressions.append(rf"(?:.*\.)?{body}(?:\..*)?$")
            else:
                self._plain[name.removesuffix(".weight")] = pattern
        try:
            self._expression = re.compile("|".join(expressions)) if expressions else None
        except re.error:
            self._expression = None

    def find(self, module: str) -> str | None:
        """Return the pattern that covers `module` ("" where it is an expression), or None."""
        for path in _subpaths(module):
            if path in self._plain:
                return self._plain[path]
        if self._expression and self._expression.match(module):
            return ""
        return None

    def layers_covered(self, role: str, layers: Iterable[int]) -> float:
        """Return the share of `layers` in which a module of `role` is covered, 0 to 1."""
        found = [
            any(self.find(f"layers.{index}.{module}") is not None for module in SAMPLES[role])
            for index in layers
        ]
        return sum(found) / max(1, len(found))

    def first(self, role: str, layers: Iterable[int]) -> str | None:
        """Return the first pattern that covers a module of `role`, or None."""
        names = (f"layers.{index}.{module}" for index in layers for module in SAMPLES[role])
        return next((hit for name in names if (hit := self.find(name)) is not None), None)


def _subpaths(module: str) -> Iterator[str]:
    parts = module.split(".")
    for start in range(len(parts)):
        for end in range(len(parts), start, -1):
            yield ".".join(parts[start:end])
