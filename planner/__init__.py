"""LLM decode capacity planner: a model, a machine and a workload in; a plan out."""
