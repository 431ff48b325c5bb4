# expect: {"verdict": "pass", "codes": ["default_moved", "flag_deprecated"], "fields": {"attention_dp": 8, "ep": 8, "speculation": {"drafts": 1}}, "question": {"gpu": "h200-sxm"}}
vllm serve deepseek-ai/DeepSeek-V3 --data-parallel-size 8 --enable-expert-parallel \
  --speculative-config '{"method": "deepseek_mtp", "num_speculative_tokens": 1}'
