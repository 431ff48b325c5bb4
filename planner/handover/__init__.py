"""From an answer to a running deployment and back: commands and manifests, checks, observation."""
