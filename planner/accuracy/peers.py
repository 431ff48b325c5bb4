"""The strongest peer beside us, slice by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.holdout import Held
from planner.accuracy.tables import errors_of, flows, shares

HEAD = """\
## Beside the strongest peer

NVIDIA AIConfigurator 0.12.0 with its measured kernels was run, apart from this report, on 2,771
runs of the same two benchmarks, of which it answered 2,060; two of its constants are fitted to
them. Its figures are taken over and not repeated here. Ours are of the runs of these benchmarks
among our rows, each predicted without its model or its accelerator, all answered. The rows are not
one for one the same: ours are about half of its, without the parts that are kept from every fit.
"""

BENCHMARKS = ("public nightly benchmark", "vendor run")

PEER = (
    ("TPOT", "tpot_ms", "", "", (0.143, 0.214, 0.437)),
    ("TPOT, H100", "tpot_ms", "gpu", "h100-sxm5", (0.096,)),
    ("TPOT, H200", "tpot_ms", "gpu", "h200-sxm", (0.257,)),
    ("TPOT, B200", "tpot_ms", "gpu", "b200-sxm", (0.168,)),
    ("TPOT, vLLM", "tpot_ms", "engine", "vllm", (0.127,)),
    ("TPOT, TensorRT-LLM", "tpot_ms", "engine", "trtllm", (0.141,)),
    ("TPOT, SGLang", "tpot_ms", "engine", "sglang", (0.173,)),
    ("TPOT, 4 clients (peer: batch 2 to 4)", "tpot_ms", "concurrency", "4", (0.201,)),
    ("TTFT", "ttft_ms", "", "", (0.476, 0.486, 0.860)),
)
"""Title, quantity, column and value of a slice, and the peer's median, mean and P90 as published in
its own evaluation or measured for us (`docs/ACCURACY.md` says which) [-]."""


def peers(held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on the strongest peer, of rows left out by model and by accelerator."""
    lines = [
        HEAD,
        "| median, mean, P90 | rows | one model left out | one gpu left out | AIConfigurator |",
        "|---|---|---|---|---|",
    ]
    for title, quantity, column, value, theirs in PEER:
        ours = [_errors(held[way], quantity, column, value) for way in ("model", "gpu")]
        cells = " | ".join(_figures(errors, len(theirs)) for errors in ours)
        lines.append(f"| {title} | {len(ours[0])} | {cells} | {_joined(theirs)} |")
    return "\n".join([*lines, ""])


def _errors(rows: Sequence[Held], quantity: str, column: str, value: str) -> Sequence[float]:
    return errors_of(
        (h for h in rows if flows(h) and h.row.inputs["source"] in BENCHMARKS),
        quantity,
        lambda h: not column or h.row.inputs[column] == value,
    )


def _figures(errors: Sequence[float], count: int) -> str:
    if not errors:
        return "–"
    share = shares(errors)
    return _joined((np.median(share), share.mean(), np.quantile(share, 0.9))[:count])


def _joined(figures: Sequence[float]) -> str:
    return ", ".join(f"{figure:.1%}" for figure in figures)
