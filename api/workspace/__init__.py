"""A whole workspace as one document: exported, and imported elsewhere."""
