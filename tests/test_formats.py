"""Number formats: stored bits from block layouts, aliases, custom widths, refusals.

Block layouts: GGML's ``ggml-common.h`` (bytes of a block of 32 or 256 values), OCP Microscaling
1.0, NVIDIA's NVFP4 note, the AWQ and GPTQ papers.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.precision import FORMATS, Format, UnknownFormat, custom_format, get_format


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("bf16", 16),
        ("fp16", 16),
        ("fp8", 8),
        # An fp32 scale for 128×128 values: 32/16,384.
        ("fp8_block", 8.001953125),
        # A scale of 8 bits for 32 values, of 8 bits for 16.
        ("mxfp8", 8.25),
        ("mxfp6", 6.25),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        # A scale of 16 bits and a zero of 4 for 128.
        ("awq", 4.15625),
        ("gptq", 4.15625),
        ("int4_g128", 4.125),
        ("int4", 4.5),
        ("int8_weight", 8.125),
        ("int3", 3.15625),
        ("int2", 2.15625),
        # 32 values in 18, 20, 22, 24 and 34 bytes.
        ("q4_0", 4.5),
        ("q4_1", 5.0),
        ("q5_0", 5.5),
        ("q5_1", 6.0),
        ("q8_0", 8.5),
        # 256 values in 84, 110, 144, 176 and 210 bytes.
        ("q2_k", 2.625),
        ("q3_k", 3.4375),
        ("q4_k", 4.5),
        ("q5_k", 5.5),
        ("q6_k", 6.5625),
        # 256 values in 66, 98 and 136 bytes.
        ("iq2_xxs", 2.0625),
        ("iq3_xxs", 3.0625),
        ("iq4_xs", 4.25),
        ("iq1_s", 1.5625),
        # A latent of 512 bytes, four fp32 scales and 64 values of two bytes over 576 values.
        ("fp8_ds_mla", 656 * 8 / 576),
        ("fp8_index", 8.25),
    ],
)
def test_bits_of_a_value(name: str, bits: float) -> None:
    found = get_format(name)
    assert found.bits == pytest.approx(bits, abs=1e-12)
    assert found.bytes == pytest.approx(bits / 8)


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("fp8", "fp8"),
        ("fp8_block", "fp8"),
        ("mxfp8", "fp8"),
        ("int8", "int8"),
        ("nvfp4", "nvfp4"),
        ("nvfp4_w4a8", "fp8"),
        ("mxfp4_w4a4", "fp4"),
        # Weight-only formats compute in 16 bits.
        ("fp8_weight", "bf16"),
        ("int8_weight", "bf16"),
        ("mxfp4", "bf16"),
        ("nvfp4_weight", "bf16"),
        ("int4", "bf16"),
        ("awq", "fp16"),
        ("gptq", "fp16"),
        ("q4_k", "fp16"),
        ("iq4_xs", "fp16"),
        ("fp32", "fp32"),
    ],
)
def test_arithmetic_of_a_format(name: str, compute: str) -> None:
    assert get_format(name).compute == compute


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("float16", "fp16"),
        ("half", "fp16"),
        ("bfloat16", "bf16"),
        ("float32", "fp32"),
        ("FP8_E4M3", "fp8"),
        ("fp8_e5m2", "fp8"),
        ("  BF16 ", "bf16"),
        ("w8a8", "int8"),
        ("W4A16", "int4_g128"),
        ("Q4_K", "q4_k"),
        # Rows interleaved by ik_llama.cpp are the same blocks in another order.
        ("q4_k_r4", "q4_k"),
        ("q8_0_r8", "q8_0"),
    ],
)
def test_names_of_the_same_format(alias: str, name: str) -> None:
    assert get_format(alias) is FORMATS[name]


@pytest.mark.parametrize(
    ("name", "bits"), [("4.5bit", 4.5), ("8bit", 8.0), ("2.25BIT", 2.25), ("0.5bit", 0.5)]
)
def test_custom_widths(name: str, bits: float) -> None:
    found = get_format(name)
    assert (found.bits, found.compute) == (bits, "bf16")
    assert found.whole_file


@pytest.mark.parametrize("name", ["fp7", "", "bit", "xbit", "0.4bit", "65bit", "nanbit", "-4bit"])
def test_unknown_formats_name_the_field_and_what_is_accepted(name: str) -> None:
    with pytest.raises(UnknownFormat) as raised:
        get_format(name, "kv")
    text = str(raised.value)
    assert text.startswith(("kv: unknown format", "bits: "))
    assert "accepted: " in text
    assert "\n" not in text


@given(st.floats(0.5, 64))
def test_every_width_is_a_format(bits: float) -> None:
    found = custom_format(bits)
    assert found.bytes == bits / 8
    assert found == Format(f"{bits:g}bit", bits, "bf16", f"{bits:g} bits per value, weight-only")


@pytest.mark.parametrize(
    ("name", "whole"),
    [("q4_k", True), ("iq4_xs", True), ("4.5bit", True), ("bf16", False), ("awq", False)],
)
def test_whole_files(name: str, whole: bool) -> None:
    assert get_format(name).whole_file == whole


def test_every_format_is_known_by_its_own_name() -> None:
    for name, found in FORMATS.items():
        assert found.id == name
        assert get_format(name.upper()) is found
        assert 1 <= found.bits <= 32
        assert found.description


@pytest.mark.parametrize(
    ("mix", "base", "larger"),
    # Mixes hold more than their base: some matrices are stored in wider blocks.
    [
        ("q2_k_m", "q2_k", 0.5),
        ("q3_k_m", "q3_k", 0.5),
        ("q4_k_m", "q4_k", 0.39),
        ("q4_k_s", "q4_k", 0.17),
        ("q5_k_m", "q5_k", 0.2),
    ],
)
def test_mixes_hold_more_than_their_base(mix: str, base: str, larger: float) -> None:
    assert get_format(mix).bits - get_format(base).bits == pytest.approx(larger, abs=0.1)
