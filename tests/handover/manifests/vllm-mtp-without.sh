# expect: {"verdict": "pass", "codes": ["default_moved", "draft_layers_missing"], "question": {"gpu": "h100-sxm5"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --speculative-config.method mtp --speculative-config.num_speculative_tokens 2
