"""Serves a model file with llama.cpp until standard input ends: `serve.py FILE`. Prints where."""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"smollm2"}
params.n_ctx = 8192
params.n_parallel = 1
# No answer takes for ever, and every one comes out the same.
params.n_predict = 160
params.sampling.temp = 0
# A core that is not to be had for itself makes more threads slower than one.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.warmup = False
params.endpoint_slots = True
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
