"""The forms of quantized models: those of ONNX Runtime's quantize_static (QDQ and QOperator, per channel) and
quantize_dynamic, after its documentation, with the names that it gives to tensors; and one that tests use.

Activations are asymmetric with one scale for each tensor, weights int8 and symmetric with one for each channel.
"""
import numpy
import onnx
from onnx import helper, numpy_helper

from evaluate import attributes

MICROSOFT = "com.microsoft"
PRODUCTS = ("Conv", "Gemm", "MatMul")
SAME_SCALE = ("MaxPool", "Reshape", "Transpose", "Gather")  # results are values of the first input
CUT_OFF = ("Relu", "Clip")
GREATEST = 1e6  # a tensor beyond holds a mask of -3e38, of which 8 bits would leave nothing but the mask


def hoisted(model):
    """Returns the model with initializers instead of Constant nodes."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for node in model.graph.node:
        if node.op_type != "Constant":
            result.graph.node.append(node)
            continue
        value = result.graph.initializer.add()
        value.CopyFrom(attributes(node)["value"])
        value.name = node.output[0]
    return result


class Form:
    """A quantized graph under construction, beside the float one."""

    def __init__(self, model, ranges, dtype="uint8"):
        self.model, self.ranges, self.dtype = hoisted(model), ranges, dtype
        self.weights = {i.name: numpy_helper.to_array(i) for i in self.model.graph.initializer}
        self.users = {}
        for node in self.model.graph.node:
            for name in node.input:
                self.users.setdefault(name, []).append(node)
        self.outputs = {value.name for value in self.model.graph.output}
        self.nodes, self.initializers = [], {}

    def constant(self, name, value, dtype):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(numpy.asarray(value, dtype), name)
        return name

    def add(self, op, inputs, output, **more):
        self.nodes.append(helper.make_node(op, inputs, [output], output + "_" + op, **more))
        return output

    def copy(self, node, inputs, outputs):
        result = onnx.NodeProto()
        result.CopyFrom(node)
        del result.input[:], result.output[:]
        result.input.extend(inputs)
        result.output.extend(outputs)
        self.nodes.append(result)

    def parameters(self, name):
        """Returns scale and zero point of an activation as numbers."""
        low, high = self.ranges[name]
        scale = max((high - low) / 255, 1e-10)
        return scale, round(numpy.iinfo(self.dtype).min - low / scale)

    def scale_and_zero(self, name):
        scale, zero = self.parameters(name)
        return self.constant(name + "_scale", scale, "float32"), self.constant(name + "_zero_point", zero, self.dtype)

    def weight(self, name, axis, transposed=False):
        """Returns the names of the int8 weight, its scales and zero points; axis: that of the channels, or None."""
        w = self.weights[name].T if transposed else self.weights[name]
        others = tuple(d for d in range(w.ndim) if d != axis)
        scales = numpy.maximum(numpy.abs(w).max(others, keepdims=True) / 127, 1e-10)
        integers = self.constant(name + "_quantized", numpy.round(w / scales), "int8")
        scales = scales.ravel() if axis is not None else scales.reshape(())
        zeros = self.constant(name + "_zero_point", numpy.zeros(scales.shape), "int8")
        return integers, self.constant(name + "_scale", scales, "float32"), zeros

    def scales_of(self, name):
        return numpy_helper.to_array(self.initializers[name + "_scale"])

    def bias(self, name, x, weight):
        """Returns the names of the int32 bias and its scales, which are those of the sums."""
        scales = self.parameters(x)[0] * self.scales_of(weight)
        integers = self.constant(name + "_quantized", numpy.round(self.weights[name] / scales), "int32")
        return integers, self.constant(name + "_quantized_scale", scales, "float32")

    def is_float_weight(self, name):
        return name in self.weights and self.weights[name].dtype == numpy.float32

    def cut_off_of(self, node):
        """Returns the only reader of a node when it is a Relu or Clip: the range of its result says the same."""
        users = self.users.get(node.output[0], [])
        is_only = len(users) == 1 and node.output[0] not in self.outputs
        return users[0] if is_only and users[0].op_type in CUT_OFF else None

    def result(self):
        used = {name for node in self.nodes for name in node.input}
        kept = [i for i in self.model.graph.initializer if i.name in used]
        kept += [i for name, i in self.initializers.items() if name in used]
        graph = helper.make_graph(self.nodes, "quantized", self.model.graph.input, self.model.graph.output, kept)
        opsets = list(self.model.opset_import)
        if any(node.domain == MICROSOFT for node in self.nodes):
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.model.ir_version)


def channel_axis(node):
    if node.op_type == "MatMul":
        return 1
    return 0 if node.op_type == "Conv" or attributes(node).get("transB") else 1


# -- QuantizeLinear and DequantizeLinear --------------------------------------


class Pairs(Form):
    """The form QDQ: operators read and write float32, through pairs that quantize and dequantize.

    GELU and softmax stay in float32, as Optimum's settings for the tool leave them.
    """

    def __init__(self, model, ranges, dtype):
        super().__init__(model, ranges, dtype)
        self.reals = {}  # name -> that of the tensor after its pair
        self.wanted = set()
        self.dropped = {}  # Relu and Clip that go: by the name of their input, their output

    def can_be_quantized(self, node):
        floats = [name for name in (*node.input, *node.output) if name in self.ranges]
        if not floats or any(max(map(abs, self.ranges[name])) > GREATEST for name in floats):
            return False
        if node.op_type == "Gather":
            return self.is_float_weight(node.input[0])
        if node.op_type == "Add":
            return not self.follows_erf(node)
        return node.op_type in (*PRODUCTS, *SAME_SCALE, "GlobalAveragePool", "Concat")

    def follows_erf(self, node):
        return any(other.op_type == "Erf" and other.output[0] in node.input for other in self.model.graph.node)

    def decide(self):
        for node in self.model.graph.node:
            if not self.can_be_quantized(node):
                continue
            if node.op_type in ("Reshape", "Transpose") and node.input[0] not in self.wanted:
                continue  # moves float values
            cut_off = self.cut_off_of(node)
            if cut_off:
                self.dropped[node.output[0]] = cut_off.output[0]
            last = cut_off.output[0] if cut_off else node.output[0]
            floats = [name for name in (*node.input, last) if name in self.ranges]
            self.wanted.update(floats[:2] if node.op_type in PRODUCTS else floats)
            self.wanted.add(last)
            if node.op_type in SAME_SCALE:
                self.ranges[last] = self.ranges[node.input[0]]

    def pair(self, name, written):
        """Adds the pair behind the tensor `written`; the result of a graph keeps its name."""
        scale, zero = self.scale_and_zero(name)
        real = name if name in self.outputs else name + "_DequantizeLinear_Output"
        self.add("QuantizeLinear", [written, scale, zero], name + "_QuantizeLinear_Output")
        self.reals[name] = self.add("DequantizeLinear", [name + "_QuantizeLinear_Output", scale, zero], real)

    def constant_real(self, name, axis):
        if name not in self.reals:
            inputs = self.weight(name, axis)
            more = {} if axis is None else {"axis": axis}
            self.reals[name] = self.add("DequantizeLinear", inputs, name + "_DequantizeLinear_Output", **more)
        return self.reals[name]

    def bias_real(self, node):
        name = node.input[2]
        integers, scale = self.bias(name, node.input[0], node.input[1])
        return self.add("DequantizeLinear", [integers, scale], name + "_DequantizeLinear_Output", axis=0)

    def real_inputs(self, node):
        if not self.can_be_quantized(node):
            return [self.reals.get(name, name) for name in node.input]
        axes = [None] * len(node.input)
        if node.op_type in PRODUCTS:
            axes[1] = channel_axis(node)
        inputs = [self.constant_real(name, axis) if self.is_float_weight(name) else self.reals.get(name, name)
                  for name, axis in zip(node.input[:2], axes)]
        if node.op_type in PRODUCTS and len(node.input) == 3:
            return [*inputs, self.bias_real(node)]
        return [*inputs, *node.input[2:]]

    def build(self):
        self.decide()
        for value in self.model.graph.input:
            if value.name in self.wanted:
                self.pair(value.name, value.name)
        for node in self.model.graph.node:
            if node.input[0] in self.dropped:
                continue
            name = self.dropped.get(node.output[0], node.output[0])
            written = name + "_QuantizeLinear_Input" if name in self.wanted & self.outputs else name
            self.copy(node, self.real_inputs(node), [written])
            if name in self.wanted:
                self.pair(name, written)
        return self.result()


def qdq(model, ranges, dtype):
    return Pairs(model, dict(ranges), dtype).build()


# -- Operators on integers ----------------------------------------------------


class Integers(Form):
    """The form QOperator, for image networks: QLinearConv and others on uint8 tensors."""

    def quantized(self, name):
        """Returns the names of the uint8 tensor, its scale and its zero point."""
        scale, zero = self.scale_and_zero(name)
        if name not in self.integers:
            self.integers[name] = self.add("QuantizeLinear", [name, scale, zero], name + "_quantized")
        return [self.integers[name], scale, zero]

    def real(self, name):
        if name in self.integers and name not in self.reals:
            self.reals.add(name)
            self.add("DequantizeLinear", self.quantized(name), name)
        return name

    def write(self, name):
        """Returns the name of the uint8 tensor that the node now added writes, for the float tensor `name`."""
        self.integers[name] = name + "_quantized"
        return self.integers[name]

    def product(self, node, name):
        a, x = attributes(node), node.input[0]
        if node.op_type == "Conv":
            inputs = [*self.quantized(x), *self.weight(node.input[1], 0), *self.scale_and_zero(name)]
            inputs += [self.bias(node.input[2], x, node.input[1])[0]] if len(node.input) == 3 else []
            self.add("QLinearConv", inputs, self.write(name), **a)
            return
        # Gemm, which the tool splits.
        product = name + "_product"
        self.ranges[product] = tuple(self.ranges[name])
        weight = self.weight(node.input[1], 1, transposed=bool(a.get("transB")))
        inputs = [*self.quantized(x), *weight, *self.scale_and_zero(product)]
        self.add("QLinearMatMul", inputs, self.write(product))
        self.sum([product, node.input[2]], name)

    def sum(self, names, name):
        for bias in filter(self.is_float_weight, names):
            scale, zero = self.parameters(bias)
            integers = numpy.clip(numpy.round(self.weights[bias] / scale) + zero, 0, 255)
            self.integers[bias] = self.constant(bias + "_quantized", integers, "uint8")
        inputs = [text for operand in names for text in self.quantized(operand)]
        self.add("QLinearAdd", [*inputs, *self.scale_and_zero(name)], self.write(name), domain=MICROSOFT)

    def node(self, node):
        cut_off = self.cut_off_of(node)
        name = cut_off.output[0] if cut_off else node.output[0]
        if node.op_type in PRODUCTS:
            self.product(node, name)
        elif node.op_type == "Add":
            self.sum(node.input, name)
        elif node.op_type == "GlobalAveragePool":
            inputs = [*self.quantized(node.input[0]), *self.scale_and_zero(name)]
            self.add("QLinearGlobalAveragePool", inputs, self.write(name), domain=MICROSOFT, channels_last=0)
        elif node.op_type == "MaxPool":
            self.ranges[name] = self.ranges[node.input[0]]
            x = self.quantized(node.input[0])[0]
            self.copy(node, [x], [self.write(name)])
        elif node.op_type not in CUT_OFF:
            self.copy(node, [self.real(x) for x in node.input], [name])

    def build(self):
        self.integers, self.reals = {}, set()  # name -> uint8 tensor; those that are dequantized
        for node in self.model.graph.node:
            self.node(node)
        for name in self.outputs:
            self.real(name)
        return self.result()


def qlinear(model, ranges):
    return Integers(model, dict(ranges)).build()


# -- Ranges that the run finds ------------------------------------------------


class Dynamic(Form):
    """What quantize_dynamic does: MatMulInteger with weights of one scale, activations quantized by their own range."""

    def activation(self, name):
        """Returns the names of the uint8 tensor, its scale and its zero point."""
        names = [name + "_quantized", name + "_scale", name + "_zero_point"]
        if name not in self.seen:
            self.seen.add(name)
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [name], names, name + "_QuantizeLinear"))
        return names

    def product(self, x, name, transposed, output):
        x, scale, zero = self.activation(x)
        weight, weight_scale, weight_zero = self.weight(name, None, transposed)
        sums = self.add("MatMulInteger", [x, weight, zero, weight_zero], output + "_output_quantized")
        real = self.add("Cast", [sums], sums + "_cast_output", to=onnx.TensorProto.FLOAT)
        scales = self.add("Mul", [scale, weight_scale], output + "_scales_mul")
        self.add("Mul", [real, scales], output)

    def build(self):
        self.seen = set()
        for node in self.model.graph.node:
            output = node.output[0]
            if node.op_type == "MatMul" and self.is_float_weight(node.input[1]):
                self.product(node.input[0], node.input[1], False, output)
            elif node.op_type == "Gemm":
                self.product(node.input[0], node.input[1], bool(attributes(node).get("transB")), output + "_product")
                self.add("Add", [output + "_product", node.input[2]], output)
            elif node.op_type == "Gather" and self.is_float_weight(node.input[0]):
                table, scale, zero = self.weight(node.input[0], None)
                self.copy(node, [table, node.input[1]], [output + "_quantized"])
                self.add("DequantizeLinear", [output + "_quantized", scale, zero], output)
            else:
                self.copy(node, node.input, [output])
        return self.result()


def dynamic(model, ranges):
    return Dynamic(model, ranges).build()


# -- Products only ------------------------------------------------------------


class ProductsOnly(Form):
    """Pairs before Conv and Gemm alone; biases and sums stay in float32."""

    def pair(self, name):
        if name not in self.reals:
            scale, zero = self.scale_and_zero(name)
            self.add("QuantizeLinear", [name, scale, zero], name + "_int8")
            self.reals[name] = self.add("DequantizeLinear", [name + "_int8", scale, zero], name + "_real")
        return self.reals[name]

    def build(self):
        self.reals = {}
        for node in self.model.graph.node:
            inputs = [self.reals.get(name, name) for name in node.input]
            if node.op_type in PRODUCTS:
                axis = channel_axis(node)
                integers, scales, _ = self.weight(node.input[1], axis)
                real = self.add("DequantizeLinear", [integers, scales], node.input[1] + "_real", axis=axis)
                inputs = [self.pair(node.input[0]), real, *node.input[2:]]
            self.copy(node, inputs, node.output)
        return self.result()


def products_only(model, ranges):
    return ProductsOnly(model, ranges).build()
