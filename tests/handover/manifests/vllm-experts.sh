# expect: {"verdict": "pass", "codes": ["default_moved", "experts_missing"], "question": {"gpu": "h100-sxm5"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --enable-expert-parallel --all2all-backend deepep_low_latency
