"""Serves a model file with llama.cpp until standard input ends. Prints its URL.

usage: serve.py FILE NAME CONTEXT THREADS
"""

import sys

import xllamacpp

path, name, context, threads = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = path
params.model_alias = {name}
params.n_ctx = int(context)
params.n_parallel = 1
params.cpuparams.n_threads = int(threads)
params.cpuparams_batch.n_threads = int(threads)
params.warmup = False
params.endpoint_slots = True
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
