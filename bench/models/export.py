#!/usr/bin/env python3
"""Exports the models that tests and benchmarks share: ResNet-18, MobileNet-v2 and a two-layer BERT-style encoder.

usage: export.py DIR [NAME...]        (./dev models runs it with DIR = build/models)

Each model lands in DIR/NAME/ as model.onnx with test_data_set_0..2 beside it, in the convention of the ONNX test data:
three input sizes each, with torch's answers. Weights are random with a fixed seed; only their statistics matter here.
Needs Debian's python3-torch, python3-torchvision and python3-onnx.
"""
import argparse
import pathlib
import sys

import numpy
import onnx
import torch
import torchvision
from onnx import numpy_helper
from torch import nn

IMAGE_SIZE = 224


def realistic_batch_norms(model):
    """Gives every batch normalization a random affine part, then lets it measure the activations that really arrive.

    Untouched ones (mean 0, variance 1, weight 1, bias 0) would hide mistakes in folding, and arbitrary ones would let
    the activations of a deep network vanish or explode.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, 0.0, 0.2)
        norm.momentum = None  # a plain average over all batches
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(8, 3, IMAGE_SIZE, IMAGE_SIZE))
    for norm in norms:
        norm.momentum = 0.1
    return model.eval()


class Encoder(nn.Module):
    """One transformer layer after BERT: self attention and a GELU network, each with a residual and a layer norm."""

    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.hidden, self.heads, self.head_size = hidden, heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.attended = nn.Linear(hidden, hidden)
        self.attended_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.widen = nn.Linear(hidden, inner)
        self.narrow = nn.Linear(inner, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)

    def split_heads(self, x):
        return x.view(*x.size()[:-1], self.heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query, key, value = (self.split_heads(project(x)) for project in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / self.head_size**0.5
        context = torch.softmax(scores + mask, dim=-1) @ value
        context = context.permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.size()[:-2], self.hidden)
        x = self.attended_norm(self.attended(context) + x)
        return self.output_norm(self.narrow(nn.functional.gelu(self.widen(x))) + x)


class Bert(nn.Module):
    """input_ids, attention_mask: int64 [batch, sequence] -> [batch, sequence, hidden] and pooled [batch, hidden]."""

    def __init__(self, vocabulary=2000, positions=512, hidden=256, heads=4, inner=1024, layers=2):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(Encoder(hidden, heads, inner) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)
        # As in the well-known exports: position and type ids are stored rows, cut to the sequence at run time.
        self.register_buffer("position_ids", torch.arange(positions)[None])
        self.register_buffer("type_ids", torch.zeros(1, positions, dtype=torch.int64))

    def forward(self, input_ids, attention_mask):
        length = input_ids.size(1)
        types = self.type_ids[:, :length].expand(input_ids.size(0), length)
        x = self.words(input_ids) + self.types(types) + self.positions(self.position_ids[:, :length])
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def random_bert():
    model = Bert()
    for name, parameter in model.named_parameters():
        if "norm.weight" in name:
            nn.init.uniform_(parameter, 0.8, 1.2)
        elif "bias" in name:
            nn.init.normal_(parameter, 0.0, 0.1)
        else:  # about 1/sqrt(hidden), so that attention is neither flat nor one-hot
            nn.init.normal_(parameter, 0.0, 0.06)
    return model.eval()


def images(batch):
    return (torch.randn(batch, 3, IMAGE_SIZE, IMAGE_SIZE),)


def token_rows(batch, sequence):
    """Rows of different lengths, padded with zeros that the mask hides, as a tokenizer makes them."""
    lengths = torch.randint((sequence + 1) // 2, sequence + 1, (batch, 1))
    lengths[0] = sequence
    mask = (torch.arange(sequence)[None] < lengths).to(torch.int64)
    return torch.randint(1, 2000, (batch, sequence)) * mask, mask


IMAGE_NAMES = {"inputs": {"image": ["batch"]}, "outputs": {"logits": ["batch"]}}
TOKEN_NAMES = {
    "inputs": {"input_ids": ["batch", "sequence"], "attention_mask": ["batch", "sequence"]},
    "outputs": {"last_hidden_state": ["batch", "sequence"], "pooled": ["batch"]},
}
IMAGE_SIZES = [(1,), (2,), (5,)]
TOKEN_SIZES = [(1, 7), (2, 16), (3, 33)]

# name: how to make it, opset, named inputs and outputs with their leading symbolic dims, random inputs, sizes
MODELS = {
    "resnet18": (lambda: realistic_batch_norms(torchvision.models.resnet18()), 13, IMAGE_NAMES, images, IMAGE_SIZES),
    "mobilenet_v2": (
        lambda: realistic_batch_norms(torchvision.models.mobilenet_v2()), 13, IMAGE_NAMES, images, IMAGE_SIZES,
    ),
    # The same network twice: with LayerNormalization as one node, and spelled out in ten as exporters did before.
    "bert": (random_bert, 17, TOKEN_NAMES, token_rows, TOKEN_SIZES),
    "bert_opset13": (random_bert, 13, TOKEN_NAMES, token_rows, TOKEN_SIZES),
}


def check_dynamic(path, names):
    """The tracer bakes sizes into the graph where Python code let it: every promised dim must still be symbolic after
    shape inference, from inputs to outputs."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for role, values in (("inputs", model.graph.input), ("outputs", model.graph.output)):
        if [value.name for value in values] != list(names[role]):
            raise SystemExit(f"{path}: {role} are {[value.name for value in values]}, expected {list(names[role])}")
        for value in values:
            dims = [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
            wanted = names[role][value.name]
            if dims[: len(wanted)] != wanted:
                raise SystemExit(f"{path}: {value.name} has shape {dims}, expected it to begin with {wanted}")


def write_data_set(folder, model, inputs):
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    folder.mkdir(parents=True, exist_ok=True)
    for role, tensors in (("input", inputs), ("output", outputs)):
        for index, tensor in enumerate(tensors):
            proto = numpy_helper.from_array(numpy.ascontiguousarray(tensor.numpy()))
            (folder / f"{role}_{index}.pb").write_bytes(proto.SerializeToString())
    for tensor in outputs:
        if not torch.isfinite(tensor).all() or tensor.std() < 0.05 or tensor.abs().max() > 100:
            raise SystemExit(f"{folder}: degenerate output: deviation {tensor.std()}, largest {tensor.abs().max()}")


def export(name, folder):
    make, opset, names, random_inputs, sizes = MODELS[name]
    torch.manual_seed(0)
    model = make()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    dynamic = {value: dict(enumerate(dims)) for role in names.values() for value, dims in role.items()}
    torch.onnx.export(
        model, random_inputs(*sizes[1]), str(path), opset_version=opset, dynamic_axes=dynamic,
        input_names=list(names["inputs"]), output_names=list(names["outputs"]),
    )
    check_dynamic(path, names)
    for index, size in enumerate(sizes):
        write_data_set(folder / f"test_data_set_{index}", model, random_inputs(*size))
    print(f"{name}: {path.stat().st_size / 1e6:.1f} MB, opset {opset}, sizes {sizes}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("directory", type=pathlib.Path)
    arguments.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; all of them when none is given")
    options = arguments.parse_args()
    unknown = [name for name in options.names if name not in MODELS]
    if unknown:
        arguments.error(f"no model {unknown[0]}")
    for name in options.names or MODELS:
        export(name, options.directory / name)


if __name__ == "__main__":
    sys.exit(main())
