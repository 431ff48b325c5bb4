# expect: {"verdict": "pass", "codes": ["default_moved", "prefix_caching_off"], "question": {"gpu": "h100-sxm5", "concurrency": 8, "isl": 4000, "osl": 200, "prefix_hit": 0.6}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-prefix-caching
