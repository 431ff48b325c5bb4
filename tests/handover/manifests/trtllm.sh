# expect: {"verdict": "pass", "codes": ["not_understood"], "fields": {"ep": 8, "memory_fraction": 0.8}, "question": {"gpu": "h200-sxm"}}
cat > extra.yaml <<'EOF'
kv_cache_config:
  free_gpu_memory_fraction: 0.8
no_such_key: 1
EOF
trtllm-serve deepseek-ai/DeepSeek-V3 --tp_size 8 --ep_size 8 --config extra.yaml
