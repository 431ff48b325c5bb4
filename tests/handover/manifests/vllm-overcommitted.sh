# expect: {"verdict": "pass", "codes": ["cache_holds_fewer", "default_moved"], "question": {"gpu": "h100-sxm5", "concurrency": 8, "isl": 16000, "osl": 500}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 1024
