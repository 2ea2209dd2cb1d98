"""llama.cpp's own server over a GGUF file: serve.py MODEL TEMPLATE. Says where it listens; ends when its stdin does."""

import sys

import xllamacpp

model, template = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.use_jinja = True
params.chat_template = open(template, encoding="utf-8").read()
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 8192
params.n_parallel = 2
# Keys and values are f16 by default, and attention is reckoned in f16 where it is "flash".
params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
params.no_extra_bufts = True
params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.endpoint_slots = True
server = xllamacpp.Server(params)
print("listening at", server.listening_address, flush=True)
sys.stdin.read()
