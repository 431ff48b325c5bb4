# expect: {"verdict": "pass", "codes": ["default_moved", "flags_conflict"], "fields": {"kv_pool_bytes": 20000000000}, "question": {"gpu": "h100-sxm5"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilization 0.95 --kv-cache-memory-bytes 20000000000
