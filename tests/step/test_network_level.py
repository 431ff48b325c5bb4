"""Collectives over nodes: what stays inside one, what passes between, and what is said of it."""

from __future__ import annotations

import pytest

from planner import Scenario, plan
from planner.calibration.intervals import UNSEEN_LEVEL
from planner.deployment import Options, deploy
from planner.engines.settings import MemorySettings
from planner.hw import get_accelerator
from planner.models import get_model
from planner.step.model_steps import model_step
from planner.step.parallel import (
    NETWORK,
    NETWORK_BYTES_PER_S,
    Collective,
    Sharding,
    collectives,
    hierarchical,
    link_domain,
)
from tests.step.machine import DENSE, machine


def test_an_all_reduce_over_two_nodes_by_hand() -> None:
    """16 ranks on two nodes of 8: inside 2·7/8 of the message, between 2·1/2 of an eighth of it."""
    inside, between = hierarchical(Collective("all_reduce", 3, 16, 800.0), 8)
    assert inside == Collective("all_reduce", 3, 8, 800.0)
    assert inside.wire_factor == 1.75
    assert (between.op, between.count, between.ranks) == (NETWORK, 3, 2)
    assert between.bytes_per_token == 100.0
    assert between.wire_factor == 1.0
    # Together as much as a ring over all 16 sends: 7/8 of the halves inside, the rest between.
    assert pytest.approx(2 * 15 / 16 * 800) == 1.75 * 800 + 100


def test_a_gather_over_three_nodes_by_hand() -> None:
    inside, between = hierarchical(Collective("all_gather", 1, 12, 60.0, "stage"), 4)
    assert inside.ranks == 4
    assert between.bytes_per_token == 60.0
    assert between.wire_factor == pytest.approx(2 / 3)
    assert between.tokens_of == "stage"


def test_what_fits_a_node_stays_there() -> None:
    within = Collective("all_reduce", 3, 8, 800.0)
    assert hierarchical(within, 8) == (within,)
    assert hierarchical(Collective("send", 1, 2, 800.0), 1)[0].op == "send"
    # One accelerator a node: all of it passes between.
    (only,) = hierarchical(within, 1)
    assert (only.op, only.ranks, only.bytes_per_token) == (NETWORK, 8, 800.0)


@pytest.mark.parametrize(
    ("gpu", "gpus", "nodes", "domain"),
    [
        ("h100-sxm5", 8, None, None),
        ("h100-sxm5", 16, None, 8),
        ("h100-sxm5", 8, 2, 4),
        ("gb200", 16, None, None),  # 72 share a domain
        ("dgx-spark-gb10", 4, None, 2),
        ("rtx-4090", 4, None, None),  # the bus of one host
        ("rtx-4090", 4, 2, 1),
    ],
)
def test_how_many_links_join(gpu: str, gpus: int, nodes: int | None, domain: int | None) -> None:
    assert link_domain(get_accelerator(gpu), gpus, nodes) == domain


def test_between_nodes_it_takes_the_networks_time() -> None:
    """A dense model of 4 layers over 4 ranks, two to a node, at datasheet rates and no floors.

    Inside a node a rank sends 2·1/2 of 128 bytes in each of 8 all-reduces and half of the logits;
    between the two, as much of half the message, and half of the logits again. Where links join all
    four, each sends its 128 bytes to the 3 others.
    """
    joined, apart = (
        model_step(DENSE, machine(), Sharding(tp=4), DENSE.formats(), nodes=nodes)
        for nodes in (None, 2)
    )
    assert [sent.op for sent in joined.collectives] == ["all_reduce", "all_gather"]
    found = [(c.op, c.count * c.wire_factor * c.bytes_per_token) for c in apart.collectives]
    assert found == [
        ("all_reduce", 8 * 1.0 * 128),
        (NETWORK, 8 * 1.0 * 64),
        ("all_gather", 0.5 * 2000),
        (NETWORK, 0.5 * 2000),
    ]
    # A link of 1 GB/s is slower than the network is assumed to be: all goes at the link's speed.
    assert NETWORK_BYTES_PER_S > 1e9
    more = 16 * (sum(sent for _, sent in found) - 8 * 3.0 * 128 - 0.75 * 2000) / 1e9
    times = [float(step.at(16.0, 1.0).total_s) for step in (apart, joined)]
    assert times[0] - times[1] == pytest.approx(more)


def test_no_node_leaves_collectives_as_they_are() -> None:
    assert collectives(DENSE, Sharding(tp=4)) == collectives(DENSE, Sharding(tp=4), None)


def test_a_replica_over_nodes_is_slower_and_less_sure() -> None:
    model, gpu = get_model("meta-llama/Llama-3.1-70B-Instruct"), get_accelerator("h100-sxm5")
    near, far = (
        deploy(model, gpu, Sharding(tp=8), Options(settings=MemorySettings(nodes=nodes)))
        for nodes in (None, 2)
    )
    assert far.time_s(1.0, 1000.0) > 1.3 * near.time_s(1.0, 1000.0)
    for quantity in ("tpot", "ttft"):
        sure, unsure = near.interval(quantity), far.interval(quantity)
        assert sure[0] < 1 < sure[1]
        assert unsure == pytest.approx([end**UNSEEN_LEVEL for end in sure])


def test_the_answer_says_that_no_row_spans_nodes() -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100-sxm5", "batch": 1}
    texts = {n.code: n.text for n in plan(Scenario(**asked, context=1000, tp=16)).notes}
    assert "16 GPUs exceed the h100-sxm5 link domain of 8" in texts["beyond_link_domain"]
    assert "never fitted" in texts["beyond_link_domain"]


@pytest.mark.parametrize(
    ("asked", "measured_ms"),
    [
        # Published single-stream times between nodes: two hosts of 8 H100 over InfiniBand, and
        # four DGX Spark.
        (
            {"model": "deepseek-ai/DeepSeek-R1", "gpu": "h100-sxm5", "tp": 16, "engine": "sglang"},
            23.2,
        )
    ],
)
def test_published_times_between_nodes_are_inside(
    asked: dict[str, object], measured_ms: float
) -> None:
    tpot = plan(Scenario(**asked, batch=1, context=1000)).points[0].tpot_s
    assert tpot.p10 * 1e3 <= measured_ms <= tpot.p90 * 1e3
