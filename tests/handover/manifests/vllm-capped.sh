# expect: {"verdict": "pass", "codes": ["default_moved", "sequences_capped"], "question": {"gpu": "h100-sxm5", "concurrency": 64, "isl": 500, "osl": 200}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 16
