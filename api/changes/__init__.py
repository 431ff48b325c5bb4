"""The audit trail of a workspace."""
