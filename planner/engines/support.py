"""Where an engine runs and which of its versions its profile knows: beyond is refused or noted."""

from __future__ import annotations

from planner.engines.defaults import read_range
from planner.engines.names import engine_names
from planner.engines.profiles import Engine, engines, get_engine
from planner.engines.versions import numbers, version_of
from planner.errors import InvalidInput
from planner.hw import Accelerator
from planner.models.spec import Note


class UnsupportedDevice(InvalidInput):
    """An engine that no build of is known for an accelerator."""


class UnknownVersion(InvalidInput):
    """A version that is none, or that belongs to no engine."""


FORMS = {
    "release": "a release (0.17.0)",
    "date": "the date of a build (2026-04, nightly-20260402)",
    "build": "the number of a build (b6118)",
}
"""What a version may be, by the word a profile's `versions` has for it."""


def check_version(engine: str | None, version: str | None) -> None:
    """Raise UnknownVersion where a version cannot be read as one of the engine's.

    Measured rows name builds in many other ways, and are read by their profile all the same: this
    is for questions. Raises UnknownEngine, too.
    """
    profile = get_engine(engine)
    if version is None:
        return
    if engine is None:
        raise UnknownVersion(f"engine_version: {version!r} of no engine; accepted: with engine")
    read = version_of(version)
    if read is None or read[0] not in profile.versions:
        accepted = " or ".join(FORMS[form] for form in profile.versions)
        raise UnknownVersion(
            f"engine_version: {version!r} is no version of {profile.name}; accepted: {accepted}"
        )


def check_device(engine: Engine, accelerator: Accelerator) -> None:
    """Raise UnsupportedDevice where an engine is not known to run on an accelerator."""
    if not _runs(engine, accelerator):
        there = [name for name in engine_names() if _runs(get_engine(name), accelerator)]
        device = f"{accelerator.id} ({accelerator.architecture}, {_device(accelerator)})"
        raise UnsupportedDevice(
            f"engine: {engine.name} is not known to run on {device}; accepted there: "
            f"{', '.join([*there, 'no engine'])}"
        )


def support_notes(
    engine: Engine, version: str | None, accelerator: Accelerator
) -> tuple[Note, ...]:
    """Return what of a profile was not read or measured on such a device, or at such a version."""
    notes = [
        _device_note(engine, accelerator),
        _version_note(engine, version),
        _unmeasured_note(engine),
    ]
    return tuple(note for note in notes if note)


def _device(accelerator: Accelerator) -> str:
    return f"{accelerator.vendor} {accelerator.kind}"


def _runs(engine: Engine, accelerator: Accelerator) -> bool:
    """Whether a build is known; of a vendor no profile knows, nothing is."""
    if not engine.backends or _of_unknown_vendor(accelerator):
        return True
    known = _device(accelerator) in engine.backends
    return known and accelerator.architecture not in engine.not_on


def _of_unknown_vendor(accelerator: Accelerator) -> bool:
    if accelerator.part is not None:
        return False
    devices = {device for engine in engines().values() for device in engine.backends}
    return not any(device.startswith(f"{accelerator.vendor} ") for device in devices)


def _device_note(engine: Engine, accelerator: Accelerator) -> Note | None:
    if not engine.backends:
        return None
    backend = engine.backends.get(_device(accelerator))
    if backend is None:
        text = f"whether {engine.name} runs on {accelerator.id} is not known: taken as if it did"
        return Note("engine_device_unknown", text)
    if backend == engine.profiled_with:
        return None
    return Note(
        "engine_backend",
        f"{engine.name} runs on {accelerator.id} with {backend}; what it takes of memory is known "
        f"with {engine.profiled_with} and taken as the same, which may be too little or too much: "
        f"weights and bytes a token are exact all the same",
    )


def _version_note(engine: Engine, version: str | None) -> Note | None:
    """Whether a version is one whose defaults were read, and whose memory was measured."""
    given = version_of(version)
    if given is None or given[0] not in engine.versions:
        return None
    measured = engine.versions[given[0]]
    read = read_range(engine.id) if given[0] != "date" else None
    if read and not _within(given[1], _widest(read, measured)):
        return Note(
            "engine_version_beyond",
            f"engine_version {version}: defaults of {engine.name} were read from {read[0]} to "
            f"{read[1]}; those of {engine.release} are taken: 0.02 more of memory_fraction, the "
            f"largest change yet, is 2% of memory for the cache",
        )
    if _within(given[1], measured):
        return None
    if read is None:
        return Note(
            "engine_version_beyond",
            f"engine_version {version}: figures of {engine.name} are known from {measured[0]} to "
            f"{measured[1]}; the nearest are taken, whose pools were off by 10% of memory at most",
        )
    return Note(
        "engine_version_unmeasured",
        f"engine_version {version}: its defaults were read, but what {engine.name} keeps of memory "
        f"beside weights and cache was measured from {measured[0]} to {measured[1]} and is taken "
        f"as the nearest: that moved by 5% of memory at most before (vLLM 0.16 to 0.17)",
    )


def _unmeasured_note(engine: Engine) -> Note | None:
    if engine.measured or not engine.backends:
        return None
    return Note(
        "engine_unmeasured",
        f"no run of {engine.name} is on record: times are those of hardware and model, and the "
        f"interval is the widest there is",
    )


Bounds = tuple[str, str]


def _within(given: tuple[int, ...], bounds: Bounds) -> bool:
    low, high = (numbers(bound) for bound in bounds)
    return low <= given and given[: len(high)] <= high


def _widest(one: Bounds, other: Bounds) -> Bounds:
    return min(one[0], other[0], key=numbers), max(one[1], other[1], key=numbers)
