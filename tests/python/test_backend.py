"""The tests of the package onnx, run by its own runner: the cases of a few groups of operators, or of all of them with
RELAXC_ONNX_CASES=. (a regular expression of names)."""
import os
import unittest

import numpy as np

# The runner of onnx 1.12 asks for names that NumPy 1.24 has no longer.
for _name, _type in (("object", object), ("bool", bool)):
    if _name not in np.__dict__:
        setattr(np, _name, _type)

try:
    import onnx.backend.test
    from onnx import helper
except ImportError as error:
    raise unittest.SkipTest("onnx is not installed") from error

import relaxc.backend

CASES = os.environ.get("RELAXC_ONNX_CASES", "add|arg|cast|concat|constant|conv_|gather|gemm|identity|if|layer|loop|"
                                            "matmul|maxpool|optional|pad|reduce_sum|reshape|sequence|softmax|split|"
                                            "string|where")

# Cases that do not hold, and why.
EXCLUDED = {
    "bernoulli|training_dropout": "the data hold the random numbers of NumPy's generator",
    "adam_multiple": "the data take another epsilon than the model states (tests/onnx/wrong_data.cc)",
    "loop16_seq_none": "the runner takes the length of tensors of rank 0 that are items of a sequence",
    "castlike_(BFLOAT16_to_FLOAT|FLOAT_to_BFLOAT16)": "the data of `like` has another rank than the model declares",
}



class Strict(relaxc.backend.Backend):
    """A case that cannot be imported fails, where the runner would skip it."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        return True


suite = onnx.backend.test.BackendTest(Strict, __name__)
suite.include(f"^test_({CASES}).*_cpu")
suite.exclude("OnnxBackendRealModelTest")  # downloads models
for pattern in EXCLUDED:
    suite.exclude(pattern)
globals().update(suite.test_cases)


class Backend(unittest.TestCase):
    def test_one_node(self):
        node = helper.make_node("Sub", ["a", "b"], ["c"])
        x = np.ones((2, 3), np.float32)
        (difference,) = relaxc.backend.run_node(node, [3 * x, x])
        np.testing.assert_array_equal(difference, 2 * x)
        (difference,) = relaxc.backend.Backend.run_node(node, [3 * x, x], outputs_info=[(np.float32, (2, 3))],
                                                        opset_version=13)
        np.testing.assert_array_equal(difference, 2 * x)

    def test_is_compatible(self):
        def model(operator):
            value = helper.make_tensor_value_info("x", 1, [2])
            graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", [value],
                                      [helper.make_tensor_value_info("y", 1, [2])])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])

        self.assertTrue(relaxc.backend.is_compatible(model("Relu")))
        self.assertFalse(relaxc.backend.is_compatible(model("Frobnicate")))
        self.assertFalse(relaxc.backend.is_compatible(model("Relu"), "CUDA"))

    def test_devices(self):
        self.assertTrue(relaxc.backend.supports_device("CPU"))
        self.assertFalse(relaxc.backend.supports_device("CUDA:0"))
        with self.assertRaises(ValueError):
            relaxc.backend.prepare(None, "CUDA")


if __name__ == "__main__":
    unittest.main()
