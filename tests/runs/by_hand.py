"""Rows of measured runs by hand: Qwen2.5-7B on one H100 under vLLM, where nothing else is said."""

from __future__ import annotations

from collections.abc import Mapping

from planner.runs.rows import INPUTS, Kind, Row

QWEN = "Qwen/Qwen2.5-7B-Instruct"
GPUS = {"decode": "n_gpus", "serving": "gpus"}


def row(
    kind: Kind,
    inputs: Mapping[str, str],
    measured: Mapping[str, float],
    remarks: Mapping[str, str] | None = None,
) -> Row:
    """A row of a kind; other inputs than those given and the usual ones are blank."""
    usual = {
        "row": "1",
        "model": QWEN,
        "gpu": "h100-sxm5",
        "engine": "vllm",
        "tp": "1",
        GPUS[kind]: "1",
        "weight_format": "bf16",
    }
    whole = dict.fromkeys(INPUTS[kind], "") | usual | dict(inputs)
    return Row(kind, whole, dict(measured), dict(remarks or {}))
