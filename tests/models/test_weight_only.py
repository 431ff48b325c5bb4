"""Weights stored narrow for one library: stored bits a value, worked from each method's layout.

bitsandbytes: Dettmers et al. 2023 (NF4, double quantisation); HQQ: Badri, Shaji 2023; torchao,
quanto and FP-Quant: their packages' defaults; AQLM: Egiazarian et al. 2024; HIGGS: Malinovskii et
al. 2024 (recalled, not looked up again).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.models import ConfigError, ModelSpec
from planner.models.huggingface import import_config
from planner.models.weight_only import WEIGHT_ONLY
from tests.models.configs import llama


def stored(method: str, **fields: Any) -> ModelSpec:
    return import_config(llama(quantization_config={"quant_method": method, **fields}))


def hqq(**weights: Any) -> dict[str, Any]:
    return {"quant_config": {"weight_quant_params": weights}}


@pytest.mark.parametrize(
    ("method", "fields", "bits"),
    [
        ("bitsandbytes", {"load_in_8bit": True}, 8),
        # A 32-bit scale for every 64 values: 4 + 32/64; quantised again to 8 bits: 4 + 8/64.
        ("bitsandbytes", {"load_in_4bit": True}, 4.5),
        ("bitsandbytes", {"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.125),
        ("bitsandbytes", {"bnb_4bit_quant_type": "nf4"}, 4.5),
        # A scale and an offset of 16 bits each: 4 + 32/64, and none without groups.
        ("hqq", hqq(nbits=4, group_size=64), 4.5),
        ("hqq", hqq(nbits=2, group_size=16), 4),
        ("hqq", hqq(nbits=3), 3),
        # torchao: two 16-bit figures a group of 128 unless told otherwise; scales alone beside.
        ("torchao", {"quant_type": "int4_weight_only"}, 4.25),
        ("torchao", {"quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 32}}, 5),
        (
            "torchao",
            {
                "quant_type": {
                    "default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 64}}
                }
            },
            4.5,
        ),
        ("torchao", {"quant_type": "int8_weight_only"}, 8),
        ("torchao", {"quant_type": "Float8DynamicActivationFloat8WeightConfig"}, 8),
        ("torchao", {"quant_type": "Int8DynamicActivationInt4WeightConfig"}, 4.5),
        ("torchao", {"quant_type": "Float8DynamicActivationInt4WeightConfig"}, 4.125),
        ("torchao", {"quant_type": "NVFP4InferenceConfig"}, 4.5),
        # quanto: a scale and a shift of 16 bits each for 128 values.
        ("quanto", {"weights": "int2"}, 2.25),
        ("quanto", {"weights": "int4"}, 4.25),
        ("quanto", {"weights": "int8"}, 8),
        ("quanto", {"weights": "float8"}, 8),
        # AQLM: two codes of 8 bits for 8 values; one of 16 bits.
        (
            "aqlm",
            {"num_codebooks": 2, "nbits_per_codebook": 8, "in_group_size": 8, "out_group_size": 1},
            2,
        ),
        (
            "aqlm",
            {"num_codebooks": 1, "nbits_per_codebook": 16, "in_group_size": 8, "out_group_size": 1},
            2,
        ),
        ("fp_quant", {"forward_dtype": "mxfp4"}, 4.25),
        ("fp_quant", {"forward_dtype": "nvfp4"}, 4.5),
        ("fp_quant", {"store_master_weights": True}, 20.5),
        # HIGGS: a 16-bit scale for 256 values.
        ("higgs", {"bits": 4}, 4.0625),
        ("higgs", {"bits": 2, "group_size": 1024}, 2.015625),
        ("eetq", {}, 8),
    ],
)
def test_bits_of_a_value(method: str, fields: dict[str, Any], bits: float) -> None:
    weights = stored(method, **fields).formats().weights
    for role in ("attention", "mlp"):
        assert weights[role].bits == pytest.approx(bits, abs=1e-4)
    # Embedding and head stay in the model's own type.
    assert (weights["embedding"].bits, weights["head"].bits) == (16, 16)


def test_weights_take_their_bits() -> None:
    """All linears of a layer in 4.5 bits, the rest in 16."""
    plain, narrow = import_config(llama()), stored("bitsandbytes", load_in_4bit=True)
    dense = plain.total_params - 2 * plain.vocab * plain.hidden
    vectors = (2 * plain.layers + 1) * plain.hidden
    saved = (dense - vectors) * (16 - 4.5) / 8
    assert plain.weights_bytes() - narrow.weights_bytes() == pytest.approx(saved, rel=1e-9)


def test_kinds_of_modules_may_differ() -> None:
    """HQQ names formats by module: two bits in the MLP, eight in attention."""
    inner = {
        name: {"weight_quant_params": {"nbits": bits, "group_size": 64}}
        for bits, names in (
            (2, ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")),
            (8, ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")),
        )
        for name in names
    }
    weights = stored("hqq", dynamic_config=inner).formats().weights
    assert (weights["mlp"].bits, weights["attention"].bits) == (2.5, 8.5)


def test_embeddings_of_torchao_where_they_are_named() -> None:
    weights = (
        stored("torchao", quant_type="int8_weight_only", include_input_output_embeddings=True)
        .formats()
        .weights
    )
    assert (weights["embedding"].bits, weights["head"].bits) == (8, 8)


@pytest.mark.parametrize(
    ("method", "fields", "code"),
    [
        ("bitsandbytes", {}, "assumed_quantization"),
        ("bitsandbytes", {"load_in_4bit": False}, "assumed_quantization"),
        ("torchao", {"quant_type": "int7_of_mine"}, "unknown_quantization"),
        ("torchao", {}, "unknown_quantization"),
    ],
)
def test_what_is_not_known_is_counted_in_16_bits_and_said(
    method: str, fields: dict[str, Any], code: str
) -> None:
    spec = stored(method, **fields)
    assert code in {note.code for note in spec.notes}
    assert {spec.formats().weights[role].bits for role in ("attention", "mlp")} == {16}


def test_codebooks_are_said_not_to_be_counted() -> None:
    """Two books of 256 entries of 8 values in 16 bits: 2·512·8 = 8,192 bytes a matrix."""
    spec = stored("aqlm", num_codebooks=2, nbits_per_codebook=8, in_group_size=8, out_group_size=1)
    (text,) = [note.text for note in spec.notes if note.code == "codebooks"]
    assert "codebooks of 8,192 bytes" in text


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("hqq", {}, "quantization_config.quant_config.weight_quant_params: missing"),
        ("hqq", {"quant_config": {"a": 1}}, "quantization_config.quant_config.weight_quant"),
        ("hqq", hqq(group_size=64), "quantization_config.nbits: missing; bits per value, 1 to 16"),
        ("hqq", hqq(nbits=True), "quantization_config.nbits: missing"),
        ("hqq", hqq(nbits=17), "quantization_config.nbits: missing"),
        (
            "quanto",
            {"weights": "int3"},
            "quantization_config.weights: 'int3'; accepted: int2, int4",
        ),
        ("aqlm", {"num_codebooks": 0}, "quantization_config.num_codebooks: 0; accepted: 1 to 64"),
        (
            "fp_quant",
            {"forward_dtype": "fp6"},
            "quantization_config.forward_dtype: 'fp6'; accepted",
        ),
        ("higgs", {}, "quantization_config.bits: missing"),
    ],
)
def test_what_a_method_does_not_take(method: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        stored(method, **fields)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.sampled_from([0, 16, 32, 64, 128, 256]))
def test_smaller_groups_take_more(bits: int, group: int) -> None:
    """And no group at all takes what its values do."""
    taken = stored("hqq", **hqq(nbits=bits, group_size=group)).formats().weights["mlp"].bits
    assert taken == (bits + 32 / group if group else bits)


def test_every_method_has_a_reader_of_its_own() -> None:
    assert len({*WEIGHT_ONLY.values()}) == len(WEIGHT_ONLY) == 8
