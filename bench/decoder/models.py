#!/usr/bin/env python3
"""Writes a decoder of about 1.1 billion parameters in 4 bits, with random weights, as GGUF and as ONNX.

Both have the shape of TinyLlama (22 layers of 2048, 32 heads, 4 of keys and values, 5632 in the feed-forward part, 32000
tokens) unless flags say otherwise, and the same numbers: Q4_0 has 32 numbers of 4 bits and a scale in float16, which
MatMulNBits takes as float32. The ONNX model takes `length` tokens behind a cache of `past` ones.

  models.py FOLDER [--layers 22 --width 2048 ...]     writes FOLDER/decoder.gguf and FOLDER/decoder.onnx
"""
import argparse
import os
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    for name, value in (("layers", 22), ("width", 2048), ("heads", 32), ("kv-heads", 4), ("inner", 5632),
                        ("vocabulary", 32000), ("context", 2048)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


class Weights:
    """Random matrices [rows, depth] in Q4_0, each from a seed of its own, so that none is kept."""

    def __init__(self, a):
        self.shapes = {"token_embd": (a.vocabulary, a.width), "output": (a.vocabulary, a.width)}
        keys = a.width // a.heads * a.kv_heads
        for layer in range(a.layers):
            for name, rows, depth in (("attn_q", a.width, a.width), ("attn_k", keys, a.width), ("attn_v", keys, a.width),
                                      ("attn_output", a.width, a.width), ("ffn_gate", a.inner, a.width),
                                      ("ffn_up", a.inner, a.width), ("ffn_down", a.width, a.inner)):
                self.shapes[f"blk.{layer}.{name}"] = (rows, depth)

    def scales_and_numbers(self, name):
        """Returns float16 [rows, blocks] and uint8 [rows, blocks, 32], of which 8 stands for 0."""
        rows, depth = self.shapes[name]
        random = np.random.default_rng(list(self.shapes).index(name))
        numbers = random.integers(0, 16, (rows, depth // BLOCK, BLOCK), dtype=np.uint8)
        scales = ((0.8 + 0.4 * random.random((rows, depth // BLOCK))) / (4.6 * np.sqrt(depth))).astype(np.float16)
        return scales, numbers


def write_gguf(path, a, weights):
    text = lambda s: struct.pack("<Q", len(s)) + s.encode()
    u32 = lambda n: struct.pack("<II", 4, n)
    f32 = lambda x: struct.pack("<If", 6, x)
    string = lambda s: struct.pack("<I", 8) + text(s)
    array = lambda kind, items: struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)
    # The tokenizer is not used, but must be there: 3 special tokens, 256 bytes, and others.
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    tokens += [f"t{i}" for i in range(len(tokens), a.vocabulary)]
    kinds += [1] * (a.vocabulary - len(kinds))
    keys = {"general.architecture": string("llama"), "general.name": string("random"),
            "general.file_type": u32(2), "llama.context_length": u32(a.context),
            "llama.embedding_length": u32(a.width), "llama.block_count": u32(a.layers),
            "llama.feed_forward_length": u32(a.inner), "llama.rope.dimension_count": u32(a.width // a.heads),
            "llama.attention.head_count": u32(a.heads), "llama.attention.head_count_kv": u32(a.kv_heads),
            "llama.attention.layer_norm_rms_epsilon": f32(1e-5), "llama.vocab_size": u32(a.vocabulary),
            "tokenizer.ggml.model": string("llama"), "tokenizer.ggml.tokens": array(8, [text(t) for t in tokens]),
            "tokenizer.ggml.scores": array(6, [struct.pack("<f", -i) for i in range(a.vocabulary)]),
            "tokenizer.ggml.token_type": array(5, [struct.pack("<i", k) for k in kinds]),
            "tokenizer.ggml.bos_token_id": u32(1), "tokenizer.ggml.eos_token_id": u32(2)}
    F32, Q4_0 = 0, 2
    tensors = [(name + ".weight", shape[::-1], Q4_0, shape[0] * shape[1] // BLOCK * 18)
               for name, shape in weights.shapes.items()]
    norms = ["output_norm"] + [f"blk.{i}.{n}_norm" for i in range(a.layers) for n in ("attn", "ffn")]
    tensors += [(name + ".weight", (a.width,), F32, 4 * a.width) for name in norms]
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
        for key, value in keys.items():
            file.write(text(key) + value)
        offset = 0
        for name, dims, kind, size in tensors:
            file.write(text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims))
            file.write(struct.pack("<IQ", kind, offset))
            offset += (size + 31) // 32 * 32
        file.write(b"\0" * (-file.tell() % 32))
        for name, dims, kind, size in tensors:
            if kind == F32:
                file.write(np.ones(dims[0], np.float32).tobytes())
            else:
                scales, numbers = weights.scales_and_numbers(name.removesuffix(".weight"))
                packed = numbers[..., :16] | (numbers[..., 16:] << 4)
                blocks = np.concatenate([scales[..., None].view(np.uint8), packed], axis=-1)
                file.write(blocks.tobytes())
            file.write(b"\0" * (-size % 32))


class Graph:
    """An ONNX graph of which each method adds a node and returns the name of its result."""

    def __init__(self, a, weights):
        self.a, self.weights, self.nodes, self.constants = a, weights, [], {}

    def node(self, op, *inputs, domain="", outputs=1, **attributes):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, name, value):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def ints(self, *values):
        return self.constant("ints_" + "_".join(str(v) for v in values), np.array(values, np.int64))

    def product(self, x, name):
        rows, depth = self.weights.shapes[name]
        scales, numbers = self.weights.scales_and_numbers(name)
        packed = numbers[..., ::2] | (numbers[..., 1::2] << 4)
        return self.node("MatMulNBits", x, self.constant(name, packed),
                         self.constant(name + ".scales", scales.astype(np.float32).reshape(-1)),
                         domain="com.microsoft", K=depth, N=rows, bits=4, block_size=BLOCK)

    def rms_norm(self, x):
        squares = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1], keepdims=1)
        root = self.node("Sqrt", self.node("Add", squares, self.constant("epsilon", np.float32(1e-5))))
        return self.node("Mul", self.node("Div", x, root), self.constant("norm", np.ones(self.a.width, np.float32)))

    def heads(self, x, count):
        """[batch, length, count * size] -> [batch, count, length, size]"""
        size = self.a.width // self.a.heads
        return self.node("Transpose", self.node("Reshape", x, self.ints(0, 0, count, size)), perm=[0, 2, 1, 3])

    def rotated(self, x, cos, sin):
        """Rotary embedding of neighbouring pairs' halves, as exports from Hugging Face have it."""
        half = self.a.width // self.a.heads // 2
        low, high = self.node("Split", x, self.ints(half, half), outputs=2, axis=-1)
        turned = self.node("Concat", self.node("Neg", high), low, axis=-1)
        return self.node("Add", self.node("Mul", x, cos), self.node("Mul", turned, sin))

    def repeated(self, x):
        """Each head of keys and values for all heads of queries that read it."""
        a, times = self.a, self.a.heads // self.a.kv_heads
        size = a.width // a.heads
        wide = self.node("Unsqueeze", x, self.ints(2))
        shape = self.node("Concat", self.ints(1, a.kv_heads, times), self.node("Shape", x, start=2, end=4), axis=0)
        return self.node("Reshape", self.node("Expand", wide, shape), self.ints(0, a.heads, -1, size))

    def layer(self, x, i, cos, sin, mask):
        a = self.a
        normal = self.rms_norm(x)
        q = self.rotated(self.heads(self.product(normal, f"blk.{i}.attn_q"), a.heads), cos, sin)
        k = self.rotated(self.heads(self.product(normal, f"blk.{i}.attn_k"), a.kv_heads), cos, sin)
        v = self.heads(self.product(normal, f"blk.{i}.attn_v"), a.kv_heads)
        for name, value in (("key", k), ("value", v)):
            self.nodes.append(helper.make_node("Concat", [f"past_key_values.{i}.{name}", value],
                                               [f"present.{i}.{name}"], axis=2))
        k, v = (self.repeated(f"present.{i}.{name}") for name in ("key", "value"))
        scale = self.constant("scale", np.float32((a.width // a.heads) ** -0.5))
        scores = self.node("Mul", self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2])), scale)
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        x = self.node("Add", x, self.product(self.node("Reshape", mixed, self.ints(0, 0, a.width)), f"blk.{i}.attn_output"))
        normal = self.rms_norm(x)
        gate = self.product(normal, f"blk.{i}.ffn_gate")
        gate = self.node("Mul", gate, self.node("Sigmoid", gate))
        inner = self.node("Mul", gate, self.product(normal, f"blk.{i}.ffn_up"))
        return self.node("Add", x, self.product(inner, f"blk.{i}.ffn_down"))

    def model(self):
        a = self.a
        size = a.width // a.heads
        scales, numbers = self.weights.scales_and_numbers("token_embd")
        table = (numbers.astype(np.float16) - np.float16(8)) * scales[..., None]
        x = self.node("Cast", self.node("Gather", self.constant("token_embd", table.reshape(a.vocabulary, a.width)),
                                        "input_ids"), to=TensorProto.FLOAT)
        angles = np.arange(a.context)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)
        angles = np.concatenate([angles, angles], -1).astype(np.float32)
        cos, sin = (self.node("Unsqueeze", self.node("Gather", self.constant(name, f(angles)), "position_ids"), self.ints(1))
                    for name, f in (("cos", np.cos), ("sin", np.sin)))
        # A token sees those before it and itself.
        total = self.node("Add", self.node("Shape", "past_key_values.0.key", start=2, end=3),
                          self.node("Shape", "input_ids", start=1, end=2))
        places = self.node("Range", self.constant("zero", np.int64(0)), self.node("Squeeze", total), self.constant("one", np.int64(1)))
        sees = self.node("LessOrEqual", places, self.node("Unsqueeze", "position_ids", self.ints(2)))
        mask = self.node("Where", sees, self.constant("seen", np.float32(0)), self.constant("unseen", np.float32(-1e9)))
        mask = self.node("Unsqueeze", mask, self.ints(1))
        for i in range(a.layers):
            x = self.layer(x, i, cos, sin, mask)
        last = self.node("Slice", self.rms_norm(x), self.ints(-1), self.constant("end", np.array([2**62])), self.ints(1))
        logits = self.product(last, "output")
        self.nodes[-1].output[0] = "logits"
        ids = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.INT64, dims)
        cache = lambda name, tokens: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, a.kv_heads, tokens, size])
        names = [f"{i}.{kind}" for i in range(a.layers) for kind in ("key", "value")]
        inputs = [ids("input_ids", [1, "length"]), ids("position_ids", [1, "length"])]
        inputs += [cache(f"past_key_values.{n}", "past") for n in names]
        outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, a.vocabulary])]
        outputs += [cache(f"present.{n}", "past + length") for n in names]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, list(self.constants.values()))
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                     helper.make_opsetid("com.microsoft", 1)])


def main():
    a = arguments()
    os.makedirs(a.folder, exist_ok=True)
    weights = Weights(a)
    write_gguf(os.path.join(a.folder, "decoder.gguf"), a, weights)
    onnx.save(Graph(a, weights).model(), os.path.join(a.folder, "decoder.onnx"))


if __name__ == "__main__":
    main()
