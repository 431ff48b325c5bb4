"""Rows of engine start-ups: what was started, and what the model of memory says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.deployment import Deployment, Options, deploy
from planner.engines.profiles import get_engine
from planner.engines.report import EngineMemory, engine_report
from planner.engines.setting_columns import settings_of
from planner.engines.settings import DEFAULTS, MemorySettings
from planner.errors import InvalidInput
from planner.hw import get_accelerator
from planner.models import UnknownModel, get_model
from planner.models.spec import ModelSpec
from planner.precision import get_format
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
    settings: MemorySettings = DEFAULTS
    weight_format: str = ""
    kv_dtype: str = ""
    kv_layout: str = ""

    @classmethod
    def of(cls, row: Mapping[str, str]) -> StartUp:
        """Return the start-up of a CSV row; blank cells take the engine's defaults.

        Raises InvalidSetting.
        """
        return cls(
            model=row["model"],
            engine=row["engine"],
            gpu=row.get("gpu") or "",
            engine_version=row.get("engine_version") or "",
            config_file=row.get("config_file") or "",
            tp=int(float(row.get("tp") or 1)),
            pp=int(float(row.get("pp") or 1)),
            settings=settings_of(row),
            weight_format=row.get("weight_format") or "",
            kv_dtype=row.get("kv_dtype") or "",
            kv_layout=row.get("kv_layout") or "",
        )


def predict_start(started: StartUp) -> EngineMemory:
    """Return what the engine prints for a start-up, as its plan has it.

    Raises UnknownRow (or another ValueError), one line, for a model, device or format the planner
    does not know.
    """
    deployment = deployment_of_start(started)
    report = engine_report(deployment.memory, deployment.engine, deployment.sharding.gpus)
    spec = deployment.spec
    notes = [report.note]
    if spec.id.lower() != started.model.lower():
        notes.append(f"{started.model} is not in the catalogue: {spec.id} taken for it")
    return replace(report, note="; ".join(filter(None, notes)))


def deployment_of_start(started: StartUp) -> Deployment:
    """Return the deployment that was started.

    Raises ValueError as `predict_start` does.
    """
    engine = get_engine(started.engine, started.engine_version)
    if not started.gpu and not engine.whole_model:
        raise UnknownRow("gpu: the row names no GPU, so the pool is not known")
    spec, settings = model_of(started.model, started.config_file), started.settings
    if engine.whole_model:
        settings = replace(settings, memory_fraction=None)
    longest = settings.max_model_len
    if longest and spec.max_context and longest > spec.max_context:
        spec = replace(spec, max_context=longest)
    weights = _override(spec, started.weight_format)
    options = Options(
        weights,
        started.kv_dtype or None,
        started.engine,
        started.engine_version or UNDATED.get(engine.id),
        settings,
        _LATENT.get(started.kv_layout, "latent"),
    )
    gpu = get_accelerator(started.gpu or _ANY_GPU)
    return deploy(spec, gpu, Sharding(started.tp, started.pp), options)


UNDATED = {"llama.cpp": "2025-04"}
"""Build taken for a row that names none: its logs charge sliding windows in full, as builds before
May 2025 do (llama.cpp PR 13194)."""


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
