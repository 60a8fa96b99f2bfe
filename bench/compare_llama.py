"""Decoding, one token at a time, beside llama.cpp: a language model of llama's form with random weights, in the formats of
4 and 8 bits a weight of either (scales counted: lissome 4.5 and 8.125, llama.cpp's Q4_0 and Q8_0 4.5 and 8.5).

    compare_llama.py FOLDER [--threads 2] [--rounds 15] [--calls 10] [--only BITS]

FOLDER keeps the models. Needs llama-cpp-python, built from its source for this machine, and gguf:

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python gguf

Engines run in processes of their own, by turns; the one that is not measured is stopped. Each call decodes one token
behind 16 others. "of memory" is the rate at which weights are read over that of `lissome peaks`, measured between rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from engines import Process, order_turns
from figures import bootstrap_ratio, summarize

ROOT = Path(__file__).resolve().parents[1]
LAYERS, WIDTH, HEADS, INNER, WORDS, CONTEXT = 24, 1024, 16, 2816, 32000, 16
HEAD = WIDTH // HEADS
PARAMETERS = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * INNER) + 2 * WORDS * WIDTH
READ = PARAMETERS - WORDS * WIDTH  # weights of a call: of the embedding only one row
GGUF_TYPES = {4: "Q4_0", 8: "Q8_0"}
WEIGHT_BITS = {("lissome", 4): 4.5, ("lissome", 8): 8.125, ("llama.cpp", 4): 4.5, ("llama.cpp", 8): 8.5}


def make_module() -> Any:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(2))
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
            self.down = nn.Linear(INNER, WIDTH, bias=False)

        def forward(self, x: Any, keys: Any, values: Any, turn: Any) -> Any:
            def split(y: Any) -> Any:
                return y.view(1, 1, HEADS, HEAD).transpose(1, 2)

            def rotate(y: Any) -> Any:
                first, second = y.chunk(2, dim=-1)
                return y * turn[:, 0] + torch.cat((-second, first), -1) * turn[:, 1]

            inside = self.norms[0](x)
            keys = torch.cat((keys, rotate(split(self.key(inside)))), 2)
            values = torch.cat((values, split(self.value(inside))), 2)
            seen = nn.functional.scaled_dot_product_attention(rotate(split(self.query(inside))), keys, values)
            x = x + self.out(seen.transpose(1, 2).reshape(1, 1, WIDTH))
            inside = self.norms[1](x)
            return x + self.down(nn.functional.silu(self.gate(inside)) * self.up(inside)), keys, values

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm, self.head = nn.RMSNorm(WIDTH, eps=1e-5), nn.Linear(WIDTH, WORDS, bias=False)

        def forward(self, word: Any, turn: Any, caches: list[Any]) -> Any:
            x, made = self.words(word), []
            for i, block in enumerate(self.blocks):
                x, keys, values = block(x, caches[2 * i], caches[2 * i + 1], turn)
                made += [keys, values]
            return self.head(self.norm(x)), made

    torch.manual_seed(0)
    module = Decoder().eval()
    for parameter in module.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
    return module


def write_ours(folder: Path, module: Any) -> None:
    import torch

    angle = CONTEXT / 10000 ** (torch.arange(0, HEAD, 2) / HEAD)
    turn = torch.stack((torch.cat((angle.cos(), angle.cos())), torch.cat((angle.sin(), angle.sin()))))[None]
    word = torch.tensor([[7]])
    caches = [torch.randn(1, HEADS, CONTEXT, HEAD) for _ in range(2 * LAYERS)]
    torch.export.save(torch.export.export(module, (word, turn, caches)), folder / "decoder.pt2")
    named = {f"caches.{i}": cache.numpy() for i, cache in enumerate(caches)}
    np.savez(folder / "call.npz", word=word.numpy(), turn=turn.numpy(), **named)


def write_gguf(path: Path, module: Any, bits: int) -> None:
    import gguf
    from gguf.quants import quantize

    kind = gguf.GGMLQuantizationType[GGUF_TYPES[bits]]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<{i}>".encode() for i in range(WORDS)])
    writer.add_token_scores([0.0] * WORDS)
    writer.add_token_types([1] * WORDS)

    def add(name: str, weight: Any) -> None:
        array = weight.detach().numpy()
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, quantize(array, kind), raw_dtype=kind)

    add("token_embd.weight", module.words.weight)
    add("output.weight", module.head.weight)
    add("output_norm.weight", module.norm.weight)
    for i, block in enumerate(module.blocks):
        rows = {"attn_norm": block.norms[0], "ffn_norm": block.norms[1], "attn_q": block.query, "attn_k": block.key,
                "attn_v": block.value, "attn_output": block.out, "ffn_gate": block.gate, "ffn_up": block.up,
                "ffn_down": block.down}  # fmt: skip
        for name, part in rows.items():
            add(f"blk.{i}.{name}.weight", part.weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_models(folder: Path, chosen: list[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ours = [bits for bits in chosen if not (folder / f"w{bits}.lissome").exists()]
    theirs = [bits for bits in chosen if not (folder / f"w{bits}.gguf").exists()]
    if not ours and not theirs:
        return
    module = make_module()
    if ours and not (folder / "decoder.pt2").exists():
        write_ours(folder, module)
    for bits in theirs:
        write_gguf(folder / f"w{bits}.gguf", module, bits)
    for bits in ours:
        command = [ROOT / "build" / "lissome", "quantize", folder / "decoder.pt2", "--kind", "weight", "--bits", str(bits)]
        subprocess.run([*command, "-o", folder / f"w{bits}.lissome"], check=True, stdout=subprocess.DEVNULL)


def answer_llama(path: str, threads: int) -> None:
    """The worker of llama.cpp: `run N` on stdin, N latencies in nanoseconds on stdout."""
    from llama_cpp import Llama

    model = Llama(path, n_ctx=512, n_threads=threads, n_threads_batch=threads, verbose=False)

    def start() -> None:
        model.reset()
        for word in range(3, 3 + CONTEXT):  # one at a time: several would go to tile registers, which need a permission
            model.eval([word])

    start()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line.split()[1])):
            model.n_tokens = CONTEXT  # back to the same context
            before = time.perf_counter_ns()
            model.eval([7])
            times.append(time.perf_counter_ns() - before)
        print(*times, flush=True)


def read_memory_rate(threads: int) -> float:
    command = [ROOT / "build" / "lissome", "peaks", "--again", "--cache", "none", "--threads", str(threads), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return max(row["memory"] for row in json.loads(done.stdout)["result"]["peaks"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--only", type=int, choices=[4, 8])
    parser.add_argument("--llama", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.llama:
        return answer_llama(given.llama, given.threads)
    chosen = [given.only] if given.only else [4, 8]
    make_models(given.folder, chosen)
    worker = ROOT / "build" / "release" / "bin" / "lissome_bench_worker"
    print(f"{PARAMETERS / 1e6:.0f} million parameters, {given.threads} threads")
    for bits in chosen:
        llama = [sys.executable, __file__, given.folder, "--llama", given.folder / f"w{bits}.gguf"]
        commands = {
            "lissome": [worker, given.folder / f"w{bits}.lissome", given.folder / "call.npz", given.threads],
            "llama.cpp": [*llama, "--threads", given.threads],
        }
        processes = {name: Process([str(word) for word in words]) for name, words in commands.items()}
        rounds: dict[str, list[list[float]]] = {name: [] for name in processes}  # ms
        memory = []
        for round_index in range(given.rounds):
            for name in order_turns(list(processes), round_index):
                rounds[name].append(processes[name].run(given.calls // 5, given.calls))
            memory.append(read_memory_rate(given.threads))
        medians = {name: summarize(own)["median_ms"] for name, own in rounds.items()}
        for name, process in processes.items():
            process.stop()
            rate = READ * WEIGHT_BITS[name, bits] / 8 / (medians[name] / 1e3) / statistics.median(memory)
            print(f"{bits} bits  {name:10} {medians[name]:7.2f} ms  {1e3 / medians[name]:6.1f} tokens/s  {rate:4.0%} of memory")
        low, high = bootstrap_ratio(rounds["llama.cpp"], rounds["lissome"])
        ratio = medians["llama.cpp"] / medians["lissome"]
        print(f"{bits} bits  lissome is {ratio:.2f} times as fast ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    main()
