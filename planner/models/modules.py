"""Names of modules in ignore lists and target lists, resolved to the roles of weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from planner.models.reader import ConfigReader
from planner.precision import Format, custom_format, get_format

RoleFormats = dict[str, Format]
"""Format of each role of weights that a checkpoint's quantisation names."""

_PREFIX = re.compile(
    r"^(model\.language_model\.|language_model\.model\.|language_model\.|model\.|backbone\.)+"
)

_SKIPPED = (
    "ignore",
    "ignored_layers",
    "modules_to_not_convert",
    "exclude_modules",
    "skip_modules",
    "llm_int8_skip_modules",
    "linear_weights_not_to_quantize",
    "exclude",
)
_ATTENTION = (
    "self_attn.q_proj",
    "self_attn.o_proj",
    "self_attn.kv_b_proj",
    "self_attn.qkv_proj",
    "mixer.q_proj",
)
SAMPLES: dict[str, tuple[str, ...]] = {
    "attention": _ATTENTION,
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mixer.up_proj"),
    "experts": (
        "mlp.experts.1.gate_proj",
        "mlp.experts.1.down_proj",
        "experts.1.down_proj",
        "block_sparse_moe.experts.1.w1",
        "mixer.experts.1.up_proj",
        "mlp.experts.w2",
    ),
    "shared_experts": (
        "mlp.shared_experts.gate_proj",
        "mlp.shared_expert.down_proj",
        "mlp.shared_experts.down_proj",
        "mixer.shared_experts.up_proj",
    ),
    "indexer": ("self_attn.indexer.wq_b", "self_attn.indexer.wk"),
    "mixer": (
        "linear_attn.in_proj_qkv",
        "linear_attn.out_proj",
        "mamba.in_proj",
        "mixer.in_proj",
        "conv.in_proj",
    ),
}
"""Modules that stand for a role, below `layers.N.`."""


_MATRICES: dict[str, tuple[str, ...]] = {
    "attention": tuple(f"self_attn.{name}_proj" for name in "qkvo"),
    "mlp": tuple(f"mlp.{name}_proj" for name in ("gate", "up", "down")),
    "experts": tuple(f"mlp.experts.1.{name}_proj" for name in ("gate", "up", "down")),
    "shared_experts": tuple(f"mlp.shared_experts.{name}_proj" for name in ("gate", "up", "down")),
}
"""All matrices of a role, where lists of modules set some apart."""


