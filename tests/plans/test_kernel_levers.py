"""Levers by kernel: every gain against two full plans, and none that is pulled already."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from planner import Scenario, plan
from planner.answer import Plan
from planner.commands.kernels import command
from planner.deployment import Options, deploy
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.advice import WORTH
from planner.plans.kernel_levers import (
    GROUPED_HEADS,
    KernelLever,
    Timed,
    grouped,
    kernel_levers,
    latent,
    placed_with_levers,
    sparse,
    with_mixers,
    without_launches,
)
from planner.step.parallel import Sharding

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
FP8 = "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8"
LLAMA_2 = "meta-llama/Llama-2-7b-hf"
DEEPSEEK, SPARSE = "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2"
BATCH, CONTEXT = 4, 4096


def levers(
    model: str,
    gpu: str = "h100-sxm5",
    context: int = CONTEXT,
    weights: str | None = None,
    kv: str | None = None,
) -> list[KernelLever]:
    chosen = Options(weights, kv)
    one = deploy(get_model(model), get_accelerator(gpu), Sharding(), chosen)
    return kernel_levers(one, float(BATCH), float(context), chosen)


def of(rows: list[KernelLever], kernel: str, code: str) -> KernelLever:
    (one,) = [row for row in rows if (row.kernel, row.code) == (kernel, code)]
    return one


def planned(**fields: Any) -> Plan:
    given = {"model": LLAMA, "gpu": "h100-sxm5", "batch": BATCH, "context": CONTEXT, **fields}
    return plan(Scenario(**given))


def time_s(answer: Plan, kernel: str) -> float:
    return sum(row.time_s for row in answer.kernels if row.name == kernel)


@pytest.mark.parametrize(
    ("kernel", "code", "fields"),
    [
        ("mlp_up", "weights_fp8", {"weights": "fp8"}),
        ("o_proj", "weights_int4", {"weights": "int4_g128"}),
        ("attention", "kv_fp8", {"kv": "fp8"}),
    ],
)
def test_a_gain_is_the_difference_of_two_plans(
    kernel: str, code: str, fields: dict[str, str]
) -> None:
    one = of(levers(LLAMA), kernel, code)
    before, after = planned(), planned(**fields)
    assert one.kernel_gain == pytest.approx(time_s(before, kernel) / time_s(after, kernel))
    gain = before.points[0].tpot_s.p50 / after.points[0].tpot_s.p50
    assert one.gain == one.gain_per_gpu == pytest.approx(gain)
    assert one.quality_risk
    assert one.cost


def test_a_larger_batch_is_slower_for_each_and_more_for_the_gpu() -> None:
    """Weights are read once for more sequences: at the knee each of them takes its share."""
    one = of(levers(LLAMA), "mlp_up", "batch_more")
    batch = int(one.text.split()[1])
    assert batch == min(planned().limits.knee_batch, planned().memory.max_batch)
    before, after = planned(), planned(batch=batch)
    each = time_s(before, "mlp_up") / BATCH / (time_s(after, "mlp_up") / batch)
    assert one.kernel_gain == pytest.approx(each)
    assert one.gain < 1 < one.gain_per_gpu
    rates = [answer.points[0].tokens_per_s_per_gpu for answer in (before, after)]
    assert one.gain_per_gpu == pytest.approx(rates[1] / rates[0])


def test_a_fused_kernel_has_no_launches_of_its_own() -> None:
    """The step is shorter by 32 layers' launches of the kernel, at what each takes."""
    one = deploy(get_model(LLAMA), get_accelerator("h100-sxm5"), Sharding())
    at = [k.name for k in one.step.kernels].index("o_proj")
    place = one.step.batch_items.kernels.tolist().index(at)
    floor_s = 32 * one.step.efficiency.launch_s[place] * one.step.efficiency.scale
    before = Timed.of(one, BATCH, CONTEXT)
    gain = of(levers(LLAMA), "o_proj", "fusion")
    assert gain.gain == pytest.approx(before.step_s / (before.step_s - floor_s))
    was = before.by_name["o_proj"]
    assert gain.kernel_gain == pytest.approx(was / (was - floor_s))
    # Of an attention kernel, whose launches a step pays whatever its sequences, too.
    fused = without_launches(one.step, "attention")
    assert (fused.efficiency.launch_s <= one.step.efficiency.launch_s).all()
    assert (fused.efficiency.launch_s != one.step.efficiency.launch_s).sum() == 1


