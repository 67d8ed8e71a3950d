#!/usr/bin/python3
# Makes fancy_gelu.onnx: a network with an operator that ONNX does not have, com.me::FancyGelu, exported by torch. The
# expected outputs for its inputs lie beside it.
import os
import onnx
import torch
from onnx import numpy_helper


class FancyGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        return alpha * x * (1 + torch.erf(x / 2**0.5))

    @staticmethod
    def symbolic(g, x, alpha):  # the node of the model
        return g.op("com.me::FancyGelu", x, alpha_f=alpha).setType(x.type())


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.second(FancyGelu.apply(self.first(x), 0.25))


torch.manual_seed(0)
network, x = Network().eval(), torch.randn(5, 8)
folder = os.path.dirname(os.path.abspath(__file__))
# torch 2.9 and later need dynamo=False besides.
torch.onnx.export(network, x, folder + "/fancy_gelu.onnx", opset_version=13, custom_opsets={"com.me": 1},
                  input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
data = folder + "/fancy_gelu_data"
os.makedirs(data, exist_ok=True)
for name, tensor in [("input_0", x), ("output_0", network(x).detach())]:
    onnx.save_tensor(numpy_helper.from_array(tensor.numpy()), f"{data}/{name}.pb")
