"""Names of models and accelerators as deployments spell them, in the catalogues' words."""

from __future__ import annotations

import re

from planner.errors import InvalidInput
from planner.handover.facts import read_facts
from planner.handover.refusal import Unreadable
from planner.hw import get_accelerator
from planner.models import get_model

MOST_CHARACTERS = 400
"""Of a model's name or path."""
_QUANT = re.compile(r"[-_.](i?q\d\w*|bf16|f16|fp16|mxfp4\w*)$", re.IGNORECASE)
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def model_named(text: str, line: int) -> tuple[str, str | None, bool]:
    """Return a model's catalogue id, the weight format its name states, and whether it is exact.

    A path is looked up by its last part, which is an assumption. Raises Unreadable naming the
    line.
    """
    if len(text) > MOST_CHARACTERS:
        raise Unreadable(f"line {line}: a model's name of {len(text)} characters")
    name = re.sub(r"^(?:hf|modelscope|oci|pvc|s3|gs|model)://", "", text.strip())
    weights = None
    if name.lower().endswith(".gguf"):
        name = _SHARD.sub("", name[:-5])
        if quant := _QUANT.search(name):
            name, weights = name[: quant.start()], quant[1].lower()
    elif ":" in name and "GGUF" in name.upper():
        name, _, quantized = name.partition(":")
        weights = quantized.lower() or None
    name = re.sub(r"[-_]gguf$", "", name.rstrip("/"), flags=re.IGNORECASE)
    for candidate, exact in ((name, True), (name.rpartition("/")[2], False)):
        if not candidate or candidate.lower().endswith((".json", ".gguf")):
            continue
        try:
            spec = get_model(candidate, local=False)
            if weights:
                spec.formats(weights)
        except InvalidInput:
            continue
        return candidate if "/" in candidate else spec.id, weights, exact
    shown = text if len(text) <= 80 else text[:77] + "…"
    raise Unreadable(f"line {line}: model {shown!r} is not in the catalogue; give --model")


def gpu_named(text: str) -> str | None:
    """Return the id of the accelerator that a node's label names, or None."""
    known: str | None = read_facts("kubernetes.json")["products"].get(text.lower())
    if known:
        return known
    try:
        return get_accelerator(text.replace("_", "-"), allow_files=False).id
    except InvalidInput:
        return None
