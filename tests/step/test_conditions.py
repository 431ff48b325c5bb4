"""Settings that change a step's work: adapters, shared caches, host memory, eager launches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from planner import Scenario, plan
from planner.deployment import Deployment, deployment_of
from planner.kernels import Kernel
from planner.models import get_model
from planner.step.conditions import adapter_kernels, shared_caches, sharing, without_graphs
from planner.step.parallel import Sharding
from planner.step.timing import Efficiency, Item

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
R1 = "deepseek-ai/DeepSeek-R1"


def deployed(**fields: Any) -> Deployment:
    return deployment_of(Scenario(**{"gpu": "h100-sxm5", "engine": "vllm", **fields}))


def codes(deployment: Deployment) -> set[str]:
    return {note.code for note in deployment.notes}


def moved(deployment: Deployment, batch: float = 1.0, context: float = 8192.0) -> tuple[float, ...]:
    """FLOPs and bytes of a step over the replica."""
    points = deployment.step.at(batch, context)
    return float(points.flops), float(points.bytes)


def test_adapters_are_two_products_beside_every_linear() -> None:
    """Llama-3.1-8B, rank 16: q and o 4096 wide, k and v 1024, gate and up 14336, down."""
    spec = get_model(LLAMA)
    (kernel,) = adapter_kernels(spec, adapters=8, rank=16)
    ends = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    assert kernel.flops_per_token == 32 * 2 * 16 * ends
    assert kernel.weight_bytes == 32 * 8 * 16 * ends * 2
    assert kernel.launches == 32 * 2 * 4  # q, k and v at once; o; gate and up; down


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_a_step_reads_the_adapters_its_sequences_use(batch: int) -> None:
    plain, tuned = deployed(model=LLAMA), deployed(model=LLAMA, lora={"adapters": 8, "rank": 16})
    ends = 2 * 8192 + 2 * 5120 + 3 * 18432
    used = 8 * (1 - (7 / 8) ** batch)
    flops, read = np.subtract(moved(tuned, batch), moved(plain, batch))
    assert flops == pytest.approx(batch * 32 * 2 * 16 * ends)
    assert read == pytest.approx(32 * used * 16 * ends * 2, rel=1e-6)
    assert {"adapters", "adapters_held"} <= codes(tuned)
    assert tuned.time_s(batch, 8192) > plain.time_s(batch, 8192)


def test_ranks_that_share_a_cache_read_it_once() -> None:
    """A latent is copied to 8 ranks; with decode_cp 8 each holds an eighth of its tokens."""
    fields = {"model": R1, "gpu": "h200-sxm", "tp": 8}
    alone, shared = deployed(**fields), deployed(**fields, decode_cp=8)
    token = 61 * 576 * 2
    without = moved(alone, 64, 0)[1]
    assert moved(alone, 64, 65536)[1] - without == pytest.approx(64 * 65536 * token * 8)
    assert moved(shared, 64, 65536)[1] - without == pytest.approx(64 * 65536 * token, rel=1e-6)
    assert moved(shared, 64, 65536)[0] == moved(alone, 64, 65536)[0]
    assert shared.time_s(64, 65536) < alone.time_s(64, 65536)
    assert "decode_cp" in codes(shared)
    assert shared.prompt_step.at(1, 8192, 8192).bytes == alone.prompt_step.at(1, 8192, 8192).bytes


def test_shared_caches_leave_states_alone() -> None:
    latent = Kernel("latent", "latent", "bf16", 0, bytes_per_cached=1152, cache_ways=1)
    state = Kernel("scan", "scan", "fp32", 0, bytes_per_sequence=100, cache_ways=16)
    assert [kernel.cache_ways for kernel in shared_caches([latent, state], 4)] == [4, 16]


def test_what_ranks_exchange() -> None:
    """61 layers, 7168 values of two bytes of 2 of 8 ranks' heads."""
    gathered, scattered = sharing(get_model(R1), Sharding(8), 2)
    assert (gathered.op, scattered.op) == ("all_gather", "reduce_scatter")
    for each in (gathered, scattered):
        assert (each.count, each.ranks) == (61, 2)
        assert each.bytes_per_token == 7168 * 2 * 2 / 8


