# expect: {"verdict": "fail", "codes": ["length_beyond_model"], "fields": {"engine_version": "0.24.0"}, "question": {"gpu": "h100-sxm5"}}
docker run --gpus all --shm-size 16g -p 8000:8000 \
  vllm/vllm-openai:v0.24.0 \
  --model meta-llama/Llama-3.1-8B-Instruct --max-model-len 200000
