"""What a deployment is to calibration: the names under which effects are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from planner.hw import Accelerator
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.precision import get_format

MEMORY_CLASSES = (("HBM", "hbm"), ("GDDR", "gddr"), ("LPDDR", "lpddr"), ("SRAM", "sram"))
"""Memory technology by the word that names it; anything else is system memory."""

DECODE, PROMPT = "decode", "prompt"

PHASED = frozenset({"attention", "latent", "indexer", "scan", "layer", "step"})
"""Kinds that run other code over a prompt than in a decode step."""


TUNED, DEFAULT = "tuned", "default"
"""How an engine was set up: for a benchmark by who knows it, or as its documentation says."""

SAME_KERNELS = {"fp16": "bf16", "gptq": "awq", "awq_g32": "awq", "int4": "int4_g128"}
"""Formats that run the same kernels as another."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Tags of a deployment, all strings; an empty one has no effect of its own."""

    tags: Mapping[str, str]

    def key(self, level: tuple[str, ...], kind: str = "", format: str = "") -> str | None:  # noqa: A002
        """Return the name of this subject's effect at a level, or None where a tag is empty."""
        named = format_class(format)
        parts = [
            kind if tag == "kind" else named if tag == "format" else self.tags.get(tag, "")
            for tag in level
        ]
        return "|".join(parts) if all(parts) else None


def subject_of(
    spec: ModelSpec,
    accelerator: Accelerator,
    formats: Formats,
    engine: str | None,
    version: str | None = None,
    **more: str,
) -> Subject:
    """Return the tags of a model on an accelerator under an engine, and `more` of the caller's."""
    return Subject(
        {
            **accelerator_tags(accelerator),
            **engine_tags(engine, version),
            "network": network(spec),
            "model": f"{spec.model_type} {spec.total_params / 1e9:.1f}B",
            "weights": format_class(formats.weights["experts" if "moe" in spec.kind else "mlp"].id),
            "size": size(spec),
            "setup": DEFAULT,
            **more,
        }
    )


SIZES = ((1.5e9, "small"), (15e9, "medium"))
"""Parameters that a token passes, below which a model is called so [-]."""


def size(spec: ModelSpec) -> str:
    """Return the size of a model by the parameters a token passes: small, medium or large."""
    return next((name for most, name in SIZES if spec.active_params < most), "large")


def accelerator_tags(accelerator: Accelerator) -> dict[str, str]:
    """Return tags from the part itself to what it shares with others.

    An accelerator of the user's own has no part, whatever its id: nothing was measured on it.
    """
    memory = memory_class(accelerator.memory_type)
    return {
        "gpu": accelerator.part or "",
        "family": f"{generation(accelerator.architecture)}/{memory}",
        "vendor": accelerator.vendor.lower(),
        "memory": memory,
    }


def engine_tags(engine: str | None, version: str | None) -> dict[str, str]:
    """Return the engine's name and the version's numbers up to the minor one."""
    minor = ".".join((version or "").split(".")[:2])
    return {"engine": (engine or "").lower(), "version": minor}


def generation(architecture: str) -> str:
    """Return an architecture's name, a mid-life refresh counted with its generation."""
    return architecture.removesuffix(" Ultra").lower()


def memory_class(memory_type: str | None) -> str:
    """Return hbm, gddr, lpddr, sram or ddr."""
    name = (memory_type or "").upper()
    return next((kind for word, kind in MEMORY_CLASSES if word in name), "ddr")


@cache
def format_class(name: str) -> str:
    """Return the name under which a format is calibrated: block formats of files by their bits."""
    if not name:
        return ""
    stored = get_format(name)
    return f"block{round(stored.bits)}" if stored.whole_file else SAME_KERNELS.get(name, name)


def network(spec: ModelSpec) -> str:
    """Return what kind of network a model is: dense, moe, hybrid…, and whether latent."""
    latent = any(part.latent_cache for group in spec.groups for part in group.block.mixers)
    return f"latent+{spec.kind}" if latent else spec.kind
