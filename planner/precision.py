"""Number formats: stored bits per value, and the arithmetic their products run in.

Stored bits include the scales (and zero points or minima) that travel with each block.
Sources: OCP Microscaling 1.0 (MX formats), NVIDIA NVFP4 note, GGML block layouts
(``ggml-common.h``), AWQ and GPTQ papers (group of 128 with fp16 scale and 4-bit zero).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.errors import InvalidInput


class UnknownFormat(InvalidInput):
    """A number format that is not in the table."""


@dataclass(frozen=True, slots=True)
class Format:
    """One way to store a value, and the arithmetic format of its products."""

    id: str
    bits: float
    """Stored bits per value, scales included [bit]."""
    compute: str
    """Arithmetic format of its products: fp32, bf16, fp16, fp8, fp6, fp4, nvfp4, int8."""
    description: str

    @property
    def bytes(self) -> float:
        """Stored bytes per value [byte]."""
        return self.bits / 8

    @property
    def whole_file(self) -> bool:
        """Whether files in it hold embedding and head in it too, as GGUF and EXL2 files do."""
        return self.id.startswith(("q", "iq")) or self.id.endswith("bit")


_TABLE: tuple[tuple[str, float, str, str], ...] = (
    ("fp32", 32, "fp32", "IEEE single"),
    ("bf16", 16, "bf16", "bfloat16"),
    ("fp16", 16, "fp16", "IEEE half"),
    ("fp8", 8, "fp8", "8-bit float, scale per tensor or channel"),
    ("fp8_block", 8 + 32 / (128 * 128), "fp8", "8-bit float, fp32 scale per 128×128 block"),
    ("fp8_ds_mla", 656 * 8 / 576, "fp8", "latent in 8 bits: 512, four fp32 scales, 64 of 16 bits"),
    ("fp8_index", 132 * 8 / 128, "fp8", "keys of an indexer in 8 bits, an fp32 scale per 128"),
    ("fp8_weight", 8, "bf16", "8-bit float weights, 16-bit arithmetic"),
    ("mxfp8", 8 + 8 / 32, "fp8", "OCP MX 8-bit float, 8-bit scale per 32"),
    ("mxfp6", 6 + 8 / 32, "fp6", "OCP MX 6-bit float, 8-bit scale per 32"),
    ("int8", 8, "int8", "8-bit integer weights and activations"),
    ("int8_weight", 8 + 16 / 128, "bf16", "8-bit integer weights, fp16 scale per 128"),
    ("mxfp4", 4 + 8 / 32, "bf16", "OCP MX 4-bit float, 8-bit scale per 32, 16-bit activations"),
    ("mxfp4_w4a4", 4 + 8 / 32, "fp4", "OCP MX 4-bit float, weights and activations"),
    ("nvfp4", 4 + 8 / 16, "nvfp4", "NVIDIA 4-bit float, fp8 scale per 16"),
    ("nvfp4_w4a8", 4 + 8 / 16, "fp8", "NVIDIA 4-bit float weights, fp8 activations"),
    ("nvfp4_weight", 4 + 8 / 16, "bf16", "NVIDIA 4-bit float weights, 16-bit activations"),
    ("fp4", 4, "fp4", "4-bit float without scales"),
    ("int4", 4 + 16 / 32, "bf16", "4-bit integer weights, 16-bit scale per 32"),
    ("int4_g128", 4 + 16 / 128, "bf16", "4-bit integer weights, symmetric, 16-bit scale per 128"),
    ("awq", 4 + 20 / 128, "fp16", "4-bit weights, fp16 scale and 4-bit zero per 128"),
    ("awq_g32", 4 + 20 / 32, "fp16", "4-bit weights, fp16 scale and 4-bit zero per 32"),
    ("gptq", 4 + 20 / 128, "fp16", "4-bit weights, fp16 scale and 4-bit zero per 128"),
    ("int3", 3 + 20 / 128, "fp16", "3-bit weights, fp16 scale and zero per 128"),
    ("int2", 2 + 20 / 128, "fp16", "2-bit weights, fp16 scale and zero per 128"),
    ("ternary", 2, "bf16", "ternary weights packed four to a byte"),
    # GGML blocks: bytes of a block × 8 / values in it.
    ("q4_0", 18 * 8 / 32, "fp16", "GGML Q4_0"),
    ("q4_1", 20 * 8 / 32, "fp16", "GGML Q4_1"),
    ("q5_0", 22 * 8 / 32, "fp16", "GGML Q5_0"),
    ("q5_1", 24 * 8 / 32, "fp16", "GGML Q5_1"),
    ("q8_0", 34 * 8 / 32, "int8", "GGML Q8_0"),
    ("q2_k", 84 * 8 / 256, "fp16", "GGML Q2_K"),
    ("q3_k", 110 * 8 / 256, "fp16", "GGML Q3_K"),
    ("q4_k", 144 * 8 / 256, "fp16", "GGML Q4_K"),
    ("q5_k", 176 * 8 / 256, "fp16", "GGML Q5_K"),
    ("q6_k", 210 * 8 / 256, "fp16", "GGML Q6_K"),
    ("q8_k", 292 * 8 / 256, "fp16", "GGML Q8_K"),
    ("iq1_s", 50 * 8 / 256, "fp16", "GGML IQ1_S"),
    ("iq1_m", 56 * 8 / 256, "fp16", "GGML IQ1_M"),
    ("iq2_xxs", 66 * 8 / 256, "fp16", "GGML IQ2_XXS"),
    ("iq2_xs", 74 * 8 / 256, "fp16", "GGML IQ2_XS"),
    ("iq2_s", 82 * 8 / 256, "fp16", "GGML IQ2_S"),
    ("iq3_xxs", 98 * 8 / 256, "fp16", "GGML IQ3_XXS"),
    ("iq3_s", 110 * 8 / 256, "fp16", "GGML IQ3_S"),
    ("iq4_nl", 18 * 8 / 32, "fp16", "GGML IQ4_NL"),
    ("iq4_xs", 136 * 8 / 256, "fp16", "GGML IQ4_XS"),
    # Blocks of ik_llama.cpp, bits a value: IQ4_K, IQ2_KS, IQ5_KS and IQ1_S_R4 as its pull requests
    # 6, 85, 422 and 185 state them, the others recalled.
    ("iq1_s_r4", 1.5, "fp16", "ik_llama.cpp IQ1_S_R4"),
    ("iq1_m_r4", 1.75, "fp16", "ik_llama.cpp IQ1_M_R4"),
    ("iq2_bn", 2.0, "fp16", "ik_llama.cpp IQ2_BN, ternary"),
    ("iq2_ks", 2.1875, "fp16", "ik_llama.cpp IQ2_KS"),
    ("iq2_k", 2.375, "fp16", "ik_llama.cpp IQ2_K"),
    ("iq2_kl", 2.6875, "fp16", "ik_llama.cpp IQ2_KL"),
    ("iq3_ks", 3.1875, "fp16", "ik_llama.cpp IQ3_KS"),
    ("iq3_k", 3.4375, "fp16", "ik_llama.cpp IQ3_K"),
    ("iq4_kss", 4.0, "fp16", "ik_llama.cpp IQ4_KSS"),
    ("iq4_ks", 4.25, "fp16", "ik_llama.cpp IQ4_KS"),
    ("iq4_k", 4.5, "fp16", "ik_llama.cpp IQ4_K"),
    ("iq5_ks", 5.25, "fp16", "ik_llama.cpp IQ5_KS"),
    ("iq5_k", 5.5, "fp16", "ik_llama.cpp IQ5_K"),
    ("iq6_k", 6.625, "fp16", "ik_llama.cpp IQ6_K"),
    # Mixes of blocks by matrix: bits of a whole file of Llama-3.1-8B over its parameters, as
    # ``tools/quantize`` of llama.cpp prints them.
    ("q2_k_m", 3.16, "fp16", "llama.cpp mix Q2_K"),
    ("q3_k_s", 3.64, "fp16", "llama.cpp mix Q3_K_S"),
    ("q3_k_m", 4.00, "fp16", "llama.cpp mix Q3_K_M"),
    ("q3_k_l", 4.30, "fp16", "llama.cpp mix Q3_K_L"),
    ("q4_k_s", 4.67, "fp16", "llama.cpp mix Q4_K_S"),
    ("q4_k_m", 4.89, "fp16", "llama.cpp mix Q4_K_M"),
    ("q5_k_s", 5.57, "fp16", "llama.cpp mix Q5_K_S"),
    ("q5_k_m", 5.70, "fp16", "llama.cpp mix Q5_K_M"),
)

FORMATS: dict[str, Format] = {row[0]: Format(*row) for row in _TABLE}

_ALIASES = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "e4m3": "fp8",
    "w8a8": "int8",
    "w4a16": "int4_g128",
    "int4_awq": "awq",
}


_INTERLEAVED = re.compile(r"_r(4|8|16)$")
"""Ending of ik_llama.cpp's formats whose rows are interleaved: the same blocks in another order."""


def get_format(name: str, field: str = "format") -> Format:
    """Return the format called `name`, in any case and by its common aliases; `4.5bit` is custom.

    Raises UnknownFormat, naming `field` and what is accepted.
    """
    key = name.strip().lower()
    known = FORMATS.get(_ALIASES.get(key, key)) or FORMATS.get(_INTERLEAVED.sub("", key))
    if known is None and key.endswith("bit"):
        try:
            return custom_format(float(key.removesuffix("bit")))
        except ValueError:
            pass
    if known is None:
        raise UnknownFormat(f"{field}: unknown format {name!r}; accepted: {', '.join(FORMATS)}")
    return known


def custom_format(bits: float, compute: str = "bf16") -> Format:
    """Return a weight-only format of `bits` stored bits per value [bit] (for example EXL2)."""
    if not 0.5 <= bits <= 64:
        raise UnknownFormat(f"bits: {bits} bits per value; accepted: 0.5 to 64")
    return Format(f"{bits:g}bit", bits, compute, f"{bits:g} bits per value, weight-only")