@pytest.mark.parametrize("on_gpu", [0, 9, 18, 27, 36])
def test_layers_on_the_host_take_its_bandwidth(on_gpu: int) -> None:
    """At one sequence memory binds: each layer takes its bytes over 80 GB/s instead of 1008."""
    fields = {"model": "Qwen/Qwen3-8B", "gpu": "rtx-4090", "engine": "llama.cpp", "weights": "q4_0"}
    alone = deployed(**fields)
    partly = deployed(**fields, layers_on_gpu=on_gpu)
    share, slower = 1 - on_gpu / 36, 1008e9 / 80e9
    before, after = alone.step.batch_items, partly.step.batch_items
    kernels = len(before.kernels)
    for item, old, new in zip(before.items, before.memory_s, after.memory_s, strict=True):
        on_host = 1.0 if item.kind == "head" else share
        assert new == pytest.approx(old * (1 + on_host * (slower - 1)))
    assert after.launches[:kernels] == pytest.approx(before.launches[:kernels])
    cached = (
        partly.step.context_items.memory_per_cached_s / alone.step.context_items.memory_per_cached_s
    )
    assert cached == pytest.approx(1 + share * (slower - 1))
    assert "layers_on_host" in codes(partly)
    assert moved(partly) == moved(alone)


def test_a_model_that_the_gpu_holds_is_as_fast_as_ever() -> None:
    fields = {"model": "Qwen/Qwen3-8B", "gpu": "rtx-4090", "engine": "llama.cpp", "weights": "q4_0"}
    whole, head_on_host = (deployed(**fields, layers_on_gpu=n) for n in (37, 36))
    assert whole.time_s(1, 4096) == deployed(**fields).time_s(1, 4096)
    assert head_on_host.time_s(1, 4096) > whole.time_s(1, 4096)
    times = [deployed(**fields, layers_on_gpu=n).time_s(1, 4096) for n in range(0, 38, 6)]
    assert times == sorted(times, reverse=True)


def test_without_graphs_every_layer_waits_for_the_host() -> None:
    captured, eager = deployed(model=LLAMA), deployed(model=LLAMA, graphs="off")
    waits = float(eager.time_s(1, 8192) - captured.time_s(1, 8192))
    assert waits == pytest.approx(32 * 0.28e-3 * captured.step.efficiency.scale)
    # a hybrid of 88 layers made 27.9 tokens/s without graphs and 88 with them
    assert pytest.approx(1 / 27.9 - 1 / 88, rel=0.02) == 88 * 0.28e-3
    assert "eager_launches" in codes(eager)
    assert eager.prompt_step.efficiency.launch_s == pytest.approx(
        captured.prompt_step.efficiency.launch_s
    )


def test_only_layers_wait() -> None:
    items = (Item("gemm", "bf16"), Item("layer"), Item("step"))
    changed = without_graphs(Efficiency.ideal(3), items, 2e-4)
    assert changed.launch_s.tolist() == [0, 2e-4, 0]
    assert changed.memory.tolist() == [1, 1, 1]


@pytest.mark.parametrize("field", ["lora", "decode_cp", "graphs", "layers_on_gpu"])
def test_every_setting_that_costs_time_costs_it_in_plans(field: str) -> None:
    every: dict[str, dict[str, Any]] = {
        "lora": {"model": LLAMA, "lora": {"adapters": 2, "rank": 8}},
        "decode_cp": {"model": R1, "gpu": "h200-sxm", "tp": 8, "decode_cp": 4},
        "graphs": {"model": LLAMA, "graphs": "off"},
        "layers_on_gpu": {"model": LLAMA, "engine": "llama.cpp", "layers_on_gpu": 16},
    }
    fields = every[field]
    scenario = {"gpu": "h100-sxm5", "engine": "vllm", "batch": [1], "context": [8192], **fields}
    bare = {name: value for name, value in scenario.items() if name != field}
    with_it, without = (plan(Scenario(**each)).points[0].tpot_s.p50 for each in (scenario, bare))
    assert with_it != without
    assert math.isfinite(with_it)
