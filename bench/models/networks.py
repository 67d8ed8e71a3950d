"""The table of networks that tests and benchmarks export: what makes each, and its inputs and outputs.

A dim with a name is symbolic in the dynamic twin. Weights are random with a fixed seed; only their statistics matter.
"""
from dataclasses import dataclass, field
from typing import Callable

import torch
import torchvision
from torch import nn
from torchvision.models import detection, segmentation, video

import layers

# -- Weights ------------------------------------------------------------------


def realistic_batch_norms(model, examples):
    """Gives every batch normalization a random affine part, then lets it measure the activations that really arrive.

    Untouched ones (mean 0, variance 1, weight 1, bias 0) would hide mistakes in folding, and arbitrary ones would let
    the activations of a deep network vanish or explode.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, 0.0, 0.2)
        norm.momentum = None  # a plain average over all batches
    for linear in model.modules():  # some classifiers begin almost at zero
        if isinstance(linear, nn.Linear) and linear.weight.std() < 0.5 * linear.in_features**-0.5:
            nn.init.normal_(linear.weight, 0.0, linear.in_features**-0.5)
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(*examples())
    for norm in norms:
        norm.momentum = 0.1
    return model.eval()


def realistic_weights(model):
    """Weights under which activations keep their size from layer to layer, and no bias, norm or scale is neutral."""
    for module in model.modules():
        own = dict(module.named_parameters(recurse=False))
        gain = 2.0 if isinstance(module, (nn.Conv1d, nn.Conv2d)) else 1.0  # a rectifier follows
        for name, parameter in own.items():
            if name == "layer_scale":
                nn.init.uniform_(parameter, 0.1, 0.3)
            elif "norm" in type(module).__name__.lower() and name == "weight":
                nn.init.uniform_(parameter, 0.8, 1.2)
            elif isinstance(module, nn.Embedding):  # about 1 / sqrt(hidden): attention is neither flat nor one-hot
                nn.init.normal_(parameter, 0.0, 0.06)
            elif parameter.dim() > 1 and name.startswith(("weight", "in_proj")):
                nn.init.normal_(parameter, 0.0, (gain / parameter[0].numel()) ** 0.5)
            else:
                nn.init.normal_(parameter, 0.0, 0.1)
    return model.eval()


# -- Inputs and outputs -------------------------------------------------------


def normal(shape):
    return torch.randn(shape)


def ids_below(count):
    return lambda shape: torch.randint(0, count, shape)


def row_mask(shape):
    """Rows of different lengths, as a tokenizer makes them; the first is full."""
    batch, sequence = shape
    lengths = torch.randint((sequence + 1) // 2, sequence + 1, (batch, 1))
    lengths[0] = sequence
    return (torch.arange(sequence)[None] < lengths).to(torch.int64)


@dataclass(frozen=True)
class Network:
    name: str
    build: Callable  # of the random examples for batch normalizations
    inputs: dict  # name: (shape, what makes a random one)
    outputs: dict  # name: its dims, as far as named ones reach
    measured: dict  # the sizes of named dims in the benchmark and in the static twin
    tested: list = field(default_factory=list)  # three sizes with torch's answers
    opset: int = 17
    examples: int = 8  # batch size of the examples
    for_tests: bool = False  # `./dev models` exports it

    def random_inputs(self, sizes):
        return tuple(make([sizes.get(dim, dim) for dim in shape]) for shape, make in self.inputs.values())

    def dims(self):
        return {dim for shape, _ in self.inputs.values() for dim in shape if isinstance(dim, str)}


def sized(**lists):
    """sized(batch=[1, 2, 5]) -> the three sizes"""
    return [dict(zip(lists, values)) for values in zip(*lists.values())]


def batch_normed(make):
    return lambda examples: realistic_batch_norms(make(), examples)


def weighted(make):
    return lambda examples: realistic_weights(make())


def segmented(make):
    return batch_normed(lambda: layers.Pick(make(weights_backbone=None), "out"))


def batch_normed_detector(examples):
    model = detection.ssdlite320_mobilenet_v3_large(weights_backbone=None, num_classes=21)
    realistic_batch_norms(model.backbone, lambda: (torch.stack([examples()[0] for _ in range(4)]),))
    return layers.Detector(model).eval()


def image(name, build, size=224, **more):
    """A classifier of images."""
    inputs = {"image": (["batch", 3, size, size], normal)}
    return Network(name, build, inputs, {"logits": ["batch"]}, {"batch": 1}, sized(batch=[1, 2, 5]), **more)


def pixels(name, build, size, channels=3, sizes=(32, 64, 96)):
    """A network from pixels to pixels, for images of any size."""
    inputs = {"image": (["batch", channels, "height", "width"], normal)}
    tested = sized(batch=[1, 2, 3], height=sizes, width=[sizes[1], sizes[0], sizes[2]])
    return Network(name, build, inputs, {"pixels": ["batch"]}, {"batch": 1, "height": size, "width": size}, tested,
                   examples=4)


def bert(name, opset=17, for_tests=False, **architecture):
    vocabulary = architecture.get("vocabulary", 2000)
    rows = ["batch", "sequence"]
    return Network(
        name, weighted(lambda: layers.Bert(**architecture)),
        {"input_ids": (rows, ids_below(vocabulary)), "attention_mask": (rows, row_mask)},
        {"last_hidden_state": rows, "pooled": ["batch"]}, {"batch": 1, "sequence": 128},
        sized(batch=[1, 2, 3], sequence=[7, 16, 33]), opset, for_tests=for_tests)


def decoder(name, make, vocabulary, cache, layer_count, measured, tested, source=False):
    """A decoder of `layer_count` layers; cache: heads and head size. With a "past" in the sizes, a step with it."""
    inputs = {"ids": (["batch", "length"], ids_below(vocabulary))}
    outputs = {"logits": ["batch", "length"]}
    parts = [f"{i}.{part}" for i in range(layer_count) for part in ("key", "value")]
    total = "total" if "past" in measured else "length"
    if "past" in measured:
        inputs.update({f"past.{part}": (["batch", cache[0], "past", cache[1]], normal) for part in parts})
    if source:
        inputs.update({f"source.{part}": (["batch", cache[0], "source", cache[1]], normal) for part in parts})
    outputs.update({f"present.{part}": ["batch", cache[0], total] for part in parts})
    return Network(name, weighted(make), inputs, outputs, measured, tested)


def table():
    models = torchvision.models
    rows = [
        image("vgg16", weighted(models.vgg16)),
        image("resnet18", batch_normed(models.resnet18), opset=13, for_tests=True),
        image("resnet50", batch_normed(models.resnet50)),
        image("resnext50", batch_normed(models.resnext50_32x4d)),
        image("regnet_y_400mf", batch_normed(models.regnet_y_400mf)),
        image("googlenet", batch_normed(lambda: models.googlenet(aux_logits=False, init_weights=False))),
        image("inception_v3", batch_normed(lambda: models.inception_v3(aux_logits=False, init_weights=False)), 299),
        image("mobilenet_v2", batch_normed(models.mobilenet_v2), opset=13, for_tests=True),
        image("mobilenet_v3_small", batch_normed(models.mobilenet_v3_small)),
        image("squeezenet", weighted(models.squeezenet1_1)),
        image("densenet121", batch_normed(models.densenet121)),
        image("shufflenet", batch_normed(models.shufflenet_v2_x1_0)),
        image("efficientnet_b0", batch_normed(models.efficientnet_b0)),
        image("convnext_tiny", weighted(models.convnext_tiny)),
        image("swin_t", weighted(models.swin_t)),
        image("vit_b_16", weighted(models.vit_b_16)),
        pixels("unet_bilinear", batch_normed(lambda: layers.UNet(layers.UNet.bilinear)), 256),
        pixels("unet_transposed", batch_normed(lambda: layers.UNet(layers.UNet.transposed)), 256),
        pixels("fcn_resnet50", segmented(segmentation.fcn_resnet50), 224),
        pixels("deeplabv3_mobilenet_v3", segmented(segmentation.deeplabv3_mobilenet_v3_large), 224),
        pixels("super_resolution", weighted(layers.SuperResolution), 224, 1),
        Network("r3d_18", batch_normed(video.r3d_18), {"video": (["batch", 3, "frames", 112, 112], normal)},
                {"logits": ["batch"]}, {"batch": 1, "frames": 16}, sized(batch=[1, 2, 1], frames=[8, 4, 12]),
                examples=2),
        bert("bert", for_tests=True),
        # The same network again: with LayerNormalization as one node, and spelled out in ten as exporters did before.
        bert("bert_opset13", opset=13, for_tests=True),
        bert("bert_base", vocabulary=30522, hidden=768, heads=12, inner=3072, layers=12),
        decoder("gpt2", layers.gpt2, 50257, (12, 64), 12, {"batch": 1, "length": 64},
                sized(batch=[1, 2, 1], length=[5, 16, 33])),
        decoder("gpt2_step", layers.gpt2, 50257, (12, 64), 12, {"batch": 1, "length": 1, "past": 128},
                sized(batch=[1, 2, 1], length=[1, 1, 3], past=[7, 64, 100])),
        decoder("llama_step", layers.llama, 32000, (4, 64), 8, {"batch": 1, "length": 1, "past": 128},
                sized(batch=[1, 2, 1], length=[1, 1, 3], past=[7, 64, 100])),
        Network("whisper_encoder", weighted(layers.WhisperEncoder), {"mel": (["batch", 80, "frames"], normal)},
                {"hidden": ["batch"]}, {"batch": 1, "frames": 3000}, sized(batch=[1, 2, 1], frames=[100, 50, 301])),
        decoder("whisper_decoder", layers.whisper_decoder, 51865, (8, 64), 6,
                {"batch": 1, "length": 1, "past": 32, "source": 1500},
                sized(batch=[1, 2, 1], length=[1, 1, 3], past=[4, 9, 30], source=[100, 50, 301]), source=True),
        Network("wav2vec", weighted(layers.Wav2Vec), {"samples": (["batch", "samples"], normal)}, {"scores": ["batch"]},
                {"batch": 1, "samples": 32000}, sized(batch=[1, 2, 1], samples=[4000, 3000, 16000])),
        Network("lstm_lm", weighted(layers.RecurrentLanguageModel),
                {"ids": (["batch", "sequence"], ids_below(10000)), "hidden": ([2, "batch", 512], normal),
                 "cell": ([2, "batch", 512], normal)},
                {"logits": ["batch", "sequence"], "last_hidden": [2, "batch"], "last_cell": [2, "batch"]},
                {"batch": 1, "sequence": 32}, sized(batch=[1, 2, 3], sequence=[5, 16, 33])),
        Network("gru_tagger", weighted(layers.FrameTagger), {"features": (["batch", "frames", 80], normal)},
                {"scores": ["batch", "frames"]}, {"batch": 1, "frames": 100},
                sized(batch=[1, 2, 3], frames=[5, 16, 33])),
        # Finds another number of boxes in each image: its output has a size that the run decides.
        Network("ssdlite320", batch_normed_detector, {"image": ([3, 320, 320], normal)},
                {"boxes": [], "scores": [], "labels": []}, {}, [{}, {}, {}], opset=13),
    ]
    result = {row.name: row for row in rows}
    assert len(result) == len(rows), "two networks of one name"
    return result


NETWORKS = table()
