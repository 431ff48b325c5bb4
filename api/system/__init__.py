"""Operating the service: health, metrics, editions, API keys and who may do what."""
