#!/bin/sh
# Builds vLLM without its kernels, which needs no compiler and no GPU, and tests structdump on its compile backend.
# Run it in a fresh virtual environment, from the root of the checkout: sh examples/vllm_on_cpu.sh
set -eu
VERSION=0.32.0

pip install -c constraints.txt '.[test]'
pip install 'setuptools>=77,<81' setuptools-scm setuptools-rust wheel packaging jinja2
# Without the override the version is called 0.32.0+empty, which pip takes for another one than it was asked for.
VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$VERSION \
  pip install --no-deps --no-build-isolation --no-binary vllm "vllm==$VERSION"
# What its import and its backend ask for, of the many that it serves models with.
pip install regex cachetools psutil sentencepiece requests tqdm blake3 py-cpuinfo 'transformers>=5.16.1,<5.20' \
  protobuf pillow tiktoken msgspec pyzmq einops cbor2 pybase64 setproctitle six python-json-logger prometheus_client \
  cloudpickle aiohttp openai 'fastapi>=0.133,<0.137' openai_harmony uvloop xgrammar partial_json_parser llguidance

python -m pytest tests/test_vllm_backend.py