@pytest.mark.parametrize(
    ("model", "gpu", "options", "absent"),
    [
        (LLAMA, "h100-sxm5", {}, {"gqa"}),
        (LLAMA, "h100-sxm5", {"kv": "fp8"}, {"kv_fp8"}),
        (LLAMA, "h100-sxm5", {"weights": "fp8"}, {"weights_fp8"}),
        (LLAMA, "h100-sxm5", {"weights": "int4_g128"}, {"weights_fp8", "weights_int4"}),
        (FP8, "h200-sxm", {}, {"weights_fp8"}),
        (DEEPSEEK, "h200-sxm", {}, {"weights_fp8", "gqa", "mla"}),
        (SPARSE, "h200-sxm", {}, {"weights_fp8", "gqa", "mla", "sparse"}),
    ],
)
def test_what_is_pulled_is_not_named(
    model: str, gpu: str, options: dict[str, str], absent: set[str]
) -> None:
    codes = {row.code for row in levers(model, gpu, 32_768, **options)}
    assert codes
    assert not codes & absent


def test_heads_that_are_not_grouped_may_be() -> None:
    """Llama 2 keeps keys and values of 32 heads: 8 are a quarter of the bytes."""
    rows = levers(LLAMA_2, context=32_768)
    gain = of(rows, "attention", "gqa")
    assert 3.0 < gain.kernel_gain <= 4.0
    assert "must be trained" in gain.cost
    assert of(rows, "attention", "mla").kernel_gain > gain.kernel_gain  # 576 values, not 2,048


def test_another_attention_is_another_model() -> None:
    """Of a token 32·2·128 values are cached; of 8 heads a quarter, of a latent 512 + 64."""
    spec = get_model(LLAMA_2)
    assert spec.kv_elements_per_token == 32 * 32 * 2 * 128
    for changed, values in ((grouped, GROUPED_HEADS * 2 * 128), (latent, 576), (sparse, 8192)):
        other = with_mixers(spec, changed)
        assert other is not None
        assert other.kv_elements_per_token == 32 * values
    assert with_mixers(get_model(SPARSE), grouped) is None


@pytest.mark.parametrize("context", [1024, 2048])
def test_sparse_attention_helps_long_contexts_alone(context: int) -> None:
    assert "sparse" not in {row.code for row in levers(LLAMA, context=context)}
    assert "sparse" in {row.code for row in levers(LLAMA, context=16 * context)}


def test_levers_stand_by_kernel_the_best_first() -> None:
    rows = levers(LLAMA)
    names = list(dict.fromkeys(row.kernel for row in rows))
    assert names == ["qkv_proj", "o_proj", "attention", "mlp_up", "mlp_down", "lm_head"]
    for name in names:
        gains = [row.kernel_gain for row in rows if row.kernel == name]
        assert gains == sorted(gains, reverse=True)
        assert min(gains) >= WORTH


def test_prompts_have_no_levers() -> None:
    spec, gpu = get_model(LLAMA), get_accelerator("h100-sxm5")
    placed = placed_with_levers(spec, gpu, None, None, 1, 512, "prefill")
    assert placed.kernels
    assert placed.levers == []


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_tells_them(as_json: bool) -> None:
    arguments = [LLAMA, "--gpu", "h100-sxm5", "--batch", "4", "--context", "4k"]
    result = CliRunner().invoke(command, [*arguments, *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if as_json:
        rows = json.loads(result.output)["levers"]
        assert {"batch_more", "weights_fp8", "kv_fp8"} <= {row["code"] for row in rows}
    else:
        assert "not pulled" in result.output
        assert "batch_more: batch" in result.output
