"""What each source of data and each idea of the law is worth on rows left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.accuracy.holdout import Holdout
from planner.accuracy.one_step import OneStep
from planner.deployment import Deployment
from planner.fitting.decode_rows import DecodeRows
from planner.fitting.fit import Priors
from planner.fitting.refit import Refit
from planner.fitting.serving_rows import ServingRows
from planner.roofline import Array
from planner.runs.groups import Group

WAYS = ("model", "gpu")


def _as_it_is(deployment: Deployment) -> Deployment:
    return deployment


def _all_ranks_alike(deployment: Deployment) -> Deployment:
    """Experts and tokens spread evenly over the ranks of expert parallelism."""
    step = deployment.step
    return replace(deployment, step=replace(step, sharding=replace(step.sharding, ep=1)))


def _evenly_chosen(deployment: Deployment) -> Deployment:
    """Tokens choose all experts alike."""
    return replace(deployment, step=replace(deployment.step, routing_spread=0.0))


def _prompts_alone(deployment: Deployment) -> Deployment:
    """Every prompt stops decoding for a step of its own."""
    return replace(deployment, engine=replace(deployment.engine, mixes_prompts=False))


def _no_levels(priors: Priors) -> Priors:
    plain = {name: replace(prior, levels=()) for name, prior in priors.parameters.items()}
    return replace(priors, parameters=plain)


def _without(*tags: str) -> Callable[[Priors], Priors]:
    """Priors without the levels that one of these tags tells apart."""

    def dropped(priors: Priors) -> Priors:
        parameters = {
            name: replace(
                prior, levels=tuple(row for row in prior.levels if not set(tags) & set(row[0]))
            )
            for name, prior in priors.parameters.items()
        }
        return replace(priors, parameters=parameters)

    return dropped


@dataclass(frozen=True, slots=True)
class Variant:
    """A fit that lacks something."""

    lacks: str
    deployed: Callable[[Deployment], Deployment] = _as_it_is
    priors: Callable[[Priors], Priors] = lambda priors: priors
    decode: bool = True
    samples: bool = True


VARIANTS = (
    Variant("nothing"),
    Variant("kernel timings", samples=False),
    Variant("prompts that ride on steps", _prompts_alone),
    Variant("the busiest rank of expert parallelism", _all_ranks_alike),
    Variant("experts that are more popular than others", _evenly_chosen),
    Variant("that kernels alone are timed otherwise", priors=_without("timed")),
    Variant("how engines are set up", priors=_without("setup", "source")),
    Variant("a factor for each set of runs", priors=_without("model")),
    Variant("all but one set of parameters", priors=_no_levels, decode=False),
)


HEAD = """\
TPOT of runs that do not queue, median and mean error, of fits that lack one thing each. Rows are
left out by one step from the fit to all (`planner/accuracy/one_step.py`).
"""


def ablation(holdout: Holdout) -> str:
    """Return the errors of fits that lack a source of data or an idea of the law."""
    titles = " | ".join(f"one {way} left out" for way in WAYS)
    lines = [
        "## Ablation\n",
        HEAD,
        f"| without | within the fit | {titles} |",
        f"|---|---|{'---|' * len(WAYS)}",
    ]
    for variant in VARIANTS:
        cells = " | ".join(_both(errors) for errors in _errors(holdout, variant))
        lines.append(f"| {variant.lacks} | {cells} |")
    return "\n".join([*lines, ""])


def varied(refit: Refit, variant: Variant) -> Refit:
    """Return the fit of a variant: the fit itself where it lacks nothing."""
    if variant == VARIANTS[0]:
        return refit
    serving = ServingRows(refit.serving.rows, _deployed(refit.serving.groups, variant))
    decode = DecodeRows.of(())
    if variant.decode:
        decode = DecodeRows(refit.decode.rows, _deployed(refit.decode.groups, variant))
    samples = refit.samples if variant.samples else ()
    return Refit(serving, decode, samples, variant.priors(refit.priors), refit.edition)


def _deployed(groups: Sequence[Group], variant: Variant) -> list[Group]:
    return [replace(group, deployment=variant.deployed(group.deployment)) for group in groups]


def _errors(holdout: Holdout, variant: Variant) -> Iterator[Array]:
    """Errors within the fit, then by way of leaving out, of runs that do not queue [-]."""
    refit = varied(holdout.refit, variant)
    other = OneStep(refit.times)
    runs = np.flatnonzero(~refit.serving.queued)
    yield other.error[runs]
    parts = (bool(refit.serving.rows), variant.decode, variant.samples)
    for way in WAYS:
        keys, folds = holdout.keys(way, parts)
        yield np.concatenate(
            [errors[np.isin(rows, runs)] for rows, errors in other.left_out(keys, folds)]
        )


def _both(errors: Array) -> str:
    share = np.abs(np.expm1(errors))
    return f"{np.median(share):.1%}, {share.mean():.1%}"
