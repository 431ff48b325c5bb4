"""What holds of every model: kernels against parameters, caches against kernels."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest

from planner.models import ModelSpec, get_model
from planner.models.parts import Formats
from planner.models.spec import group_kernels
from planner.step.model_steps import decode_kernels, prompt_kernels

LINES = Path(__file__).with_name("truth.csv").read_text(encoding="utf-8").splitlines()[1:]
MODELS = sorted({line.split(",")[0] for line in LINES})[::6]
"""Every sixth of the table of reference: models of most families."""
BF16 = Formats.of("bf16")


@cache
def model(name: str) -> ModelSpec:
    return get_model(name, local=False)


def matrices(spec: ModelSpec) -> int:
    """Weights a token is multiplied with, read off parts and not off kernels [-]."""
    total = spec.lm_head_params
    for group in spec.groups:
        for part in group.block.parts:
            total += group.count * sum(x.inputs * x.outputs for x in part.linears())
            if routed := part.routed():
                total += group.count * routed.top_k * routed.params
    return total


@pytest.mark.parametrize("name", MODELS)
def test_products_are_two_flops_a_weight(name: str) -> None:
    kernels = decode_kernels(model(name), BF16)
    products = [k for k in kernels if k.kind in ("gemm", "experts")]
    assert sum(k.flops_per_token for k in products) == pytest.approx(2 * matrices(model(name)))


@pytest.mark.parametrize("name", MODELS)
def test_a_step_reads_no_more_weights_than_there_are(name: str) -> None:
    """All kernels together read matrices and biases, never vectors and looked-up tables."""
    spec = model(name)
    read = sum(k.weight_bytes for k in decode_kernels(spec, BF16)) / 2
    head = spec.lm_head_params if spec.tied_embeddings else 0
    reused = sum(  # weights that several layers share are read at each use
        (group.count - group.copies) * (x.inputs * x.outputs + x.bias * x.outputs)
        for group in spec.groups
        for part in group.block.parts
        for x in part.linears()
    )
    borrowed = sum(
        group.count * x.params
        for group in spec.groups
        for part in group.block.parts
        for x in part.linears()
        if not x.stored
    )
    assert read <= spec.total_params + head + reused + borrowed
    assert read >= matrices(spec) * 0.99
    looked_up = spec.embedding_params - (spec.lm_head_params if spec.tied_embeddings else 0)
    assert read <= spec.total_params - looked_up + reused + borrowed + 1


@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_has_the_same_products(name: str) -> None:
    """A prompt multiplies a token with the weights a decode step does, the head left out."""
    spec = model(name)
    decode, prompt = decode_kernels(spec, BF16), prompt_kernels(spec, BF16)

    def flops(kernels: tuple[object, ...]) -> float:
        return sum(k.flops_per_token for k in kernels if k.kind in ("gemm", "experts"))

    assert flops(decode) - flops(prompt) == pytest.approx(2 * spec.lm_head_params)
    assert sum(k.weight_bytes for k in decode) == sum(k.weight_bytes for k in prompt)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_kept_is_what_is_read(name: str) -> None:
    """Each layer's own cache is read once a step; layers that borrow one read it again."""
    spec = model(name)
    for group in spec.groups:
        kernels = group_kernels(group, BF16)
        moved = sum(k.bytes_per_cached for k in kernels) / 2
        kept = sum(c.elements_per_token for p in group.block.parts for c in p.caches())
        assert moved >= kept * (1 - 1e-12)
        states = sum(s.elements for p in group.block.parts for s in p.states())
        scanned = sum(k.bytes_per_sequence for k in kernels)
        assert scanned in (2 * 2 * states, 0)
        if states and not kept:
            assert scanned == 4 * states


@pytest.mark.parametrize("name", MODELS)
def test_sizes_are_in_order(name: str) -> None:
    spec = model(name)
    assert 0 < spec.active_params <= spec.total_params
    assert 0 <= spec.routed_params < spec.total_params
    assert spec.embedding_params < spec.total_params
    assert (spec.active_params < spec.total_params) == ("moe" in spec.kind) or any(
        part.buffers() for group in spec.groups for part in group.block.parts
    )
    assert ("hybrid" in spec.kind or spec.kind == "ssm") == (
        any(p.states() and not p.caches() for g in spec.groups for p in g.block.parts)
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fmt", ["fp8", "int4_g128"])
def test_narrower_weights_are_smaller_and_never_below_their_bits(name: str, fmt: str) -> None:
    spec = model(name)
    plain = spec.weights_bytes(spec.formats("bf16"))
    narrow = spec.weights_bytes(spec.formats(fmt))
    bits = {"fp8": 8, "int4_g128": 4.125}[fmt]
    assert narrow < plain
    assert narrow > plain * bits / 16 * 0.99


@pytest.mark.parametrize("name", MODELS)
def test_ranks_hold_between_their_share_and_everything(name: str) -> None:
    spec = model(name)
    whole = spec.weights_bytes(BF16)
    for tp in (2, 8):
        rank = spec.weights_bytes(BF16, tp=tp, ranks=tp)
        assert whole / tp * (1 - 1e-9) <= rank < whole


@pytest.mark.parametrize("name", MODELS)
def test_notes_and_contexts(name: str) -> None:
    spec = model(name)
    assert all(note.code and note.text and "\n" not in note.text for note in spec.notes)
    assert spec.max_context is None or spec.max_context >= 512
    assert spec.layers == sum(group.count for group in spec.groups) >= 1
    assert math.isfinite(spec.window_elements)
