"""Long work as jobs: asked for, done by worker processes, and kept for a while."""
