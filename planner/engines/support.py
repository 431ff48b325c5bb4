"""Where an engine runs and which of its versions its profile knows: beyond is refused or noted."""

from __future__ import annotations

from planner.engines.profiles import Engine, engines, get_engine, release_of
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
    found = release_of(version)
    if found is None or found[0] not in profile.versions:
        accepted = " or ".join(FORMS[form] for form in profile.versions)
        raise UnknownVersion(
            f"engine_version: {version!r} is no version of {profile.name}; accepted: {accepted}"
        )


def check_device(engine: Engine, accelerator: Accelerator) -> None:
    """Raise UnsupportedDevice where an engine is not known to run on an accelerator."""
    if not _runs(engine, accelerator):
        others = (other for name, other in engines().items() if name != "neutral")
        there = [other.id for other in others if _runs(other, accelerator)]
        device = f"{accelerator.id} ({accelerator.architecture}, {_device(accelerator)})"
        raise UnsupportedDevice(
            f"engine: {engine.name} is not known to run on {device}; accepted there: "
            f"{', '.join([*there, 'no engine'])}"
        )


def support_notes(
    engine: Engine, version: str | None, accelerator: Accelerator
) -> tuple[Note, ...]:
    """Return what of a profile was not read or measured on such a device, or at such a version."""
    found = [_device_note(engine, accelerator), _version_note(engine, version)]
    return tuple(note for note in found if note)


def _device(accelerator: Accelerator) -> str:
    return f"{accelerator.vendor} {accelerator.kind}"


def _runs(engine: Engine, accelerator: Accelerator) -> bool:
    """Whether a build is known; of a vendor no profile knows, nothing is."""
    if not engine.backends or _of_unknown_vendor(accelerator):
        return True
    known = _device(accelerator) in engine.backends
    return known and accelerator.architecture not in engine.not_on


def _of_unknown_vendor(accelerator: Accelerator) -> bool:
    devices = {device for engine in engines().values() for device in engine.backends}
    known = any(device.startswith(f"{accelerator.vendor} ") for device in devices)
    return accelerator.part is None and not known


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
        f"with {engine.profiled_with} and taken as the same",
    )


def _version_note(engine: Engine, version: str | None) -> Note | None:
    form, numbers = release_of(version or "") or ("", ())
    if form not in engine.versions:
        return None
    low, high = engine.versions[form]
    if _numbers(low) <= numbers and numbers[: len(_numbers(high))] <= _numbers(high):
        return None
    return Note(
        "engine_version_beyond",
        f"engine_version {version}: figures of {engine.name} are known from {low} to {high}; the "
        f"nearest are taken",
    )


def _numbers(text: str) -> tuple[int, ...]:
    found = release_of(text)
    return found[1] if found else ()
