"""Operating the service: keys, health, metrics, workspaces."""
