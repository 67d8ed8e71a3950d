"""What the tests of the package share."""
import os
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"

# One tiny kernel; n is symbolic.
ADD = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            z = R.add(x, y)
            R.output(z)
        return z
"""


def module(inputs, result, body, dims=""):
    """Returns the text of a module: `inputs` is the list of parameters, `body` the expression of its result."""
    return f"""
@I.ir_module
class Module:
    @R.function
    def main({inputs}){f' -> {result}' if result else ''}:
        with R.dataflow():
            z = {body}
            R.output(z)
        return z
"""


def needs(package):
    """Skips what needs a package that is not installed."""
    try:
        __import__(package)
        return lambda test: test
    except ImportError:
        return unittest.skip(f"{package} is not installed")
