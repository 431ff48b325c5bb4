"""Rows of engine start-ups: what was started, and what the model of memory says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.engines.memory import EngineMemory, engine_report
from planner.engines.profiles import get_engine
from planner.errors import InvalidInput
from planner.hw import get_accelerator
from planner.models import UnknownModel, get_model
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.precision import UnknownFormat, get_format
from planner.step.parallel import Sharding


class UnknownRow(InvalidInput):
    """A row that cannot be predicted; one line says why."""


@dataclass(frozen=True, slots=True)
class StartUp:
    """What was started: the columns of a memory row that describe no measurement."""

    model: str
    engine: str
    gpu: str = ""
    engine_version: str = ""
    config_file: str = ""
    tp: int = 1
    pp: int = 1
    fraction: float | None = None
    max_model_len: int | None = None
    weight_format: str = ""
    kv_dtype: str = ""
    kv_layout: str = ""

    @classmethod
    def of(cls, row: Mapping[str, str]) -> StartUp:
        """Return the start-up of a CSV row; blank cells take the engine's defaults."""
        fraction = row.get("gpu_memory_utilization") or ""
        longest = row.get("max_model_len") or ""
        return cls(
            model=row["model"],
            engine=row["engine"],
            gpu=row.get("gpu") or "",
            engine_version=row.get("engine_version") or "",
            config_file=row.get("config_file") or "",
            tp=int(float(row.get("tp") or 1)),
            pp=int(float(row.get("pp") or 1)),
            fraction=float(fraction) if fraction else None,
            max_model_len=int(float(longest)) if longest else None,
            weight_format=row.get("weight_format") or "",
            kv_dtype=row.get("kv_dtype") or "",
            kv_layout=row.get("kv_layout") or "",
        )


def predict_start(started: StartUp) -> EngineMemory:
    """Return what the engine prints for a start-up.

    Raises UnknownRow (or another ValueError), one line, for a model, device or format the planner
    does not know.
    """
    engine = get_engine(started.engine, started.engine_version)
    if not started.gpu and not engine.whole_model:
        raise UnknownRow("gpu: the row names no GPU, so the pool is not known")
    spec = model_of(started.model, started.config_file)
    gpu = get_accelerator(started.gpu or _ANY_GPU)
    formats = formats_of(spec, started.weight_format, started.kv_dtype)
    split = Sharding(started.tp, started.pp)
    latent = _LATENT.get(started.kv_layout, "latent")
    said = engine_report(
        spec, gpu, split, formats, engine, started.fraction, started.max_model_len, latent
    )
    if spec.id.lower() == started.model.lower():
        return said
    taken = f"{started.model} is not in the catalogue: {spec.id} taken for it"
    return replace(said, note="; ".join(filter(None, (said.note, taken))))


_LATENT = {"mla_expanded": "expanded", "mla_latent_and_values": "latent_and_values"}
"""How a latent is kept, by the rows' kv_layout."""


_ANY_GPU = "h100-sxm5"
"""Stands in where a whole-model report does not depend on the device."""


_STORED = re.compile(
    r"([-_.](quantized|fp8|fp4|nvfp4|mxfp4|int4|int8|w\d+a\d+\w*|awq|gptq|gguf|bnb|4bit|8bit|dynamic"
    r"|block|kv|q\d\w*|iq\d\w*|marlin|autoround|qat))+$",
    re.IGNORECASE,
)
"""Endings of a checkpoint's name that say how it is stored."""


def model_of(name: str, config_file: str = "") -> ModelSpec:
    """Return the catalogue's model of this name, else of the config file that is named, else the
    one that the name less what it says of storage means.

    A config file is called `organisation--name.json`. Raises UnknownModel.
    """
    stem = config_file.rpartition("/")[2].removesuffix(".json")
    plain = _STORED.sub("", name.rpartition("/")[2])
    for candidate in (name, stem.replace("--", "/", 1), plain):
        try:
            return get_model(candidate, local=False)
        except UnknownModel:
            continue
    return get_model(name, local=False)


def formats_of(spec: ModelSpec, weights: str = "", kv: str = "") -> Formats:
    """Return formats by the names of measured rows; blank is the checkpoint's own.

    A cache format may be a pair for keys and values ("q8_0/fp16"), or int8_per_token_head (an fp32
    scale a head and token). Raises UnknownFormat.
    """
    return spec.formats(_override(spec, weights), _cache_name(spec, kv) if kv else None)


_MIXES = {"iq2_bn": 3.25, "iq3_k": 3.9, "iq4_k": 4.97}
"""Bits per value of whole files in mixes of ik_llama.cpp: the files of BitNet-2B-4T,
Qwen3-235B-A22B and Qwen3-30B-A3B over their parameters [bit]."""


_WORDS = {"int4": "int4_g128"}
"""Formats that rows name by their bits alone: checkpoints of 4-bit integers have groups of 128."""


def _override(spec: ModelSpec, weights: str) -> str | None:
    """The format to set on a model's linears, or None where the checkpoint is in it already."""
    if not weights:
        return None
    if weights in _MIXES:
        return f"{_MIXES[weights]}bit"
    wanted = get_format(_WORDS.get(weights, weights), "weight_format")
    own = {get_format(f) if isinstance(f, str) else f for f in spec.quantization.formats.values()}
    if any(round(f.bits) == round(wanted.bits) and f.id[:2] == wanted.id[:2] for f in own):
        return None
    if not own and wanted.bits == get_format(spec.dtype).bits:
        return None
    return wanted.id


def _cache_name(spec: ModelSpec, kv: str) -> str:
    if kv == "int8_per_token_head":
        parts = [part for group in spec.groups for part in group.block.mixers]
        width = max((part.cached_head_width or 0 for part in parts), default=0) or 128
        return f"{8 + 32 / width:g}bit"
    keys, slash, values = kv.partition("/")
    if not slash:
        return kv
    try:
        bits = (get_format(keys, "kv_dtype").bits + get_format(values, "kv_dtype").bits) / 2
    except UnknownFormat as error:
        raise UnknownRow(str(error)) from None
    return f"{bits:g}bit"
