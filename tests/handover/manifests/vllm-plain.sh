# expect: {"verdict": "pass", "codes": ["default_moved"], "fields": {"tp": 4}, "question": {"gpu": "h100-sxm5"}}
#!/bin/sh
vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --max-num-batched-tokens 8192
