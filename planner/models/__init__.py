"""What a model is: specs, importers, parameter and cache arithmetic, the catalogue."""

from planner.models.catalogue import UnknownModel, describe, edition, get_model, list_models
from planner.models.reader import ConfigError
from planner.models.spec import ModelSpec

__all__ = [
    "ConfigError",
    "ModelSpec",
    "UnknownModel",
    "describe",
    "edition",
    "get_model",
    "list_models",
]
