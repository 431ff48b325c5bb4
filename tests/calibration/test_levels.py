"""The calibration's law on small made-up tables: levels, shares, phases, subjects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.calibration.own import LEVELS, applied
from planner.calibration.speculation import speculate
from planner.calibration.subject import (
    Subject,
    accelerator_tags,
    engine_tags,
    format_class,
    generation,
    memory_class,
    network,
    subject_of,
)
from planner.calibration.table import Calibration, Parameter, from_json, phased
from planner.hw import get_accelerator
from planner.hw.inline import accelerator_from, override
from planner.models import get_model
from planner.scenario import SpeculationOptions
from planner.step.timing import Item


def content(**parameters: object) -> dict[str, object]:
    """Return a calibration of one kind and one level a parameter, changed by `parameters`."""
    plain = {
        "memory": {"values": {"gemm": 0.8, "attention": 0.5}},
        "compute": {"values": {"gemm": 0.6}},
        "launch_s": {"values": {"gemm": 4e-6, "layer": 1e-6, "layer prompt": 3e-6}},
        "visit_s": {"values": {"attention": 1e-7}},
        "scale": {"values": {"decode": 1.25, "start": 2.0}},
        "queueing": {"values": {"first": 0.05, "burst": 2.0}},
    }
    return {
        "edition": "test",
        "parameters": {
            name: {"levels": [], "factors": [], **row, **parameters.get(name, {})}
            for name, row in plain.items()
        },
        "sharpness": {"gemm": 2.0},
        "routing_spread": 0.5,
        "speculation": {"drafts": 1, "accepted": 1.8},
        "intervals": {},
        "provenance": {},
    }


def calibration(**parameters: object) -> Calibration:
    return from_json(content(**parameters))


SUBJECT = Subject({"gpu": "h100", "engine": "vllm", "family": "hopper/hbm"})


def test_every_item_takes_the_values_of_its_kind() -> None:
    items = [Item("gemm", "bf16"), Item("attention"), Item("unknown")]
    e = calibration().efficiency(items, SUBJECT, "decode")
    assert e.memory.tolist() == [0.8, 0.5, 1.0]
    assert e.compute.tolist() == [0.6, 1.0, 1.0]
    assert e.launch_s.tolist() == [4e-6, 0.0, 0.0]
    assert e.visit_s.tolist() == [0.0, 1e-7, 0.0]
    assert e.sharpness.tolist() == [2.0, math.inf, math.inf]
    assert e.scale == 1.25


@pytest.mark.parametrize(
    ("kind", "phase", "name"),
    [
        ("gemm", "prompt", "gemm"),
        ("gemm", "decode", "gemm"),
        ("attention", "prompt", "attention prompt"),
        ("attention", "decode", "attention"),
        ("latent", "prompt", "latent prompt"),
        ("indexer", "prompt", "indexer prompt"),
        ("scan", "prompt", "scan prompt"),
        ("layer", "prompt", "layer prompt"),
        ("step", "prompt", "step prompt"),
        ("experts", "prompt", "experts"),
        ("all_reduce", "prompt", "all_reduce"),
        ("head", "prompt", "head"),
    ],
)
def test_some_kinds_run_other_code_over_a_prompt(kind: str, phase: str, name: str) -> None:
    assert phased(kind, phase) == name


def test_a_prompt_has_floors_and_a_scale_of_its_own() -> None:
    found = calibration()
    assert found.efficiency([Item("layer")], SUBJECT, "prompt").launch_s.tolist() == [3e-6]
    assert found.scale(SUBJECT, "prompt") == 1.0
    assert found.scale(SUBJECT, "start") == 2.0
    assert found.number("first", SUBJECT) == 0.05
    with pytest.raises(KeyError, match="wait"):
        found.number("wait", SUBJECT)


@pytest.mark.parametrize(
    ("levels", "factors", "tags", "value"),
    [
        # 0.8 alone, times what each level knows of the subject.
        ([], [], {}, 0.8),
        ([["kind"]], [{"gemm": 0.5}], {}, 0.4),
        ([["kind"]], [{"attention": 0.5}], {}, 0.8),
        ([["kind", "gpu"]], [{"gemm|h100": 0.75}], {}, 0.6),
        ([["kind", "gpu"]], [{"gemm|h100": 0.75}], {"gpu": "a100"}, 0.8),
        # An empty tag has no effect of its own, whatever the table says.
        ([["kind", "gpu"]], [{"gemm|": 0.75}], {"gpu": ""}, 0.8),
        # Family and part multiply.
        (
            [["kind", "family"], ["kind", "gpu"]],
            [{"gemm|hopper/hbm": 0.5}, {"gemm|h100": 1.5}],
            {},
            0.6,
        ),
        ([["engine", "format"]], [{"vllm|bf16": 0.5}], {}, 0.4),
        ([["engine", "format"]], [{"vllm|fp8": 0.5}], {}, 0.8),
        # A share is one at most.
        ([["kind"]], [{"gemm": 3.0}], {}, 1.0),
    ],
)
def test_levels_multiply(
    levels: list[list[str]], factors: list[dict[str, float]], tags: dict[str, str], value: float
) -> None:
    found = calibration(memory={"levels": levels, "factors": factors})
    subject = Subject({**SUBJECT.tags, **tags})
    e = found.efficiency([Item("gemm", "bf16")], subject, "decode")
    assert e.memory.tolist() == pytest.approx([value])


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=5))
def test_a_value_is_the_product_of_its_factors(factors: list[float]) -> None:
    levels = tuple((("kind",),) * len(factors))
    parameter = Parameter(levels, {"gemm": 2.0}, tuple({"gemm": f} for f in factors))
    assert parameter.of(SUBJECT, "gemm") == pytest.approx(2.0 * math.prod(factors))


@pytest.mark.parametrize(
    ("level", "kind", "fmt", "key"),
    [
        (("kind", "gpu"), "gemm", "", "gemm|h100"),
        (("gpu", "kind"), "gemm", "", "h100|gemm"),
        (("kind", "format"), "gemm", "fp16", "gemm|bf16"),
        (("kind", "format"), "gemm", "", None),
        (("kind", "nothing"), "gemm", "bf16", None),
        (("engine",), "", "", "vllm"),
    ],
)
def test_keys_of_effects(level: tuple[str, ...], kind: str, fmt: str, key: str | None) -> None:
    assert SUBJECT.key(level, kind, fmt) == key


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("fp16", "bf16"),
        ("gptq", "awq"),
        ("int4", "int4_g128"),
        ("fp8", "fp8"),
        # Block formats of files by their bits, rounded: 4.5, 6.5625, 8.5, 2.625.
        ("q4_k", "block4"),
        ("q6_k", "block7"),
        ("q8_0", "block8"),
        ("q2_k", "block3"),
        ("4.5bit", "block4"),
        ("", ""),
    ],
)
def test_formats_that_run_the_same_kernels(name: str, same: str) -> None:
    assert format_class(name) == same


@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        ("HBM3e", "hbm"),
        ("HBM2", "hbm"),
        ("GDDR7", "gddr"),
        ("LPDDR5X", "lpddr"),
        ("SRAM", "sram"),
        ("DDR5", "ddr"),
        ("unified", "ddr"),
        (None, "ddr"),
    ],
)
def test_technology_of_memory(memory: str | None, kind: str) -> None:
    assert memory_class(memory) == kind


@pytest.mark.parametrize(
    ("name", "generic"),
    [("Blackwell Ultra", "blackwell"), ("Hopper", "hopper"), ("CDNA 3", "cdna 3")],
)
def test_a_refresh_counts_with_its_generation(name: str, generic: str) -> None:
    assert generation(name) == generic


def test_tags_of_a_part_and_of_ones_own() -> None:
    h100 = get_accelerator("h100-sxm5")
    tags = accelerator_tags(h100)
    assert tags == {"gpu": "h100-sxm5", "family": "hopper/hbm", "vendor": "nvidia", "memory": "hbm"}
    same = override(h100, {"bandwidth_bytes_per_s": 3e12, "source": "x"})
    assert accelerator_tags(same)["gpu"] == "h100-sxm5"
    other = override(h100, {"id": "mine", "bandwidth_bytes_per_s": 3e12, "source": "x"})
    assert accelerator_tags(other)["gpu"] == ""
    own = accelerator_from(
        {
            "id": "h100-sxm5",
            "peaks_flops_per_s": {"bf16": 1e15},
            "bandwidth_bytes_per_s": 1e12,
            "memory_bytes": 1e10,
            "source": "x",
        }
    )
    assert accelerator_tags(own)["gpu"] == ""


@pytest.mark.parametrize(
    ("engine", "version", "tags"),
    [
        ("vLLM", "0.17.1", {"engine": "vllm", "version": "0.17"}),
        ("sglang", "1", {"engine": "sglang", "version": "1"}),
        ("trtllm", None, {"engine": "trtllm", "version": ""}),
        (None, None, {"engine": "", "version": ""}),
    ],
)
def test_tags_of_an_engine(engine: str | None, version: str | None, tags: dict[str, str]) -> None:
    assert engine_tags(engine, version) == tags


@pytest.mark.parametrize(
    ("model", "kind", "weights"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "dense", "bf16"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "moe", "bf16"),
        # What the experts of a mixture are stored in, not its attention.
        ("openai/gpt-oss-120b", "moe", "mxfp4"),
        ("deepseek-ai/DeepSeek-V3", "latent+moe", "fp8_block"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "hybrid+moe", "bf16"),
        ("nvidia/Nemotron-H-56B-Base-8K", "hybrid", "bf16"),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "latent+hybrid+moe", "bf16"),
    ],
)
def test_kinds_of_networks(model: str, kind: str, weights: str) -> None:
    spec = get_model(model)
    assert network(spec) == kind
    subject = subject_of(spec, get_accelerator("h100-sxm5"), spec.formats(), "vllm", mode="bench")
    assert subject.tags["weights"] == weights
    assert subject.tags["network"] == kind
    assert subject.tags["mode"] == "bench"


def test_a_models_tag_is_its_type_and_size() -> None:
    spec = get_model("meta-llama/Llama-3.1-70B-Instruct")
    subject = subject_of(spec, get_accelerator("h100-sxm5"), spec.formats(), None)
    assert subject.tags["model"] == "llama 70.6B"
    assert subject.tags["engine"] == ""


def test_own_factors_stand_on_top_of_the_shipped_ones() -> None:
    """1.25 of the shipped decode scale, 1.1 of one's own for the GPU and 0.9 for its weights."""
    given = {
        ("kind", "gpu", "engine"): {"decode|h100|vllm": 1.1},
        ("kind", "gpu", "engine", "weights"): {"decode|h100|vllm|fp8": 0.9},
    }
    own = tuple(given.get(tags, {}) for tags, _ in LEVELS)
    subject = Subject({**SUBJECT.tags, "weights": "fp8"})
    local = applied(calibration(), own)
    assert local.scale(subject, "decode") == pytest.approx(1.25 * 1.1 * 0.9)
    assert local.scale(SUBJECT, "decode") == pytest.approx(1.25 * 1.1)
    assert local.scale(subject, "start") == 2.0
    elsewhere = Subject({**subject.tags, "gpu": "a100"})
    assert local.scale(elsewhere, "decode") == 1.25
    assert [tags for tags, _ in LEVELS] == [tuple(x) for x in local.parameters["scale"].levels]
    # Nothing but the scale changes.
    items = [Item("gemm", "bf16")]
    before, after = (c.efficiency(items, subject, "decode") for c in (calibration(), local))
    assert np.array_equal(before.memory, after.memory)


@pytest.mark.parametrize(
    ("drafts", "accepted"),
    # 1 + a + … + aⁿ with a = (1.8 − 1)/1 = 0.8.
    [(0, 1.0), (1, 1.8), (2, 2.44), (3, 2.952)],
)
def test_tokens_of_a_step_that_drafts(drafts: int, accepted: float) -> None:
    v3 = get_model("deepseek-ai/DeepSeek-V3")
    found, notes = speculate(SpeculationOptions(drafts=drafts), calibration(), v3)
    assert found.drafts == drafts
    assert found.accepted == pytest.approx(accepted)
    assert "assumed_acceptance" in {note.code for note in notes}
    assert "no_draft_layers" not in {note.code for note in notes}


def test_a_given_acceptance_is_taken() -> None:
    llama = get_model("meta-llama/Llama-3.1-8B-Instruct")
    found, notes = speculate(SpeculationOptions(drafts=4, accepted=2.5), calibration(), llama)
    assert (found.drafts, found.accepted) == (4, 2.5)
    assert {note.code for note in notes} == {"speculation", "no_draft_layers"}
