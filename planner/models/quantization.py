"""How a checkpoint stores its weights: quantization_config in its many dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import Quantization
from planner.precision import get_format

if TYPE_CHECKING:
    from planner.models.dialects import Config
    from planner.models.modules import RoleFormats


def read_quantization(reader: ConfigReader) -> Quantization:
    """Return the formats, by role, of the checkpoint that `reader`'s config describes.

    An unknown method is noted, and its weights are counted in the model's own type.
    """
    config = reader.raw("quantization_config", "compression_config", "quantization")
    if config is None:
        return Quantization("none")
    if not isinstance(config, Mapping):
        raise ConfigError("quantization_config: expected an object")
    from planner.models.dialects import METHODS  # most configs have no quantisation

    mlx = reader.has("quantization") or "mode" in config
    method = _method(config, mlx)
    if method == "mlx" and not mlx and config.get("quant_method") is None:
        reader.note(
            "assumed_quantization",
            "quantization_config: no quant_method; read as MLX writes it, with embedding and head"
            " as narrow as the rest, which is the least bytes they can be",
        )
    read = METHODS.get(method)
    if read is None:
        reader.note(
            "unknown_quantization",
            f"quantization_config: method {method!r} is unknown; weights are counted in the"
            " model's own type, which is the most they can be",
        )
        return Quantization(method)
    formats = read(reader, config)
    if reader.text("expert_dtype") == "fp4" and "experts" in formats:
        formats["experts"] = get_format("mxfp4")
    return Quantization(_label(method, formats) or "bits", formats, _cache(config))


def _method(config: Config, mlx: bool) -> str:
    """Return the name of the dialect; MLX's has none, and stands under `quantization` (`mlx`)."""
    algorithm = config.get("quant_algo")
    if isinstance(algorithm, str):
        return "modelopt"
    method = config.get("quant_method")
    if isinstance(method, str):
        return method.lower()
    if method is not None:
        raise ConfigError(f"quantization_config.quant_method: {method!r:.40} is not a text")
    if "config_groups" in config or "sparsity_config" in config:
        return "compressed-tensors"
    return "mlx" if mlx or "group_size" in config else ""


def _label(method: str, formats: RoleFormats) -> str:
    """Name for people: the method, or the format where a method has many."""
    if method not in {"modelopt", "compressed-tensors", "fp8", "quark", "torchao"}:
        return method
    names = {formats[role].id for role in ("experts", "mlp", "attention") if role in formats}
    main = next((formats[r].id for r in ("experts", "mlp", "attention") if r in formats), method)
    main = "fp8" if main.startswith("fp8") else main
    return f"{main} (mixed)" if len({name[:3] for name in names}) > 1 else main


def _cache(config: Config) -> str | None:
    scheme = config.get("kv_cache_scheme") or config.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return "fp8" if scheme.get("num_bits") == 8 else None
    return "fp8" if isinstance(scheme, str) and scheme.lower() in {"fp8", "static"} else None
