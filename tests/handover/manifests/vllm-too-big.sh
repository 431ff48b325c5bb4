# expect: {"verdict": "fail", "codes": ["default_moved", "weights_do_not_fit"], "question": {"gpu": "l4"}}
vllm serve meta-llama/Llama-3.1-70B-Instruct
