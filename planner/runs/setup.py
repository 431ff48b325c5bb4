"""From a row to the deployment it ran on."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from planner.calibration import subject_of
from planner.calibration.subject import DEFAULT, TUNED
from planner.deployment import Deployment, Options, deploy
from planner.engines.names import engine_names, spellings
from planner.engines.setting_columns import settings_of
from planner.hw import Accelerator, Link, UnsupportedFormat, get_accelerator
from planner.models import get_model
from planner.models.catalogue import catalogued
from planner.models.spec import ModelSpec
from planner.precision import Format, UnknownFormat, get_format
from planner.runs.harness import harness_of
from planner.runs.rows import Row
from planner.step.parallel import InvalidSharding, Sharding

PUBLISHED = {"fp8": ("-FP8",), "nvfp4": ("-NVFP4",), "awq": ("-AWQ",)}
"""Endings under which a model's quantised checkpoint is published, by format."""

SAME = ({"fp8", "fp8_block"}, {"int4", "int4_g128", "awq", "gptq"}, {"bf16", "fp16"})
"""Formats that a row's one word may mean."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A row's deployment, and what had to be assumed for it."""

    deployment: Deployment
    notes: tuple[str, ...]


def setup(row: Row) -> Setup:
    """Return the deployment of a serving or decode row.

    Raises ValueError, with one line, where model, accelerator or split are not known.
    """
    spec = find_model(row)
    accelerator = get_accelerator(row.inputs["gpu"])
    engine = engine_name(row.inputs["engine"])
    spec, weights, notes = as_stored(spec, _stated(row, spec))
    split = _split(row)
    kv = row.inputs.get("kv_dtype") or None
    known = engine if engine in engine_names() else None
    version = row.inputs["engine_version"] or None
    options = Options(weights, kv, known, version, settings_of(row.inputs))
    if accelerator.link.bytes_per_s is None and split.gpus > 1:
        notes = (*notes, f"{accelerator.id} has no link on record: PCIe 4.0 x16 assumed")
        accelerator = _on_pcie(accelerator)
    deployment, more = _deployed(spec, accelerator, split, options)
    mode = MODES.get(row.inputs.get("metric", ""), "")
    subject = subject_of(
        deployment.spec,
        deployment.accelerator,
        deployment.formats,
        f"{engine} {mode}" if mode == "static" else engine,
        row.inputs["engine_version"],
        mode=mode,
        backend=backend(row.inputs.get("backend", "")),
        year=row.inputs.get("date", "")[:4],
        arrivals=harness_of(row).arrivals,
        source=row.inputs.get("source", ""),
        setup="" if mode else TUNED if harness_of(row).tuned else DEFAULT,
        drafting="on" if row.inputs.get("speculative") else "",
        flash=row.inputs.get("flash_attention", "")[:1],
    )
    return Setup(replace(deployment, subject=subject), (*notes, *more))


MODES = {"request_latency_s": "static", "decode_tokens_per_s": "bench", "tpot_ms": "bench"}
"""How a row was measured, by its metric: a static batch, or a benchmark's loop."""


def backend(printed: str) -> str:
    """Return the family of a backend as printed: rocm for HIP and its variants, vulkan…"""
    word = re.split(r"[ _-]", printed.lower())[0]
    return {"hip": "rocm", "rocwmma": "rocm", "main": ""}.get(word, word)


def engine_name(printed: str) -> str:
    """Return the engine a row names: a profile's id where that is part of what is printed."""
    name = printed.strip().lower()
    return next((known for word, known in spellings().items() if word in name), name)


def find_model(row: Row) -> ModelSpec:
    """Return the network of a row: its config's where one is named, else the model's."""
    config = row.inputs.get("config_file", "")
    stem = config.rpartition("/")[2].removesuffix(".json").replace("--", "/", 1)
    name = row.inputs["model"]
    for candidate in (stem, name, STORED.sub("", name)):
        spec = catalogued(candidate)
        if spec is not None:
            return spec
    return get_model(name)


STORED = re.compile(r"-(FP8|NVFP4|MXFP4|AWQ|GPTQ|INT4|INT8)$", re.IGNORECASE)
"""Ending of a checkpoint's name that says how it is stored."""


