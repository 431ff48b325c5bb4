# expect: {"verdict": "fail", "codes": ["default_moved", "tp_does_not_divide"], "fields": {"tp": 6}, "question": {"gpu": "h100-sxm5"}}
vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 6
