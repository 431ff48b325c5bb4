"""Which arithmetic an accelerator falls back to when it lacks a number format."""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import InvalidInput

FORMATS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4", "int4")

# In order of preference. A narrow format that a card lacks is only a storage format there: kernels
# widen the values to 16 bit in registers and compute in that (weight-only quantisation).
CHAINS: Mapping[str, tuple[str, ...]] = {
    "fp32": ("fp32", "tf32", "bf16", "fp16"),
    "tf32": ("tf32", "fp32", "bf16", "fp16"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
    "fp6": ("fp6", "bf16", "fp16", "fp32"),
    "fp4": ("fp4", "bf16", "fp16", "fp32"),
    "int4": ("int4", "bf16", "fp16", "fp32"),
    # fp4 with NVIDIA's scales (fp8 per 16 values) instead of OCP MX's (a power of two per 32):
    # where the fp4 units take only those, `runs_in` of the accelerator says so.
    "nvfp4": ("fp4", "bf16", "fp16", "fp32"),
}

# What the measured tables call a format, where it differs from the peak it runs at.
MEASURED_FORMATS: Mapping[str, str] = {"nvfp4": "fp4", "int8_smoothquant": "int8"}


class UnsupportedFormat(InvalidInput):
    """An accelerator has no peak for a number format, nor for any it could fall back to."""
