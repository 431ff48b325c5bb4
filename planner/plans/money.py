"""What accelerators cost and draw: a price book with dates and kinds, and power from utilisation.

Estimates: a price is the median over providers, power follows utilisation between idle and TDP.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from planner.errors import InvalidInput
from planner.hw import Accelerator, list_prices, price_per_hour

HOURS_PER_MONTH = 730.0
"""365·24/12 [h]."""
KINDS = ("on_demand", "reserved", "spot")
WARNING_DAYS = 90
"""Age of a price from which on it is warned of [day]."""
MOST_DAYS = 365
"""Age of a price past which it is not used, by default [day]."""

IDLE_SHARE = 0.2
"""Share of TDP that an accelerator draws while it waits (assumption) [-]."""
MEMORY_BOUND_SHARE = 0.6
"""Share of TDP that it draws while memory is saturated and arithmetic is not (assumption): decode
was seen at half to two thirds of TDP, prompts near all of it, by Patel et al. (POLCA, 2024), as
recalled, not checked [-]."""


class InvalidPrice(InvalidInput):
    """A price that cannot be used; names the field."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """What an hour of one accelerator costs [USD], of what kind, from when."""

    usd_per_gpu_hour: float
    kind: str
    """own, or one of `KINDS`."""
    date: str | None
    age_days: int | None
    """None for a price of the user's own, or one without a date [day]."""
    providers: int

    @property
    def warning(self) -> str | None:
        """What the reader must know of its age; None where nothing."""
        if self.kind == "own":
            return None
        if self.age_days is None:
            return "the price on record has no date"
        if self.age_days > WARNING_DAYS:
            return f"the price on record is {self.age_days} days old ({self.date})"
        return None


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Which prices to use."""

    kind: str = "on_demand"
    provider: str | None = None
    own_usd_per_gpu_hour: float | None = None
    most_days: int = MOST_DAYS
    duty_cycle: float = 1.0
    """Share of the month that accelerators are paid for [-]."""
    today: date | None = None

    def of(self, accelerator: Accelerator) -> Tariff | None:
        """Return what an accelerator costs; None where no price of the kind is on record, or all
        are older than `most_days`."""
        tariff = self._on_record(accelerator)
        return None if tariff is None or self._too_old(tariff) else tariff

    def missing(self, accelerator: Accelerator) -> str:
        """Return why `of` has no price for an accelerator; empty where it has one."""
        tariff = self._on_record(accelerator)
        if tariff is None:
            where = f" of {self.provider}" if self.provider else ""
            return f"no {self.kind} price{where} is on record for {accelerator.id}"
        if self._too_old(tariff):
            return (
                f"the price on record for {accelerator.id} is {tariff.age_days} days old "
                f"({tariff.date}) and not used; accepted: price_days of {tariff.age_days} or more, "
                f"or usd_per_gpu_hour"
            )
        return ""

    def _too_old(self, tariff: Tariff) -> bool:
        return tariff.age_days is not None and tariff.age_days > self.most_days

    def _on_record(self, accelerator: Accelerator) -> Tariff | None:
        if self.own_usd_per_gpu_hour is not None:
            return Tariff(self.own_usd_per_gpu_hour, "own", None, None, 1)
        part = accelerator.part
        if part is None:
            return None
        if self.kind == "on_demand" and self.provider is None:
            price = price_per_hour(part)
            if price is None:
                return None
            price_row = (price.usd_per_gpu_hour, price.date, price.providers)
        else:
            rows = [
                row
                for row in list_prices(part, self.kind)
                if self.provider is None or row.provider.lower() == self.provider.lower()
            ]
            if not rows:
                return None
            newest = max(row.date or "" for row in rows)
            values = sorted(r.usd_per_gpu_hour for r in rows if (r.date or "") == newest)
            price_row = (values[len(values) // 2], newest or None, len({r.provider for r in rows}))
        age = self._age(price_row[1])
        return Tariff(price_row[0], self.kind, price_row[1], age, price_row[2])

    def _age(self, day: str | None) -> int | None:
        if day is None:
            return None
        parts = [int(part) for part in day.split("-")]
        printed = date(*(*parts, 1, 1)[:3])
        return max(0, ((self.today or date.today()) - printed).days)

    def usd_per_month(self, usd_per_hour: float) -> float:
        """Return what a month costs at the duty cycle [USD]."""
        return usd_per_hour * HOURS_PER_MONTH * self.duty_cycle


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What a million tokens cost [USD]."""

    output: float
    input: float


def token_prices(
    usd_per_hour: float, prompt_share: float, inputs_per_s: float, outputs_per_s: float
) -> TokenPrices:
    """Return the prices of tokens where each kind pays for the time that it takes.

    `prompt_share` is the share of the busy time in which prompts run; waiting is paid by both in
    proportion.
    """
    usd_per_s = usd_per_hour / 3600.0
    return TokenPrices(
        output=usd_per_s * (1.0 - prompt_share) / outputs_per_s * 1e6,
        input=usd_per_s * prompt_share / inputs_per_s * 1e6,
    )


def power_w(accelerator: Accelerator, prompt_share: float, mfu: float, busy: float) -> float | None:
    """Return what one accelerator draws on average [W]; None without a TDP on record.

    Idle it draws `IDLE_SHARE`; decoding `MEMORY_BOUND_SHARE` and on to all of TDP as arithmetic is
    used (`mfu`); in prompts all of it.
    """
    if accelerator.tdp_w is None:
        return None
    decoding = MEMORY_BOUND_SHARE + (1.0 - MEMORY_BOUND_SHARE) * min(mfu, 1.0)
    working = prompt_share + (1.0 - prompt_share) * decoding
    return accelerator.tdp_w * (IDLE_SHARE + (working - IDLE_SHARE) * busy)


def break_even_output_tokens_per_s(
    usd_per_hour: float,
    api_usd_per_million_output: float,
    api_usd_per_million_input: float,
    inputs_per_output: float,
) -> float:
    """Return the output tokens a second from which on accelerators cost less than an API.

    `inputs_per_output` is the input tokens an output token comes with [-].
    """
    each = api_usd_per_million_output + api_usd_per_million_input * inputs_per_output
    return usd_per_hour / 3600.0 / each * 1e6
