"""Blocks: the points of one member of a table, so many at a time, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.deployment import Deployment, deployment_of
from planner.plans.columns import Column, grid_columns
from planner.plans.money import PriceBook, Tariff
from planner.plans.table.loads import serving_columns
from planner.plans.table.request import TableRequest
from planner.roofline import Array
from planner.scenario import Scenario
from planner.step.buffers import Buffers
from planner.step.limits import DecodeLimits

BLOCK_ROWS = 40_000
"""Points of a block at most: arrays that stay in the cache of a core [-]."""
BLOCK_CONTEXTS = 256
"""Contexts of a block at most, so that its two axes are short [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class TableBlock:
    """Rows of one member of a table."""

    keys: Mapping[str, str | int | None]
    """What the member is: the same in all rows."""
    constants: Mapping[str, float | None] = field(default_factory=dict)
    """Figures that are the same in all rows."""
    columns: Mapping[str, Column] = field(default_factory=dict)
    """Figures of the shape of the block, or one that broadcasts to it."""
    shape: tuple[int, ...] = (1,)
    error: str | None = None
    """Why the member is impossible; it has one row then, and no figures."""

    @property
    def rows(self) -> int:
        """Rows of the block [-]."""
        return int(np.prod(self.shape))


def blocks(request: TableRequest, buffers: Buffers | None = None) -> Iterator[TableBlock]:
    """Yield the rows of a table, member after member, in memory that does not grow with them.

    A member that is impossible is one row with the reason. With `buffers` the arrays of a block
    hold until the next one.
    """
    prices, tariffs = PriceBook(), dict[str | None, Tariff | None]()
    for scenario in request.scenarios():
        try:
            deployment = deployment_of(scenario)
        except ValueError as error:
            yield TableBlock(keys=keys_of(scenario), error=str(error))
            continue
        accelerator = deployment.accelerator
        if accelerator.part not in tariffs:
            tariffs[accelerator.part] = prices.of(accelerator)
        member = _Member(scenario, deployment, tariffs[accelerator.part], buffers)
        yield from member.under_load(request) if request.serving else member.on_grid(request)


def keys_of(scenario: Scenario, deployment: Deployment | None = None) -> dict[str, Any]:
    """Return what names a member: formats are those used where it is possible."""
    speculation = scenario.speculation
    return {
        "model": deployment.spec.id if deployment else _name(scenario.model),
        "gpu": deployment.accelerator.id if deployment else _name(scenario.gpu),
        "tp": scenario.tp,
        "pp": scenario.pp,
        "ep": scenario.ep,
        "attention_dp": scenario.attention_dp,
        "weights": deployment.weights if deployment else scenario.weights,
        "kv": deployment.formats.kv.id if deployment else scenario.kv,
        "engine": scenario.engine,
        "drafts": speculation.drafts if speculation else 0,
    }


def _name(member: str | dict[str, Any]) -> str | None:
    return member if isinstance(member, str) else member.get("id")


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A deployment of a table."""

    scenario: Scenario
    deployment: Deployment
    tariff: Tariff | None
    buffers: Buffers | None

    @property
    def constants(self) -> dict[str, float | None]:
        memory = self.deployment.memory
        return {
            "weights_bytes_per_gpu": memory.weights_bytes_per_gpu,
            "kv_pool_bytes_per_gpu": max(0.0, memory.kv_pool_bytes_per_gpu),
            "usd_per_gpu_hour": self.tariff.usd_per_gpu_hour if self.tariff else None,
        }

    def on_grid(self, request: TableRequest) -> Iterator[TableBlock]:
        """Yield the member's rows, context after context for each batch."""
        keys, constants = keys_of(self.scenario, self.deployment), self.constants
        contexts = np.array(request.context, float)
        batches = np.array(request.batch, float)
        for columns in chunks(contexts, BLOCK_CONTEXTS):
            of_context = self._of_context(columns, request.limits)
            for rows in chunks(batches, max(1, BLOCK_ROWS // columns.size)):
                shape = (rows.size, columns.size)
                figures = grid_columns(
                    self.deployment, self.scenario.replicas, rows, columns, self.buffers
                )
                yield TableBlock(
                    keys=keys,
                    constants=constants,
                    columns={
                        "batch": rows[:, None],
                        "context": columns,
                        **figures,
                        **of_context,
                        **self._cost(figures["tokens_per_s"], shape),
                    },
                    shape=shape,
                )

    def _of_context(self, contexts: Array, limits: bool) -> dict[str, Column]:
        columns: dict[str, Column] = {"max_batch": self.deployment.memory.max_batch(contexts)}
        if limits:
            each = [self.deployment.limits(context) for context in contexts.tolist()]
            columns |= {name: _numbers(each, name) for name in LIMITS}
        return columns

    def _cost(self, tokens_per_s: Array, shape: tuple[int, ...]) -> dict[str, Column]:
        if self.tariff is None:
            return {}
        gpus = self.deployment.sharding.gpus * self.scenario.replicas
        usd_per_s = self.tariff.usd_per_gpu_hour * gpus / 3600.0
        out = self.buffers.shaped(shape)("usd_per_million", float) if self.buffers else None
        usd = np.divide(usd_per_s * 1e6, tokens_per_s, out=out)
        return {"usd_per_million_output_tokens": np.asarray(usd)}

    def under_load(self, request: TableRequest) -> Iterator[TableBlock]:
        """Yield the member's rows, output lengths after input lengths after concurrencies."""
        keys, constants = keys_of(self.scenario, self.deployment), self.constants
        clients, isl, osl = (np.array(getattr(request, axis), float) for axis in request.load_axes)
        for outputs in chunks(osl, BLOCK_ROWS):
            for inputs in chunks(isl, max(1, BLOCK_ROWS // outputs.size)):
                most = max(1, BLOCK_ROWS // (outputs.size * inputs.size))
                for some in chunks(clients, most):
                    axes = (some[:, None, None], inputs[:, None], outputs)
                    shape = (some.size, inputs.size, outputs.size)
                    figures = serving_columns(self.deployment, self.scenario.replicas, *axes)
                    yield TableBlock(
                        keys=keys,
                        constants=constants,
                        columns={
                            **dict(zip(request.load_axes, axes, strict=True)),
                            **figures,
                            **self._cost(figures["output_tokens_per_s"], shape),
                        },
                        shape=shape,
                    )


LIMITS = ("saturation_intensity", "crossover_batch", "weights_equal_kv_batch", "knee_batch")
"""Limits of decode by context; NaN where there is none."""


def _numbers(limits: list[DecodeLimits], name: str) -> Column:
    return np.array([getattr(each, name) for each in limits], dtype=float)


def chunks(axis: Array, most: int) -> Iterator[Array]:
    """Yield an axis in pieces of `most` values at most."""
    for start in range(0, axis.size, most):
        yield axis[start : start + most]
