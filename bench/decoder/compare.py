#!/usr/bin/env python3
"""Compares relaxc with llama.cpp on a decoder: tokens per second of a prompt, and of steps behind it, in alternation.

  models.py FOLDER                                                       first
  relaxc compile FOLDER/decoder.onnx --in-place auto -o FOLDER/decoder.so
  relaxc compile FOLDER/decoder.onnx --in-place auto --schedules int8_activations.py -o FOLDER/decoder_int8.so
  npm install --ignore-scripts --prefix FOLDER node-llama-cpp
  compare.py FOLDER [--relaxc build/relaxc] [--threads 1,2] [--past 128,1024] [--steps 16] [--rounds 3]

The second artifact rounds activations to 8 bits, as llama.cpp does; the first one computes as with float32.
"""
import argparse
import json
import os
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def tokens(past):
    return [300 + i * 37 % 200 for i in range(past)]


def with_relaxc(a, artifact, threads, past):
    run = subprocess.run([a.relaxc, "generate", os.path.join(a.folder, artifact), "--threads", str(threads), "--count",
                          str(a.steps + 1), "--tokens", ",".join(map(str, tokens(past)))],
                         capture_output=True, text=True, check=True)
    rates = dict(re.findall(r"(prompt|steps): .*, ([0-9.,]+) tokens/s", run.stderr))
    return {name: float(rate.replace(",", "")) for name, rate in rates.items()}


def with_llama(a, threads, past):
    run = subprocess.run(["node", os.path.join(HERE, "llama.mjs"), os.path.join(a.folder, "decoder.gguf"), str(threads),
                          str(past), str(a.steps)], capture_output=True, text=True, check=True,
                         env={**os.environ, "MODULES": os.path.abspath(a.modules or a.folder)})
    times = json.loads(run.stdout.strip().splitlines()[-1])
    return {"prompt": past / times["prompt_ms"] * 1e3, "steps": 1e3 / times["step_ms"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--relaxc", default="build/relaxc")
    parser.add_argument("--artifacts", default="decoder.so,decoder_int8.so", help="in the folder")
    parser.add_argument("--modules", help="the folder in which node-llama-cpp is installed (FOLDER)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--past", default="128,1024")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    artifacts = a.artifacts.split(",")
    print("threads  past             relaxc  llama.cpp  ratio   (tokens/s, medians)")
    for threads in map(int, a.threads.split(",")):
        for past in map(int, a.past.split(",")):
            ours, theirs = {artifact: [] for artifact in artifacts}, []
            for _ in range(a.rounds):
                for artifact, results in ours.items():
                    results.append(with_relaxc(a, artifact, threads, past))
                theirs.append(with_llama(a, threads, past))
            for artifact, results in ours.items():
                for what in ("prompt", "steps"):
                    x, y = (statistics.median(r[what] for r in each) for each in (results, theirs))
                    print(f"{threads:7}  {past:4}  {what:10} {x:9.2f}  {y:9.2f}  {x / y:5.2f}   {artifact}", flush=True)


if __name__ == "__main__":
    main()