def _stated(row: Row, spec: ModelSpec) -> str:
    """The row's weight format; the bits of its file where that is a mix, as i-quants' are."""
    stated = row.inputs["weight_format"].lower()
    size = row.number("weight_gb")
    if size and (get_known(stated) is None or stated.startswith("iq")):
        return f"{min(max(size * 8e9 / spec.total_params, 1.0), 32.0):.3f}bit"
    words = in_words(stated)
    return words if get_known(words) else stated


def in_words(stated: str) -> str:
    """Return a weight format as the table of formats spells it."""
    return stated.lower().replace("_xl", "_m").replace("exl2_", "").replace("bpw", "bit")


def get_known(name: str) -> Format | None:
    """Return the format of that name, or None."""
    try:
        return get_format(name)
    except UnknownFormat:
        return None


@lru_cache(maxsize=1024)
def as_stored(spec: ModelSpec, stated: str) -> tuple[ModelSpec, str | None, tuple[str, ...]]:
    """Return the checkpoint that holds a model in the format stated, and the override it needs.

    The model's own checkpoint where it is in that format, else the quantised one published beside
    it, else the model with its weights overridden. Mixtures of experts are published in 8 bits
    with a scale per block (DeepSeek, Qwen, MiniMax, GLM and Kimi all are).
    """
    word = stated.lower()
    stated = "fp8_block" if word == "fp8" and "moe" in spec.kind else word
    if not stated or _holds(spec, stated):
        return spec, None, ()
    short = spec.id.rpartition("/")[2]
    for ending in PUBLISHED.get(word, ()):
        published = catalogued(short + ending)
        if published is not None and _holds(published, stated):
            return published, None, ()
    try:
        return spec, get_format(stated).id, ()
    except UnknownFormat:
        return spec, "int4", (f"weight_format {stated} is not known: int4 assumed",)


def _holds(spec: ModelSpec, stated: str) -> bool:
    formats = spec.formats().weights
    role = "experts" if "moe" in spec.kind else "mlp"
    own = formats[role].id
    return own == stated or any({own, stated} <= same for same in SAME)


def _split(row: Row) -> Sharding:
    """The split of a row; GPUs that no split explains hold layers."""
    gpus = row.count("gpus", row.count("n_gpus"))
    dp, pp = row.count("attention_dp"), row.count("pp")
    tp = row.count("tp", max(1, gpus // (dp * pp)))
    if tp * dp * pp > gpus:
        tp = max(1, gpus // (dp * pp))
    ranks = tp * dp
    ep = row.count("moe_ep", row.count("ep"))
    return Sharding(tp, pp, ep if ranks % ep == 0 else ranks, dp)


@lru_cache(maxsize=4096)
def _deployed(
    spec: ModelSpec, accelerator: Accelerator, split: Sharding, options: Options
) -> tuple[Deployment, tuple[str, ...]]:
    try:
        return deploy(spec, accelerator, split, options), ()
    except InvalidSharding:
        fewer = next((n for n in range(split.tp - 1, 0, -1) if _divides(spec, n)), 1)
        return (
            deploy(spec, accelerator, replace(split, tp=fewer, ep=1), options),
            (f"{spec.id} cannot be split {split.tp} ways: {fewer} assumed",),
        )
    except UnsupportedFormat:
        note = f"{accelerator.id} has no arithmetic on record for {options.weights}: 16-bit assumed"
        wide = replace(options, weights="int8_weight")
        return deploy(spec, accelerator, split, wide), (note,)


@cache
def _on_pcie(accelerator: Accelerator) -> Accelerator:
    return replace(accelerator, link=Link("PCIe 4.0 x16", PCIE_BYTES_PER_S))


def _divides(spec: ModelSpec, tp: int) -> bool:
    try:
        Sharding(tp).check(spec)
    except InvalidSharding:
        return False
    return True


PCIE_BYTES_PER_S = 32e9
"""One direction of PCIe 4.0 x16 (PCI-SIG), for accelerators without a link on record [byte/s]."""
