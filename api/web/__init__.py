"""What every area of the service shares: errors, authorisation, cursors, entity tags."""
