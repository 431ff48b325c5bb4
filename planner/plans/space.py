"""The space a recommendation searches: engines, formats and splits of a model on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from planner.deployment import Deployment, Options, deploy, drafted
from planner.engines.names import engine_names
from planner.engines.profiles import get_engine
from planner.engines.settings import MemorySettings
from planner.engines.support import UnsupportedDevice, check_device
from planner.hw import Accelerator
from planner.models.spec import ModelSpec
from planner.precision import get_format
from planner.scenario import SpeculationOptions
from planner.step.parallel import Sharding

MOST_GPUS = 64
"""GPUs of one replica at most, however many a link domain joins [-]."""
MOST_STAGES = 8
"""Pipeline stages at most [-]."""
WITHOUT_DOMAIN = 8
"""Cards a host without a scale-up link is tried with, over PCIe [-]."""
QUANTISED_KV = "fp8"
"""Cache format tried beside the engine's default."""


@dataclass(frozen=True, slots=True)
class Axes:
    """What a question leaves open, and what it fixes; None is open."""

    settings: MemorySettings
    engines: tuple[str, ...] | None = None
    engine_version: str | None = None
    weights: tuple[str | None, ...] = (None,)
    kv: tuple[str, ...] | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    attention_dp: int | None = None
    speculation: SpeculationOptions | None = None
    most_gpus: int | None = None
    """GPUs that there are [-]."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Options that cannot be run, how many, and why the first of them."""

    gpu: str
    reason: str


def engines_for(accelerator: Accelerator, spec: ModelSpec, axes: Axes) -> tuple[str | None, ...]:
    """Return the engines to try: those that were measured serving and run on the accelerator.

    A model stored as a GGUF file is llama.cpp's. Where no engine is known to run, none is named.
    """
    if axes.engines is not None:
        return axes.engines
    wanted = "bench" if in_gguf(spec) else "serving"
    engines = []
    for name in engine_names():
        engine = get_engine(name)
        if wanted not in engine.measured:
            continue
        try:
            check_device(engine, accelerator)
        except UnsupportedDevice:
            continue
        engines.append(name)
    return tuple(engines) or (None,)


def in_gguf(spec: ModelSpec) -> bool:
    """Return whether a model is stored as a GGUF file."""
    formats = spec.quantization.formats.values()
    return any((get_format(f) if isinstance(f, str) else f).whole_file for f in formats)


def splits(spec: ModelSpec, accelerator: Accelerator, axes: Axes) -> Iterator[Sharding]:
    """Yield the splits of a replica in powers of two, fewest GPUs first.

    Attention data parallelism is for models with routed experts: others would run as replicas.
    """
    most = most_gpus(accelerator)
    if axes.most_gpus is not None:
        most = min(most, axes.most_gpus)
    moe = "moe" in spec.kind
    powers = [2**n for n in range(most.bit_length()) if 2**n <= most]
    degrees = (
        _open(axes.tp, powers),
        _open(axes.pp, [n for n in powers if n <= min(MOST_STAGES, spec.layers)]),
        _open(axes.attention_dp, powers if moe else [1]),
    )
    for tp, pp, dp in sorted(product(*degrees), key=lambda d: (d[0] * d[1] * d[2], d)):
        if tp * pp * dp > most and axes.tp is None:
            continue
        ranks = tp * dp
        for ep in _open(axes.ep, sorted({1, ranks}) if moe else [1]):
            yield Sharding(tp, pp, ep, dp)


def count_options(spec: ModelSpec, accelerator: Accelerator, axes: Axes) -> int:
    """Return the options there are on an accelerator, those that will be refused included [-]."""
    formats = len(axes.weights) * (2 if axes.kv is None else len(axes.kv))
    engines = len(engines_for(accelerator, spec, axes))
    return engines * formats * sum(1 for _ in splits(spec, accelerator, axes))


def most_gpus(accelerator: Accelerator) -> int:
    """Return the GPUs of one replica at most: of a link domain, or of a host without one [-]."""
    if accelerator.link.bytes_per_s is None:
        return 1
    return min(max(accelerator.domain_size or 1, WITHOUT_DOMAIN), MOST_GPUS)


def _open(given: int | None, degrees: Sequence[int]) -> list[int]:
    return [given] if given is not None else list(degrees)


def options(
    spec: ModelSpec, accelerator: Accelerator, axes: Axes
) -> Iterator[Deployment | Refused]:
    """Yield every deployment of a model on an accelerator, and why others are refused."""
    held = {name: _held_bytes(spec, name) for name in axes.weights}
    for engine, weights in product(engines_for(accelerator, spec, axes), axes.weights):
        default: str | None = None
        for kv in (None, QUANTISED_KV) if axes.kv is None else axes.kv:
            choice = Options(weights, kv, engine, axes.engine_version, axes.settings)
            for split in splits(spec, accelerator, axes):
                each = held[weights] / split.gpus
                if axes.settings == MemorySettings() and each > accelerator.memory():
                    yield Refused(accelerator.id, _too_large(each, split, accelerator))
                    continue
                try:
                    deployment = deploy(spec, accelerator, split, choice)
                except ValueError as error:
                    yield Refused(accelerator.id, str(error))
                    continue
                if kv is None:
                    default = deployment.formats.kv.id
                elif axes.kv is None and deployment.formats.kv.id == default:
                    break
                yield from _drafting(deployment, choice, axes)


def _drafting(deployment: Deployment, choice: Options, axes: Axes) -> Iterator[Deployment]:
    """Yield a deployment, and with drafts of its own layers where the model has such."""
    given = axes.speculation
    if given is None:
        yield deployment
    if given is not None or deployment.spec.mtp_params:
        wanted = given or SpeculationOptions(drafts=1, accepted=None)
        spec, accelerator, split = deployment.spec, deployment.accelerator, deployment.sharding
        with_drafts = replace(choice, drafts=wanted.drafts)
        yield drafted(deploy(spec, accelerator, split, with_drafts), wanted)


def _held_bytes(spec: ModelSpec, weights: str | None) -> float:
    return spec.weights_bytes(spec.formats(weights))


def _too_large(each: float, split: Sharding, accelerator: Accelerator) -> str:
    return (
        f"weights take {each / 1e9:.1f} GB per GPU at {split.gpus} GPUs, memory is "
        f"{accelerator.memory() / 1e9:.1f} GB"
    )
