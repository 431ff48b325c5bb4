"""What is left of the errors, and what a few runs of one's own take away of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from planner.accuracy.holdout import Held, Holdout, error
from planner.accuracy.tables import errors_of, flows, shares
from planner.calibration.own import applied
from planner.calibration.table import Calibration
from planner.fitting.own import fitted
from planner.fitting.serving_rows import SET
from planner.roofline import Array
from planner.runs.predict import predict
from planner.runs.rows import Row

FEW = 8
"""Runs of one's own that are tried [-]."""

LEAST = 2 * FEW
"""Runs of a set that are left to judge by, at least [-]."""


def remains(holdout: Holdout, held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on what remains, and why."""
    lines = [
        "## What remains, and why\n",
        WHY,
        "",
        "Median errors of runs that do not queue:\n",
        "| | TPOT, model out | TPOT, gpu out | TTFT, model out | TTFT, gpu out |",
        "|---|---|---|---|---|",
    ]
    cases = ((name, way) for name in ("tpot_ms", "ttft_ms") for way in ("model", "gpu"))
    columns = [_column(held[way], name) for name, way in cases]
    lines += [f"| {row} | {' | '.join(c[row] for c in columns)} |" for row in columns[0]]
    before, after = _with_own_runs(holdout)
    runs = len(before["tpot_ms"])
    lines += [
        "",
        (
            f"And what `planner calibrate --add` makes of it: the model left out, {FEW} runs of "
            f"every model, accelerator and engine added as one's own, the other {runs} predicted:\n"
        ),
        "| median, mean | from rows of others alone | with runs of one's own |",
        "|---|---|---|",
        *(f"| {name} | {_both(before[key])} | {_both(after[key])} |" for key, name in NAMES),
    ]
    return "\n".join([*lines, ""])


NAMES = (("tpot_ms", "TPOT"), ("ttft_ms", "TTFT"))

WHY = """\
* TPOT of what is left out misses its goals. The law holds within a set of runs (model, accelerator,
  engine and format): with one factor a set it would be half as far off, as the table shows. The
  factor does not carry over: gpt-oss, the only MXFP4 model, has kernels of its own under
  TensorRT-LLM on Blackwell and not on Hopper, so that left out it is predicted too slow on one and
  too fast on the other; 8-bit GEMMs of Llama-70B under TensorRT-LLM run faster than they are timed
  alone (12 to 18 µs over what their bytes take, 5 to 9 under vLLM), quantisation being fused.
  Widths of priors are near a flat optimum: moving any of them by 2.5 either way moves the errors
  by less than half a point.
* Tried and left out, as one model left out became worse (median 8.2% by one step, else): telling
  kernels timed alone apart by twice the width (8.3%, one gpu 8.3% for 8.1%); a host's time of
  prompts by network and engine with priors of 0.4 to 1.5 (8.5% to 8.9%); leaving out vLLM's 8-bit
  block GEMMs that were timed with the host's launches (8.8%); tables of mixtures of every version
  of an engine in the place of the newest (8.4%). An all-reduce turns from one exchange to two at
  0.5, 1, 2 or 4 MB with the same errors.
* Steps that hold prompts run without graphs. Between runs alike in all but output length, a prompt
  of 1024 tokens costs gpt-oss under TensorRT-LLM on H200 55 to 60 ms on 2, 4 and 8 GPUs alike,
  where its arithmetic takes 11 to 19: 1.5 ms a layer, as DeepSeek-R1's there, and 0.2 to 0.7 ms a
  layer of dense models. The host's time is hidden where the arithmetic takes longer, so that a
  constant added to it does not carry over; TTFT of mixtures left out misses by it.
* TTFT: some runs were set up in ways that their rows do not tell. In many of Llama-70B under
  TensorRT-LLM the first token comes some twenty decode steps late, in many of Llama-8B the later
  the longer the output is. They are listed as doubtful, and counted.
* Queued rows carry limits that are not published (sequences at once, share of memory). Half a dozen
  of gpt-oss at 512 clients, faster than their batch allows, make up two points of the mean over
  all rows.
* Kernels by kind miss 18% of an accelerator left out, most of them within the fit too: one law of
  four figures a kind, engine and format does not hold tables that were never tuned (vLLM's 8-bit
  block GEMMs take three to sixteen times as long at some shapes), prompts of attention in 8 bits,
  or collectives over the bus of an L40S, which is the only part without links.
* Sources: with the cookbook left out nothing but a dozen runs is set up by default, so that its
  runs are predicted too fast and half of them lie outside the interval."""


def _column(rows: Sequence[Held], name: str) -> dict[str, str]:
    known = [h for h in rows if flows(h)]
    no_doubt = errors_of(known, name, lambda h: not h.doubt)
    vllm = errors_of(known, name, lambda h: h.row.inputs["engine"] == "vllm")
    cases = {
        "as predicted": errors_of(known, name, flows),
        "without doubtful rows": no_doubt,
        "vLLM alone": vllm,
        "with one factor a set, from its own runs (no prediction)": _centred(known, name),
    }
    return {case: f"{np.median(shares(errors)):.1%}" for case, errors in cases.items()}


def _centred(rows: Sequence[Held], name: str) -> list[float]:
    sets: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for held in rows:
        if (e := error(held, name)) is not None:
            sets[tuple(held.row.inputs[column] for column in SET)].append(e)
    return [e - float(np.median(errors)) for errors in sets.values() for e in errors]


def _with_own_runs(holdout: Holdout) -> tuple[dict[str, Array], dict[str, Array]]:
    """Errors [-] by quantity before and after a few runs of every set are added as one's own."""
    before: dict[str, list[float]] = defaultdict(list)
    after: dict[str, list[float]] = defaultdict(list)
    for figures, sets in _by_model(holdout):
        for members in sets:
            few = members[:: len(members) // FEW][:FEW]
            rest = [row for row in members if row not in few]
            local = applied(figures, fitted(few, figures))
            for calibration, errors in ((figures, before), (local, after)):
                for row, prediction in zip(rest, predict(rest, calibration), strict=True):
                    for name, measured in row.measured.items():
                        errors[name].append(abs(prediction.values[name] / measured - 1))
    return ({k: np.array(v) for k, v in before.items()}, {k: np.array(v) for k, v in after.items()})


def _by_model(holdout: Holdout) -> Iterator[tuple[Calibration, list[list[Row]]]]:
    """The calibration without each model, and its sets of runs that do not queue."""
    keys, models = holdout.keys("model")
    for model in models:
        sets: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for place in np.flatnonzero(keys[: holdout.serving] == model).tolist():
            row = holdout.rows[place]
            if row.remarks.get("queued") != "1":
                sets[row.inputs["gpu"], row.inputs["engine"]].append(row)
        large = [members for members in sets.values() if len(members) >= FEW + LEAST]
        if large:
            yield holdout.without("model", model), large


def _both(errors: Array) -> str:
    return f"{np.median(errors):.1%}, {errors.mean():.1%}"
