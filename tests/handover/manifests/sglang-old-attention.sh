# expect: {"verdict": "pass", "codes": ["default_moved", "flag_deprecated"], "fields": {"attention_dp": 8}, "question": {"gpu": "h200-sxm"}}
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 --enable-dp-attention
