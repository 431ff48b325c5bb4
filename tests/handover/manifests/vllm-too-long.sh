# expect: {"verdict": "fail", "codes": ["default_moved", "length_does_not_fit"], "question": {"gpu": "l4"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072
