#!/usr/bin/env python3
"""Trains the digits model of this folder and writes what else is in it: model, samples, labels, test data.

Needs Debian's python3-torch, python3-sklearn and python3-onnx (./dev models installs them); the demo needs none of it.
The data are the 1,797 scans of handwritten digits that ship inside scikit-learn: 8x8 pixels with values 0..16. One in
five is held out, never seen in training, and becomes samples.npy. Fixed seeds and one thread: the same machine gives
the same model each time.
"""
import pathlib

import numpy
import onnx
import torch
from onnx import numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
EPOCHS = 60
LEAST_ACCURACY = 0.98


class Digits(nn.Module):
    """[batch, 1, 8, 8] in 0..1 -> the probability of each digit, [batch, 10]."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 2 * 2, 10))

    def forward(self, image):
        return self.classify(self.features(image))


class WithProbability(nn.Module):
    """Training wants logits, a user of the model wants probabilities."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return torch.softmax(self.model(image), dim=1)


def train(model, images, labels):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loss_of = nn.CrossEntropyLoss()
    model.train()
    for _ in range(EPOCHS):
        for picked in torch.randperm(len(images)).split(32):
            optimizer.zero_grad()
            loss_of(model(images[picked]), labels[picked]).backward()
            optimizer.step()
        schedule.step()
    model.eval()


def write_test_data(folder, image, probability):
    """ONNX's convention, for relaxc run --test-data."""
    folder.mkdir(exist_ok=True)
    for name, array in (("input_0.pb", image), ("output_0.pb", probability)):
        (folder / name).write_bytes(numpy_helper.from_array(array).SerializeToString())


def export(model, path):
    # Nothing is folded or fused here: batch normalization and dropout arrive as their own nodes or not at all, so that
    # the compiler's own folding has work.
    torch.onnx.export(
        model,
        torch.zeros(2, 1, 8, 8),
        path,
        opset_version=13,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        input_names=["image"],
        output_names=["probability"],
        dynamic_axes={"image": {0: "batch"}, "probability": {0: "batch"}},
    )
    exported = onnx.load(path)
    exported.doc_string = "8x8 handwritten digits, trained by examples/digits/train.py"
    onnx.checker.check_model(exported)
    onnx.save(exported, path)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    images = (digits.images / 16.0).astype(numpy.float32)[:, None]
    labels = digits.target.astype(numpy.int64)
    train_images, held_images, train_labels, held_labels = train_test_split(
        images, labels, test_size=0.2, random_state=0, stratify=labels
    )
    model = Digits()
    train(model, torch.from_numpy(train_images), torch.from_numpy(train_labels))
    with torch.no_grad():
        probability = WithProbability(model)(torch.from_numpy(held_images)).numpy()
    accuracy = float((probability.argmax(axis=1) == held_labels).mean())
    print(f"accuracy on {len(held_labels)} held-out samples: {accuracy:.4f}")
    if accuracy < LEAST_ACCURACY:
        raise SystemExit(f"expected at least {LEAST_ACCURACY}")
    numpy.save(HERE / "samples.npy", held_images)
    numpy.save(HERE / "labels.npy", held_labels)
    write_test_data(HERE / "test_data_set_0", held_images[:16], probability[:16])
    export(WithProbability(model), str(HERE / "digits.onnx"))


if __name__ == "__main__":
    main()
