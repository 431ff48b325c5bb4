"""How the answer to a workload is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.commands.output import print_notes, print_table, print_verdict
from planner.units import number, percent, scaled, seconds

if TYPE_CHECKING:
    from planner.answer import NoteAnswer
    from planner.plans.recommend import Recommendation
    from planner.plans.sized import GpuCount, Sized, SizedOption

MOST_REFUSED = 12
"""Accelerators a table of refusals shows; --json gives all."""


def print_sized(result: Recommendation) -> None:
    """Print the best options, the front, and what is refused."""
    sized = result.sized
    if sized is None:
        return
    print_verdict(sized_verdict(sized))
    _print_named(sized)
    if sized.options:
        print_table(HEADINGS, [_row(option) for option in sized.options], "front", LEGEND)
    if sized.nearest is not None:
        print_table(HEADINGS, [_row(sized.nearest.option)], "nearest", LEGEND)
    _print_costs(result)
    _print_simulated(sized)
    refused = sized.refused[:MOST_REFUSED]
    if refused:
        rows = [(r.gpu, str(r.count), r.reason) for r in refused]
        print_table(("cannot", "options", "why"), rows)
    print_notes([*result.notes, *(_shared_notes(sized))])


def sized_verdict(sized: Sized) -> str:
    """Return the answer in a sentence or two."""
    if sized.nearest is not None:
        text = sized.nearest.text
        return f"{text[0].upper()}{text[1:]}."
    if not sized.options:
        return "None of these accelerators can run this."
    best = sized.cheapest if sized.cheapest is not None else sized.smallest
    option = sized.options[best or 0]
    text = f"{option.summary} on {option.gpu}{_under(option)}"
    if option.scenario.demand:
        text += (
            f"; {_needed(option.gpus_needed)}. The limits hold with a probability of "
            f"{option.probability:.0%}"
        )
    text += (
        f", bound by {option.binds}: {number(option.requests_per_s)} requests/s, "
        f"{scaled(option.output_tokens_per_s, 'tok/s')}"
    )
    return f"{text}. {sized.evaluated} options were evaluated."


def _under(option: SizedOption) -> str:
    return f" under {option.engine}" if option.engine else ""


def _needed(count: GpuCount) -> str:
    return f"{band(count)} GPUs with 80%"


def band(count: GpuCount) -> str:
    """Return the interval of 80% of a number of GPUs."""
    least, most = ("∞" if end is None else str(end) for end in (count.p10, count.p90))
    return least if least == most else f"{least}–{most}"


def _print_named(sized: Sized) -> None:
    rows = []
    for name in ("cheapest", "fastest", "smallest"):
        at = getattr(sized, name)
        if at is not None:
            option = sized.options[at]
            rows.append((name, option.gpu, option.engine or "–", option.summary))
    if rows:
        print_table(("best", "gpu", "engine", "how"), rows)


HEADINGS = (
    "gpu",
    "engine",
    "formats",
    "replicas",
    "GPUs",
    "80%",
    "holds",
    "TTFT",
    "TPOT",
    "per GPU",
    "$/month",
    "$/M out",
    "J/tok",
    "binds",
)
LEGEND = (
    "formats: of weights and KV cache; 80%: band of GPUs needed; holds: probability that the "
    "limits hold; per GPU: output tokens/s"
)


def _row(option: SizedOption) -> tuple[str, ...]:
    money, energy, count = option.money, option.energy, option.gpus_needed
    apart = f"+{option.prefill.workers}" if option.prefill else ""
    degrees = ((option.tp, "TP"), (option.pp, "PP"), (option.attention_dp, "DP"), (option.ep, "EP"))
    split = "·".join(f"{name}{n}" for n, name in degrees if n > 1 or name == "TP")
    return (
        option.gpu + (" (announced)" if option.status == "announced" else ""),
        option.engine or "–",
        option.weights if option.kv == option.weights else f"{option.weights}/{option.kv}",
        f"{option.replicas}{apart}×{split}" + (f" +{option.drafts} draft" if option.drafts else ""),
        str(option.gpus),
        band(count),
        percent(option.probability),
        seconds(option.ttft_s.p50),
        seconds(option.tpot_s.p50),
        number(option.output_tokens_per_s_per_gpu),
        "–" if money is None else f"{money.usd_per_month:,.0f}",
        number(money.usd_per_million_output_tokens if money else None),
        number(energy.joules_per_output_token if energy else None),
        option.binds,
    )


def _print_costs(result: Recommendation) -> None:
    """Print what an API's price or a grid factor was given for: break-even, energy and CO₂."""
    request, sized = result.request, result.sized
    prices = (request.api_usd_per_million_output, request.grid_kg_co2_per_kwh)
    if sized is None or prices == (None, None):
        return
    rows = []
    for name in ("cheapest", "fastest", "smallest"):
        at = getattr(sized, name)
        if at is None:
            continue
        option = sized.options[at]
        money, energy = option.money, option.energy
        even = money.break_even_output_tokens_per_s if money else None
        rows.append(
            (
                name,
                "–" if money is None else f"{money.usd_per_month:,.0f}",
                scaled(option.output_tokens_per_s, "tok/s"),
                "–" if even is None else scaled(even, "tok/s"),
                number(energy.watts_per_gpu if energy else None),
                number(energy.kwh_per_month if energy else None),
                number(energy.kg_co2_per_month if energy else None),
            )
        )
    heads = ("best", "$/month", "output", "breaks even at", "W/GPU", "kWh/month", "kg CO₂/month")
    print_table(heads, rows, title="estimates of cost and energy")


def _print_simulated(sized: Sized) -> None:
    rows = [
        (
            option.summary,
            f"{one.ttft_s.p50:.3g} / {one.ttft_s.p99:.3g} s",
            f"{one.tpot_s.p50 * 1e3:.3g} / {one.tpot_s.p99 * 1e3:.3g} ms",
            f"{one.e2e_s.p50:.3g} / {one.e2e_s.p99:.3g} s",
            percent(one.share_within_limits),
        )
        for option in sized.options
        if (one := option.simulated) is not None
    ]
    if rows:
        title = "simulated request by request: P50 / P99 over requests"
        print_table(("option", "TTFT", "TPOT", "end to end", "within limits"), rows, title=title)


def _shared_notes(sized: Sized) -> list[NoteAnswer]:
    """Return the notes of the best options, each once."""
    chosen = [getattr(sized, name) for name in ("cheapest", "fastest", "smallest")]
    notes = [note for at in chosen if at is not None for note in sized.options[at].notes]
    return list({(note.code, note.text): note for note in notes}.values())
