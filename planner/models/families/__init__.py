"""Importers by family; each module declares MODEL_TYPES, one importer a model_type."""
