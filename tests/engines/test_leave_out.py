"""The few fitted constants of start-up memory, refitted without a model and asked about it.

Otherwise a fit might only repeat the rows it was made from. The rows are those of vLLM 0.19.0;
`profiled.csv` holds what the same logs print of activations, buffers and graphs [GiB].
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import least_squares

from planner.engines.memory import plan_memory
from planner.engines.overheads import activation_bytes, graph_bytes
from planner.engines.profiles import GIB, get_engine
from planner.engines.settings import MemorySettings
from planner.fitting.committed import committed_rows
from planner.hw import get_accelerator
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.runs.rows import Row
from planner.runs.startups import StartUp, deployment_of_start
from planner.step.parallel import Sharding

AS_STARTED = MemorySettings(memory_fraction=0.95)
NAMES = ("logits_copies", "hidden_copies", "layer_copies", "narrow_copies", "workspace_copies")
START = (3.0, 1.0, 3.0, 1.0, 1.0)

Case = tuple[Row, ModelSpec, Formats, Sharding]


@cache
def cases() -> tuple[Case, ...]:
    found = []
    for row in committed_rows("memory"):
        started = StartUp.of(row.inputs)
        if started.engine_version != "0.19.0":
            continue
        deployment = deployment_of_start(started)
        found.append((row, deployment.spec, deployment.formats, Sharding(started.tp)))
    return tuple(found)


def fitted(left_out: str) -> dict[str, float]:
    """Coefficients of activations, and of buffers, from the rows of all other models."""
    engine = get_engine("vllm", "0.19.0").on(get_accelerator("h100-sxm5"))
    used = [c for c in cases() if c[0].inputs["model"] != left_out and _of(c[0], "activation")]

    def residuals(values: np.ndarray) -> list[float]:
        rules = replace(engine.overheads, **dict(zip(NAMES, values, strict=True)))
        return [
            activation_bytes(spec, formats, split, rules, 8192, 1024) / GIB - _of(row, "activation")
            for row, spec, formats, split in used
        ]

    solved = least_squares(residuals, START, loss="soft_l1", f_scale=0.05).x
    gpus = np.array([split.gpus for *_, split in used])
    buffers = np.array([_of(row, "non_torch") for row, *_ in used])
    slope, constant = np.polyfit(gpus[gpus > 1], buffers[gpus > 1], 1)
    alone = float(np.median(buffers[gpus == 1]))
    return dict(zip(NAMES, solved.tolist(), strict=True)) | {
        "process_bytes": alone * GIB,
        "link_bytes": (constant - alone) * GIB,
        "link_bytes_per_gpu": slope * GIB,
    }


@cache
def profiled() -> dict[str, dict[str, str]]:
    with Path(__file__).with_name("profiled.csv").open(encoding="utf-8") as file:
        return {line["row"]: line for line in csv.DictReader(file)}


def _of(row: Row, name: str) -> float:
    return float(profiled().get(row.inputs["row"], {}).get(f"{name}_gib") or 0)


def test_graphs_within_half_a_gib() -> None:
    engine = get_engine("vllm", "0.19.0")
    off = [
        abs(graph_bytes(spec, split, engine.overheads) / GIB - _of(row, "graph"))
        for row, spec, _, split in cases()
    ]
    assert median(off) <= 0.2
    assert max(off) <= 0.7


def test_a_model_left_out_of_the_fit_is_within_two_percent() -> None:
    gpu = get_accelerator("h100-sxm5")
    engine = get_engine("vllm", "0.19.0")
    off = []
    for model in sorted({row.inputs["model"] for row, *_ in cases()}):
        rules = replace(engine.on(gpu).overheads, **fitted(model))
        without = replace(engine.on(gpu), overheads=rules)
        for row, spec, formats, split in cases():
            if row.inputs["model"] == model:
                pool = plan_memory(
                    spec, gpu, split, formats, without, AS_STARTED
                ).kv_pool_bytes_per_gpu
                off.append(abs(pool / GIB / row.measured["kv_gib"] - 1))
    assert len(off) == 46
    assert median(off) <= 0.003
    assert max(off) <= 0.03