class Modules:
    """A list of module names, globs and regular expressions ("re:…") of a checkpoint.

    A name covers the modules below it, and may leave out the front of a path.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: dict[str, str] = {}
        self._expressions: list[tuple[re.Pattern[str], str]] = []
        for pattern in patterns:
            name = _PREFIX.sub("", pattern)
            if pattern.startswith("re:"):
                self._add(pattern[3:], pattern)
            elif "*" in name:
                body = re.escape(name).replace(r"\*", ".*")
                self._add(rf"(?:.*\.)?{body}(?:\..*)?$", pattern)
            else:
                self._plain[name.removesuffix(".weight")] = pattern

    def _add(self, expression: str, pattern: str) -> None:
        with suppress(re.error):
            self._expressions.append((re.compile(expression), pattern))

    def find(self, module: str) -> str | None:
        """Return the pattern that covers `module`, or None."""
        for path in _subpaths(module):
            if path in self._plain:
                return self._plain[path]
        return next((pattern for regex, pattern in self._expressions if regex.match(module)), None)

    def layers_covered(self, role: str, layers: Iterable[int]) -> float:
        """Return the share of `layers` in which a module of `role` is covered, 0 to 1."""
        covered = [
            any(self.find(f"layers.{index}.{module}") is not None for module in SAMPLES[role])
            for index in layers
        ]
        return sum(covered) / max(1, len(covered))

    def first(self, role: str, layers: Iterable[int]) -> str | None:
        """Return the first pattern that covers a module of `role`, or None."""
        names = (f"layers.{index}.{module}" for index in layers for module in SAMPLES[role])
        return next((hit for name in names if (hit := self.find(name)) is not None), None)


def _subpaths(module: str) -> Iterator[str]:
    parts = module.split(".")
    for start in range(len(parts)):
        for end in range(len(parts), start, -1):
            yield ".".join(parts[start:end])


def _sampled(reader: ConfigReader, role: str, trimmed: bool) -> list[int]:
    """Layers to look a role's modules up in; a trimmed list shows its first in text order only."""
    layers = reader.size("num_hidden_layers", "n_layers", "n_layer", "num_layers", default=64)
    dense = reader.size("first_k_dense_replace", default=0, zero=True)
    low, high = 0, layers
    if role in {"experts", "shared_experts"}:
        low = min(dense, layers - 1)
    elif role == "mlp" and 0 < dense < layers:
        high = dense
    if trimmed:
        shown = [i for i in (0, 1, 2, 3, 10, 11, 12) if low <= i < high]
        return shown or [low]
    step = max(1, (high - low) // 16)
    return list(range(low, high, step))


def strings(value: Any) -> list[str]:
    """Return the texts of a list; nothing of anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def everywhere(reader: ConfigReader, config: Mapping[str, Any], fmt: Format) -> RoleFormats:
    """Give every linear role `fmt`, but those on the config's ignore lists."""
    skipped = [name for key in _SKIPPED for name in strings(config.get(key))]
    trimmed = isinstance(config.get("_trimmed"), Mapping)
    modules = Modules(skipped)
    formats: RoleFormats = {}
    for role in SAMPLES:
        share = modules.layers_covered(role, _sampled(reader, role, trimmed))
        most = 0.0 if trimmed else 0.125 if role in {"attention", "mixer", "indexer"} else 0.5
        if share <= most:
            formats[role] = fmt
    if trimmed and fmt.bits < 6 and any("layers." in name for name in skipped):
        reader.note(
            "assumed_quantization",
            "quantization_config: its ignore list is cut in this"
            " source; attention is taken to be on it, which is the most bytes it can be",
        )
        for role in ("attention", "mixer", "indexer"):
            formats.pop(role, None)
    return formats or {"experts": fmt}


def overridden(
    reader: ConfigReader, formats: RoleFormats, named: Mapping[str, Format | None]
) -> RoleFormats:
    """Return `formats` with the exceptions a list of modules makes; None keeps one as it is.

    Where a role's modules differ, its format is their mean, with a note.
    """
    modules = Modules(named)
    result: RoleFormats = {}
    plain = get_format("bf16")
    mixture = any("expert" in field for field in reader.config)
    for role, names in SAMPLES.items():
        usual = formats.get(role) or plain
        hits = [
            modules.find(f"layers.{index}.{module}")
            for module in _MATRICES.get(role, names)
            for index in _sampled(reader, role, False)
        ]
        kinds = [usual if hit is None else named[hit] or plain for hit in hits]
        bits = sum(fmt.bits for fmt in kinds) / len(kinds)
        common = max(set(kinds), key=kinds.count)
        if len(set(kinds)) > 1 and (mixture or "expert" not in role):
            reader.note(
                "mixed_quantization",
                f"quantization_config: modules of {role} are stored in {len(set(kinds))} formats;"
                f" counted at their mean of {bits:.4g} bits",
            )
            result[role] = custom_format(round(bits, 4), common.compute)
        elif common is not plain:
            result[role] = common
    for name, role in (("lm_head", "head"), ("embed_tokens", "embedding")):
        hit = modules.find(name)
        fmt = formats.get(role) if hit is None else named[hit]
        if fmt is not None:
            result[role] = fmt
    return result


def by_name(reader: ConfigReader, named: Mapping[str, Format], trimmed: bool) -> RoleFormats:
    """Resolve formats listed module by module; of a cut list, unseen roles follow their like."""
    formats: RoleFormats = {}
    modules = Modules(named)
    for role in SAMPLES:
        hit = modules.first(role, _sampled(reader, role, trimmed))
        if hit:
            formats[role] = named[hit]
    if (hit := modules.find("lm_head")) is not None and hit in named:
        formats["head"] = named[hit]
    if trimmed:
        for role, like in (
            ("attention", "mixer"),
            ("mixer", "attention"),
            ("shared_experts", "mlp"),
            ("mlp", "shared_experts"),
        ):
            if like in formats:
                formats.setdefault(role, formats[like])
        if "experts" not in formats:
            formats["experts"] = get_format("nvfp4")
        reader.note(
            "assumed_quantization",
            "quantization_config: its list of modules is cut in"
            " this source; modules like those shown are taken to be alike: each that is not is off"
            " by the difference of the two formats",
        )
    elif not formats:
        shown = ", ".join(list(named)[:3])
        reader.note(
            "no_target",
            f"quantization_config: none of its targets ({shown}) is a module that is known;"
            " weights are counted in the model's own type, which is the most they can be",
        )
    return formats
