"""Runs llama.cpp's HTTP server until standard input ends: `python3 server.py JSON`.

The JSON object has the fields of llama.cpp's common_params; `model`, `name`, `threads`, `sampling`
and `grammar`, which all answers follow, are set in other places."""

import json
import os
import sys

import xllamacpp

settings = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = settings.pop("model")
params.model_alias = {settings.pop("name")}
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.pop("threads")
for name, value in settings.pop("sampling").items():
    setattr(params.sampling, name, value)
if grammar := settings.pop("grammar", None):
    user = 1
    params.sampling.grammar = xllamacpp.CommonGrammar(user, grammar)
for name, value in settings.items():
    setattr(params, name, value)
server = xllamacpp.Server(params)
sys.stdin.buffer.read()
os._exit(0)
