# expect: {"verdict": "fail", "codes": ["default_moved"], "question": {"gpu": "h100-sxm5", "concurrency": 64, "isl": 1000, "osl": 500, "tpot_ms": 1}}
vllm serve meta-llama/Llama-3.1-8B-Instruct
