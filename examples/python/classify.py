"""From a network in torch to answers: export, compile, run, look where the time goes. Without torch, the digits model."""
import pathlib
import sys
import tempfile

import numpy as np
import relaxc

DIGITS = pathlib.Path(__file__).resolve().parent.parent / "digits"


def exported(folder):
    """Returns the path of an ONNX model that torch exports, with a symbolic batch, and what torch answers to `images`."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                  torch.nn.Flatten(), torch.nn.Linear(8 * 4 * 4, 10), torch.nn.Softmax(dim=1)).eval()
    path = folder + "/network.onnx"
    torch.onnx.export(network, torch.zeros(2, 1, 8, 8), path, input_names=["image"], output_names=["probability"],
                      dynamic_axes={"image": {0: "batch"}, "probability": {0: "batch"}})

    def answers(images):
        with torch.no_grad():
            return network(torch.from_numpy(images)).numpy()

    return path, answers


def main():
    images = np.load(DIGITS / "samples.npy").astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, answers = exported(folder)
        except ImportError:
            print("torch is not installed: compiling the digits model")
            path, answers = DIGITS / "digits.onnx", None
        model = relaxc.compile(path, progress=True)
    print(model)
    for batch in (1, 5, len(images)):  # one compilation serves every batch
        probability = model(image=images[:batch])
        print(f"batch {batch}: answers {probability.argmax(axis=1)[:5]}")
        if answers is not None and not np.allclose(probability, answers(images[:batch]), atol=1e-5):
            sys.exit("torch answers otherwise")
    print(model.profile(image=images))


if __name__ == "__main__":
    main()
