"""The header of a GGUF file: its metadata and the shapes and types of its tensors.

Only the header is read: a file may end with it, but one that holds a part of the tensors it
describes is refused. Layout: GGUF specification, versions 2 and 3 (``ggml/docs/gguf.md``): magic,
version, counts, typed key-value pairs, tensor infos, then the tensors from an aligned offset.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.models.reader import ConfigError

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""struct codes of the value types but text (8) and array (9)."""
_TEXT, _ARRAY = 8, 9
_KEPT = 4096
"""Longest array kept; longer ones (vocabularies) are skipped."""
LARGEST_TENSOR = 10**13
"""More values than this in one tensor are refused as absurd [value]."""
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as the header describes it."""

    name: str
    shape: tuple[int, ...]
    """Sizes, fastest first: a matrix is (inputs, outputs)."""
    type: str
    """Name of the ggml type, in lower case."""
    elements: int
    bytes: int
    offset: int = 0
    """Where its values begin, from the start of the tensors [byte]."""


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata and tensors of a file, or of all the files a model is split over."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    missing: tuple[str, ...] = field(default=())
    """Names of split files that are not there."""
    header_only: bool = False
    """Whether a file ends with its header."""


def read_header(path: Path) -> Header:
    """Return the header of `path`, joined with those of the other files of a split model.

    Raises ConfigError naming the file when it is missing, not a GGUF file, or cut in its header.
    """
    match = _SPLIT.search(path.name)
    if match is None:
        return _read_one(path)
    names = [
        f"{path.name[: match.start()]}-{number:05d}-of-{match[2]}{path.name[match.end() :]}"
        for number in range(1, int(match[2]) + 1)
    ]
    parts = [path.with_name(name) for name in names]
    headers = [_read_one(part) for part in parts if part.exists() or part == path]
    metadata: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for header in reversed(headers):
        metadata.update(header.metadata)
        tensors.update(header.tensors)
    missing = tuple(part.name for part in parts if not part.exists())
    return Header(metadata, tensors, missing, any(header.header_only for header in headers))


def _read_one(path: Path) -> Header:
    try:
        if path.is_file() and not path.stat().st_size:
            raise ConfigError(f"{path.name}: cannot be read: the file is empty")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _Cursor(path, view).header()
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read: {error.strerror}") from None
    except (struct.error, UnicodeDecodeError, IndexError, RecursionError):
        raise ConfigError(f"{path.name}: not a GGUF file, or cut within its header") from None


class _Cursor:
    """A position in a header being read; raises struct.error or IndexError past the end."""

    def __init__(self, path: Path, view: mmap.mmap) -> None:
        self.path = path
        self.view = view
        self.at = 0
        self.order = "<"

    def header(self) -> Header:
        if self.view[:4] != b"GGUF":
            raise ConfigError(f"{self.path.name}: not a GGUF file")
        self.at = 4
        version = self.unpack("I")
        if version > 0xFFFF:  # written on a big-endian machine
            self.order = ">"
            version = int.from_bytes(int(version).to_bytes(4, "little"), "big")
        if version not in (2, 3):
            raise ConfigError(f"{self.path.name}: GGUF version {version}; accepted: 2, 3")
        tensors, pairs = self.count(), self.count()
        metadata = {}
        for _ in range(pairs):
            key = self.text()
            metadata[key] = self.value(self.unpack("I"))
        sizes = _type_sizes()
        infos = [self.tensor(sizes) for _ in range(tensors)]
        header_only = self.check_size(infos, metadata.get("general.alignment"))
        return Header(metadata, {info.name: info for info in infos}, header_only=header_only)

    def check_size(self, infos: list[Tensor], alignment: Any) -> bool:
        """Return whether the file ends with its header; raises ConfigError if it is cut later."""
        step = alignment if isinstance(alignment, int) and 1 <= alignment <= 2**20 else 32
        start = -(-self.at // step) * step
        size = len(self.view)
        if size <= start:
            return bool(infos)
        last = max(infos, key=lambda info: info.offset + info.bytes, default=None)
        if last is not None and start + last.offset + last.bytes > size:
            raise ConfigError(
                f"{self.path.name}: cut: tensor {last.name} ends at byte"
                f" {start + last.offset + last.bytes} of a file of {size}"
            )
        return False

    def unpack(self, code: str) -> Any:
        (value,) = struct.unpack_from(self.order + code, self.view, self.at)
        self.at += struct.calcsize(self.order + code)
        return value

    def count(self) -> int:
        """Return a length; one beyond the end of the file is refused before it is looped over."""
        value = int(self.unpack("Q"))
        if value > len(self.view) - self.at:
            raise IndexError
        return value

    def text(self) -> str:
        length = self.count()
        self.at += length
        return self.view[self.at - length : self.at].decode()

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.unpack(_SCALARS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            raise IndexError
        inner, length = self.unpack("I"), self.count()
        if inner not in _SCALARS:
            values = [self.value(inner) for _ in range(length)]
            return values if length <= _KEPT else None
        code = f"{self.order}{length}{_SCALARS[inner]}"
        start = self.at
        self.at += struct.calcsize(code)
        if self.at > len(self.view):
            raise IndexError
        return list(struct.unpack_from(code, self.view, start)) if length <= _KEPT else None

    def tensor(self, sizes: Mapping[int, tuple[str, int, int]]) -> Tensor:
        name = self.text()
        dimensions = self.unpack("I")
        if not 1 <= dimensions <= 8:
            raise IndexError
        shape = tuple(int(self.unpack("Q")) for _ in range(dimensions))
        kind, offset = self.unpack("I"), int(self.unpack("Q"))
        if kind not in sizes:
            raise ConfigError(f"{self.path.name}: tensor {name} is of unknown type {kind}")
        label, block, block_bytes = sizes[kind]
        elements = math.prod(shape)
        if not 0 < elements <= LARGEST_TENSOR:
            raise ConfigError(
                f"{self.path.name}: tensor {name}: shape {list(shape)} is out of range; accepted:"
                f" 1 to {LARGEST_TENSOR} values"
            )
        return Tensor(name, shape, label, elements, elements // block * block_bytes, offset)


def _type_sizes() -> dict[int, tuple[str, int, int]]:
    """Return, by ggml type, its name, the values in a block and the bytes of one."""
    try:
        from gguf import GGML_QUANT_SIZES
    except ImportError:
        raise ConfigError("reading .gguf files needs the package gguf") from None
    return {int(kind): (kind.name.lower(), *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
