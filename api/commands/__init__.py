"""Commands that the service adds to `planner`."""
