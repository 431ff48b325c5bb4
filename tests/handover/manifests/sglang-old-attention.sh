# expect: {"verdict": "pass", "codes": ["default_moved", "flag_deprecated"], "fields": {"attention_dp": 8, "max_model_len": 65536}, "question": {"gpu": "h200-sxm"}}
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --context-length 65536 --tp 8 --dp 8 --enable-dp-attention
