"""Reading a config.json: checked fields under any of their names, with every assumption noted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import InvalidInput
from planner.models.defaults import NEVER_TIED, WHOLE_INSIDE, ties_inside
from planner.models.spec import Note

LARGEST = {"layers": 4096, "hidden": 2**20, "heads": 2**16, "experts": 2**16, "default": 10**9}
"""Sizes above these are refused as absurd."""

OUTER = frozenset(
    {
        "tie_word_embeddings",
        "dtype",
        "torch_dtype",
        "quantization_config",
        "compression_config",
        "quantization",
        "expert_dtype",
    }
)
"""Fields a nested text_config may leave to the object around it."""


class ConfigError(InvalidInput):
    """A config that cannot be read: the message names the field and what is accepted."""


class ConfigReader:
    """A view of one (possibly nested) config that validates, and remembers what was used.

    `used` collects the fields an importer read, which is what the catalogue keeps of a config;
    `notes` what it had to assume, `assumed` the defaults that stood in for fields it lacks:
    `defaults` of the family, else `class_defaults` of the type; not those of a `whole` config,
    which leaves out what it does not have. A reader that `inherits` looks for every field it lacks
    in its parent, others for those of `OUTER`.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        path: str = "",
        parent: ConfigReader | None = None,
        inherits: bool = False,
    ) -> None:
        if not isinstance(config, Mapping):
            raise ConfigError(
                f"{path or 'config'}: expected a JSON object, got {type(config).__name__}"
            )
        self.config = config
        self.path = path
        self.outer = parent
        self.inherits = inherits
        self.used: dict[str, Any] = {}
        self.notes: list[Note] = parent.notes if parent else []
        self.assumed: dict[str, Any] = parent.assumed if parent else {}
        self.defaults: Mapping[str, Any] = {}
        self.class_defaults: Mapping[str, Any] = {}
        self.whole: bool = parent.whole if parent else False

    def nested(self, *names: str) -> ConfigReader | None:
        """Return a reader of the first of `names` that holds an object, or None."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, Mapping):
                child = ConfigReader(value, f"{self.path}{name}.", self)
                before = self.used.get(name)
                if isinstance(before, dict) and before is not value:
                    child.used = before
                self.used[name] = child.used
                return child
        return None

    def note(self, code: str, text: str) -> None:
        """Record something the user must know."""
        self.notes.append(Note(code, text))

    def has(self, *names: str) -> bool:
        """Return whether any of `names` is present and not null."""
        return self.raw(*names) is not None

    def raw(self, *names: str) -> Any:
        """Return the first value among `names` that is present and not null, else None.

        A field may stand in the object around this one (see the class). A field in neither has its
        default, if any: an explicit null is not a missing field.
        """
        for name in names:
            if self.config.get(name) is not None:
                self.used[name] = self.config[name]
                return self.config[name]
        if self.outer and (shared := [n for n in names if self.inherits or n in OUTER]):
            value = self.outer.raw(*shared)
            if value is not None:
                return value
        if any(self.stated(name) for name in names):
            return None
        return self._default(names)

    def _default(self, names: tuple[str, ...]) -> Any:
        for defaults in (self.defaults, {} if self.whole else self.class_defaults):
            for name in names:
                if name in defaults:
                    if defaults[name] not in (None, 0, 1, []):  # switches and steps say little
                        self.assumed[f"{self.path}{name}"] = defaults[name]
                    return defaults[name]
        return None

    def tied(self, default: bool) -> bool:
        """Return whether head and embedding are one table.

        Where the objects around a text_config say it too, the outermost decides, as in the
        reference implementation; an outer class without the field ties nothing. `default` is the
        family's own.
        """
        around = self.outer.text("model_type") if self.outer else ""
        whole = around in WHOLE_INSIDE
        deciding = self if whole else _outermost(self, "tie_word_embeddings")
        if around in NEVER_TIED or (deciding is self and self.outer and not ties_inside(around)):
            return False
        return deciding.flag("tie_word_embeddings", default=default)

    def stated(self, name: str) -> bool:
        """Return whether `name` is in the file at all, be it null."""
        if name in self.config:
            self.used[name] = self.config[name]
        return name in self.config

    def size(self, *names: str, default: int | None = None, zero: bool = False) -> int:
        """Return a whole number of 1 or more (0 allowed with `zero`).

        A list that says the same number for every layer counts as that number.
        Raises ConfigError naming the field when it is missing without default, not a whole number,
        NaN, negative or absurd.
        """
        value = self.raw(*names)
        if value is None:
            if default is None:
                known = " or ".join(f"{self.path}{name}" for name in names)
                raise ConfigError(f"{known}: missing; a whole number of 1 or more is needed")
            return default
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        return self.check_size(self.stating(*names), value, zero)

    def stating(self, *names: str) -> str:
        """Return the first of `names` that the config has, or the first of all."""
        return next((name for name in names if self.config.get(name) is not None), names[0])

    def check_size(self, name: str, value: Any, zero: bool = False) -> int:
        """Return `value` as a whole number within bounds; raises ConfigError otherwise."""
        low = 0 if zero else 1
        kinds = (kind for kind in LARGEST if kind.rstrip("s") in name and "per_layer" not in name)
        high = LARGEST[next(kinds, "default")]
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
        ):
            raise ConfigError(
                f"{self.path}{name}: {value!r} is not a whole number of {low} or more"
            )
        if value != int(value) or not low <= value <= high:
            raise ConfigError(
                f"{self.path}{name}: {value!r} is out of range; accepted: {low} to {high}"
            )
        return int(value)

    def optional_size(self, *names: str) -> int | None:
        """Return a whole number of 0 or more, or None where it is missing or null."""
        return self.size(*names, zero=True) if self.has(*names) else None

    def number(self, *names: str, default: float) -> float:
        """Return a finite positive number; raises ConfigError otherwise."""
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
            named = f"{self.path}{self.stating(*names)}"
            raise ConfigError(f"{named}: {value!r} is not a positive number")
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a boolean; 0 and 1 count. Raises ConfigError on anything else."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise ConfigError(f"{self.path}{self.stating(*names)}: {value!r} is not true or false")
        return bool(value)

    def text(self, *names: str, default: str = "") -> str:
        """Return a string."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise ConfigError(f"{self.path}{self.stating(*names)}: {value!r} is not a text")
        return value

    def sequence(self, *names: str) -> list[Any] | None:
        """Return a list, or None where it is missing or null."""
        value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > LARGEST["layers"]:
            raise ConfigError(
                f"{self.path}{self.stating(*names)}: expected a list of at most {LARGEST['layers']}"
            )
        return value

    def pattern(self, layers: int, *names: str) -> list[Any] | None:
        """Return a list with an entry for each of `layers` layers (longer lists are cut)."""
        values = self.sequence(*names)
        if values is not None and len(values) < layers:
            raise ConfigError(
                f"{self.path}{self.stating(*names)}: {len(values)} entries for {layers} layers"
            )
        return None if values is None else values[:layers]


def _outermost(reader: ConfigReader, name: str) -> ConfigReader:
    """Return the outermost reader around `reader` whose object states `name`, else itself."""
    stating = reader
    outer = reader.outer
    while outer is not None:
        if outer.config.get(name) is not None:
            stating = outer
        outer = outer.outer
    return stating


def every(period: int, layers: int, offset: int = 0) -> list[bool]:
    """Return, layer by layer, whether (layer − offset) is a multiple of `period`."""
    return [(index - offset) % period == 0 for index in range(layers)]


def first_key(config: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first of `names` that `config` has, or None."""
    return next((name for name in names if name in config), None)
