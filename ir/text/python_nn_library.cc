// What a model of tvm.relax.frontend.nn may be made of: layers, the functions of nn.op, and its export.
#include "ir/text/python_nn.h"

namespace relaxc::text {

const std::string_view kNnLibrary = R"python(
def library():
    # ---- Tensors and parameters

    class Tensor:
        @staticmethod
        def placeholder(shape, dtype, name=""):
            return R.Tensor(shape, dtype)

        @staticmethod
        def from_const(data):
            return R.const(data)

        @staticmethod
        def from_scalar(data, dtype):
            return R.const(data, dtype)

        def reshape(self, *shape):
            if len(shape) == 1 and isinstance(shape[0], tuple):
                shape = shape[0]
            if len(shape) == 1 and isinstance(shape[0], list):
                shape = shape[0]
            return R.reshape(self, shape)

        def permute_dims(self, *axes):
            if len(axes) == 1 and isinstance(axes[0], list):
                axes = axes[0]
            return R.permute_dims(self, axes)

        def repeat(self, repeats, axis=None):
            return R.repeat(self, repeats, axis)

        def astype(self, dtype):
            return R.astype(self, dtype)

        def maximum(self, other):
            return R.maximum(self, other)

        def minimum(self, other):
            return R.minimum(self, other)

    class Parameter:
        def __init__(self, shape, dtype=None):
            self.shape = [shape] if isinstance(shape, int) else shape
            self.dtype = "float32" if dtype is None else dtype
            self.data = None
            self.attrs = {}
            self.variable = None

        def to(self, dtype=None):
            if dtype is not None:
                self.dtype = dtype

        def astype(self, dtype):
            return R.astype(self, dtype)

        @property
        def ndim(self):
            return len(self.shape)

    # ---- Modules

    class Module:
        def __init__(self):
            pass

        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

        def named_parameters(self, prefix=""):
            found = []
            for name, value in attributes(self):
                add_parameters(prefix + name, value, found)
            return found

        def parameters(self):
            return [value for name, value in self.named_parameters()]

        def state_dict(self):
            return dict_of(self.named_parameters())

        def to(self, dtype=None):
            if dtype is not None:
                for name, value in attributes(self):
                    if isinstance(value, Module) or isinstance(value, Parameter):
                        value.to(dtype=dtype)
                if hasattr(self, "dtype") and isinstance(self.dtype, str):
                    self.dtype = dtype

        def export_tvm(self, spec, debug=False, allow_extern=False):
            if isinstance(spec, ModuleSpec):
                spec = spec.methods
            parameters = self.named_parameters()
            for name, inputs in spec.items():
                export(self, name, inputs, parameters, debug)
            module = exported_module()
            if allow_extern:
                return module, parameters, []
            return module, parameters

        def jit(self, spec, *args, **kwargs):
            self.export_tvm(spec)
            return exported_module()

    class ModuleSpec:
        def __init__(self, methods):
            self.methods = methods

        @staticmethod
        def from_raw(spec, module):
            return ModuleSpec(spec)

    class TensorSpec:
        def __init__(self, shape, dtype="float32"):
            self.shape = shape
            self.dtype = dtype

    class ObjectSpec:
        def __init__(self, object_type=None):
            self.object_type = object_type

    class TupleSpec:
        def __init__(self, name, elements):
            self.name = name
            self.elements = elements

    def add_parameters(name, value, found):
        if isinstance(value, Parameter):
            found.append((name, value))
        elif isinstance(value, ModuleList):
            for i, item in enumerate(value.modules):
                add_parameters(name + "." + str(i), item, found)
        elif isinstance(value, Module):
            found.extend(value.named_parameters(name + "."))

    def type_of(name, spec):
        if is_type(spec):
            return spec
        if isinstance(spec, TensorSpec):
            return R.Tensor(spec.shape, spec.dtype)
        if isinstance(spec, ObjectSpec):
            return R.Object
        if isinstance(spec, TupleSpec) or isinstance(spec, tuple) or isinstance(spec, list):
            elements = spec.elements if isinstance(spec, TupleSpec) else spec
            return R.Tuple([type_of(name, each) for each in elements])
        return R.Shape([name])

    def input_of(name, spec):
        if is_type(spec):
            return function_param(name, spec)
        if isinstance(spec, TupleSpec) or isinstance(spec, tuple) or isinstance(spec, list):
            elements = spec.elements if isinstance(spec, TupleSpec) else spec
            variable = function_param(name, type_of(name, spec))
            return [variable[i] for i in range(len(elements))]
        if isinstance(spec, TensorSpec) or isinstance(spec, ObjectSpec):
            return function_param(name, type_of(name, spec))
        return function_dim(name, type_of(name, spec))

    def export(model, name, inputs, parameters, debug):
        begin_function(name)
        modes = inputs["$"] if "$" in inputs else {}
        given = {}
        for key, each in inputs.items():
            if key != "$":
                given[key] = input_of(key, each)
        count = len(given)
        io = None
        if debug and modes.get("effect_mode", "plain") == "plain":
            io = function_param("_io", R.Object)
            count = count + 1
        mode = modes.get("param_mode", "plain")
        if mode == "packed":
            types = [R.Tensor(each.shape, each.dtype) for key, each in parameters]
            packed = function_param("packed_params", R.Tuple(types))
            for i, (key, each) in enumerate(parameters):
                each.variable = packed[i]
        elif mode == "plain":
            for key, each in parameters:
                each.variable = function_param(key, R.Tensor(each.shape, each.dtype))
        result = getattr(model, name)(**given)
        if io is not None:
            result = (result, (io,))
        end_function(result, count)

    # ---- Lists of modules

    class ModuleList(Module):
        def __init__(self, modules):
            self.modules = list(modules)

        def to(self, dtype=None):
            for module in self.modules:
                module.to(dtype=dtype)

        def append(self, module):
            self.modules.append(module)

        def forward(self, x):
            for module in self.modules:
                x = module(x)
            return x

    class Sequential(ModuleList):
        def __init__(self, *modules):
            self.modules = list(modules)

    # ---- Layers

    class ReLU(Module):
        def forward(self, x):
            return R.nn.relu(x)

    class SiLU(Module):
        def forward(self, x):
            return R.nn.silu(x)

    class GELU(Module):
        def forward(self, x):
            return R.nn.gelu(x)

    class Identity(Module):
        def forward(self, x):
            return x

    class Linear(Module):
        def __init__(self, in_features, out_features, bias=True, dtype=None, out_dtype=None):
            self.in_features = in_features
            self.out_features = out_features
            self.out_dtype = out_dtype
            self.weight = Parameter((out_features, in_features), dtype)
            self.bias = Parameter((out_features,), dtype if out_dtype is None else out_dtype) if bias else None

        def forward(self, x):
            x = matmul(x, R.permute_dims(self.weight), self.out_dtype)
            if self.bias is not None:
                x = R.add(x, self.bias)
            return x

    def several(value, count):
        return list(value) if isinstance(value, tuple) or isinstance(value, list) else [value] * count

    class Conv1D(Module):
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                     dtype=None):
            inner = in_channels if groups == 1 else in_channels // groups
            self.stride = stride
            self.padding = padding
            self.dilation = dilation
            self.groups = groups
            self.weight = Parameter([out_channels, inner] + several(kernel_size, 1), dtype)
            self.bias = Parameter((out_channels,), dtype) if bias else None

        def forward(self, x):
            return conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    class Conv2D(Module):
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                     dtype=None, data_layout="NCHW"):
            inner = in_channels if groups == 1 else in_channels // groups
            sizes = several(kernel_size, 2)
            self.stride = stride
            self.padding = padding
            self.dilation = dilation
            self.groups = groups
            self.data_layout = data_layout
            shape = [out_channels, inner] + sizes if data_layout == "NCHW" else [out_channels] + sizes + [inner]
            self.weight = Parameter(shape, dtype)
            self.bias = Parameter((out_channels,), dtype) if bias else None

        def forward(self, x):
            return conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
                          self.data_layout)

    class Conv3D(Module):
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                     dtype=None, data_layout="NCDHW"):
            inner = in_channels if groups == 1 else in_channels // groups
            sizes = several(kernel_size, 3)
            self.stride = stride
            self.padding = padding
            self.dilation = dilation
            self.groups = groups
            self.data_layout = data_layout
            shape = [out_channels, inner] + sizes if data_layout == "NCDHW" else [out_channels] + sizes + [inner]
            self.weight = Parameter(shape, dtype)
            self.bias = Parameter((out_channels,), dtype) if bias else None

        def forward(self, x):
            return conv3d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
                          self.data_layout)

    class ConvTranspose1D(Module):
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                     groups=1, bias=True, dtype=None):
            outer = out_channels if groups == 1 else out_channels // groups
            self.stride = stride
            self.padding = padding
            self.output_padding = output_padding
            self.dilation = dilation
            self.groups = groups
            self.weight = Parameter([in_channels, outer] + several(kernel_size, 1), dtype)
            self.bias = Parameter((out_channels,), dtype) if bias else None

        def forward(self, x):
            return conv1d_transpose(x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
                                    self.dilation, self.groups)

    class LayerNorm(Module):
        def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, dtype=None):
            self.normalized_shape = several(normalized_shape, 1)
            self.eps = eps
            self.weight = Parameter(self.normalized_shape, dtype) if elementwise_affine else None
            self.bias = Parameter(self.normalized_shape, dtype) if elementwise_affine else None

        def forward(self, x):
            return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    class RMSNorm(Module):
        def __init__(self, hidden_size, axes, epsilon=1e-5, bias=True, dtype=None):
            self.epsilon = epsilon
            self.axes = several(axes, 1)
            self.weight = Parameter((hidden_size,), dtype)
            self.bias = Parameter((hidden_size,), dtype) if bias else None

        def forward(self, x):
            x = R.nn.rms_norm(x, self.weight, axes=self.axes, epsilon=self.epsilon)
            if self.bias is not None:
                x = R.add(x, self.bias)
            return x

    class GroupNorm(Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
            self.num_groups = num_groups
            self.eps = eps
            self.weight = Parameter((num_channels,), dtype) if affine else None
            self.bias = Parameter((num_channels,), dtype) if affine else None

        def forward(self, x, channel_axis=1, axes=None):
            return group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes)

    class Embedding(Module):
        def __init__(self, num, dim, dtype=None):
            self.num = num
            self.dim = dim
            self.weight = Parameter((num, dim), dtype)

        def forward(self, x):
            return R.take(self.weight, x, axis=0)

    # ---- Functions

    def with_bias(x, bias, shape):
        return x if bias is None else R.add(x, R.reshape(bias, shape))

    def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, name=""):
        x = R.nn.conv1d(x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups)
        return with_bias(x, bias, [1, -1, 1])

    def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCHW", name=""):
        first = data_layout == "NCHW"
        x = R.nn.conv2d(x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups,
                        data_layout=data_layout, kernel_layout="OIHW" if first else "OHWI")
        return with_bias(x, bias, [1, -1, 1, 1] if first else [1, 1, 1, -1])

    def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCDHW", name=""):
        first = data_layout == "NCDHW"
        x = R.nn.conv3d(x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups,
                        data_layout=data_layout, kernel_layout="OIDHW" if first else "ODHWI")
        return with_bias(x, bias, [1, -1, 1, 1, 1] if first else [1, 1, 1, 1, -1])

    def conv1d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1, name=""):
        x = R.nn.conv1d_transpose(x, weight, strides=stride, padding=padding, output_padding=output_padding,
                                  dilation=dilation, groups=groups)
        return with_bias(x, bias, [1, -1, 1])

    def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, name=""):
        shape = several(normalized_shape, 1)
        axes = [i - len(shape) for i in range(len(shape))]
        gamma = R.ones(shape, dtype_of(x)) if weight is None else weight
        beta = R.zeros(shape, dtype_of(x)) if bias is None else bias
        return R.nn.layer_norm(x, gamma, beta, axes=axes, epsilon=eps)

    def rms_norm(x, weight, axes, epsilon=1e-5, name=""):
        return R.nn.rms_norm(x, weight, axes=axes, epsilon=epsilon)

    def group_norm(x, num_groups, weight, bias, eps=1e-5, channel_axis=1, axes=None, name=""):
        if axes is None:
            axes = [i for i in range(channel_axis + 1, rank_of(x))]
        return R.nn.group_norm(x, weight, bias, num_groups=num_groups, channel_axis=channel_axis, axes=axes, epsilon=eps)

    def matmul(a, b, out_dtype=None, name=""):
        return R.matmul(a, b) if out_dtype is None else R.matmul(a, b, out_dtype=out_dtype)

    def add(a, b, name=""): return R.add(a, b)
    def subtract(a, b, name=""): return R.subtract(a, b)
    def multiply(a, b, name=""): return R.multiply(a, b)
    def divide(a, b, name=""): return R.divide(a, b)
    def maximum(x1, x2, name=""): return R.maximum(x1, x2)
    def minimum(x1, x2, name=""): return R.minimum(x1, x2)
    def less(a, b, name=""): return R.less(a, b)
    def less_equal(a, b, name=""): return R.less_equal(a, b)
    def greater(a, b, name=""): return R.greater(a, b)
    def greater_equal(a, b, name=""): return R.greater_equal(a, b)
    def equal(a, b, name=""): return R.equal(a, b)
    def not_equal(a, b, name=""): return R.not_equal(a, b)
    def where(condition, x1, x2, name=""): return R.where(condition, x1, x2)

    def relu(x, name=""): return R.nn.relu(x)
    def relu6(x, name=""): return R.nn.relu6(x)
    def silu(x, name=""): return R.nn.silu(x)
    def gelu(x, approximate=None, name=""): return R.nn.gelu_tanh(x) if approximate == "tanh" else R.nn.gelu(x)
    def softplus(x, beta=1.0, threshold=20.0, name=""): return R.nn.softplus(x, beta=beta, threshold=threshold)
    def prelu(x, alpha, name=""): return R.nn.prelu(x, alpha)
    def softmax(x, axis=-1, name=""): return R.nn.softmax(x, axis=axis)
    def sigmoid(x, name=""): return R.sigmoid(x)
    def tanh(x, name=""): return R.tanh(x)
    def exp(x, name=""): return R.exp(x)
    def log(x, name=""): return R.log(x)
    def floor(x, name=""): return R.floor(x)
    def negative(x, name=""): return R.negative(x)
    def square(x, name=""): return R.square(x)
    def sqrt(x, name=""): return R.sqrt(x)

    def sum(x, axis=None, keepdims=False, name=""): return R.sum(x, axis=axis, keepdims=keepdims)
    def max(x, axis=None, keepdims=False, name=""): return R.max(x, axis=axis, keepdims=keepdims)
    def min(x, axis=None, keepdims=False, name=""): return R.min(x, axis=axis, keepdims=keepdims)
    def cumsum(data, axis=None, dtype=None, exclusive=None, name=""):
        return R.cumsum(data, axis=axis, dtype=dtype, exclusive=exclusive)
    def sort(x, axis=-1, descending=False, name=""): return R.sort(x, axis=axis, descending=descending)
    def argsort(data, axis=-1, descending=False, dtype="int32", name=""):
        return R.argsort(data, axis=axis, descending=descending, dtype=dtype)

    def topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32", name=""):
        result = R.topk(data, k=k, axis=axis, ret_type=ret_type, largest=largest, dtype=dtype)
        return (result[0], result[1]) if ret_type == "both" else result

    def unsqueeze(x, dim, name=""): return R.expand_dims(x, dim)
    def squeeze(x, axis=-1, name=""): return R.squeeze(x, axis)
    def concat(x, dim, name=""): return R.concat(x, axis=dim)
    def broadcast_to(x, shape, name=""): return R.broadcast_to(x, shape)
    def permute_dims(x, axes=None, name=""): return R.permute_dims(x, axes)
    def permute(x, axes, name=""): return R.permute_dims(x, axes)
    def reshape(x, shape, name=""): return R.reshape(x, shape)
    def repeat(x, repeats, axis=None, name=""): return R.repeat(x, repeats, axis)
    def take(x, indices, axis=None, name=""): return R.take(x, indices, axis=axis)
    def astype(x, dtype, name=""): return R.astype(x, dtype)
    def triu(x, diagonal=0, name=""): return R.triu(x, diagonal)
    def zeros(shape, dtype="float32", name=""): return R.zeros(shape, dtype)
    def ones(shape, dtype="float32", name=""): return R.ones(shape, dtype)
    def arange(start, end=None, step=1, dtype="float32", name=""): return R.arange(start, end, step, dtype)

    def full(shape, fill_value, dtype="float32", name=""):
        value = number_of(fill_value)
        if isinstance(value, int) or isinstance(value, float):
            value = R.const(value, dtype)
        return R.full(shape, value, dtype)

    def split(ary, indices_or_sections, axis=0, name=""):
        parts = R.split(ary, indices_or_sections, axis)
        count = indices_or_sections if isinstance(indices_or_sections, int) else len(indices_or_sections) + 1
        return tuple([parts[i] for i in range(count)])

    def chunk(x, chunks, dim=0, name=""):
        parts = R.split(x, chunks, dim)
        return tuple([parts[i] for i in range(chunks)])

    def pad(x, pad, mode="constant", value=0, name=""):
        return R.nn.pad(x, pad, pad_mode=mode, pad_value=value)

    def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, data_layout="NCHW", name=""):
        known = size is not None and mode == "nearest" and data_layout == "NCHW"
        sizes = several(size, 2) if known else unknown(x)
        return R.image.resize2d(x, R.shape(sizes), layout="NCHW", method="nearest_neighbor",
                                coordinate_transformation_mode="asymmetric", rounding_method="round")

    def scaled_dot_product_attention(query, key, value, attn_mask=None, is_causal=False, scale=None, name=""):
        q = query
        k = key
        v = value
        causal = "TopLeft" if is_causal else None
        if attn_mask is None:
            return R.nn.attention(q, k, v, scale=scale, causal_mask=causal)
        return R.nn.attention(q, k, v, attn_mask, scale=scale, causal_mask=causal)

    def get_timestep_embedding(x, embedding_dim, flip_sin_to_cos=False, downscale_freq_shift=1, scale=1,
                               max_period=10000, name=""):
        half = embedding_dim // 2
        steps = R.arange(0, half, 1, dtype="float32")
        exponents = R.multiply(R.const(-math.log(max_period), "float32"), steps)
        exponents = R.divide(exponents, R.const(half - downscale_freq_shift, "float32"))
        angles = R.multiply(R.expand_dims(R.astype(x, "float32"), 1), R.expand_dims(R.exp(exponents), 0))
        if scale != 1:
            angles = R.multiply(R.const(scale, "float32"), angles)
        sines = R.sin(angles)
        cosines = R.cos(angles)
        result = R.concat((cosines, sines) if flip_sin_to_cos else (sines, cosines), axis=-1)
        if embedding_dim % 2 == 1:
            result = R.nn.pad(result, (0, 0, 0, 1))
        return R.astype(result, "float32")

    # ---- tvm.relax.testing.nn, of 2022: layers in a function of a BlockBuilder

    def testing_Placeholder(shape, dtype="float32", name="data"):
        return R.Var(name, R.Tensor(shape, dtype))

    class testing_Parameter:
        def __init__(self, shape, dtype="float32", name="param"):
            self.variable = R.Var(name, R.Tensor(shape, dtype))

    class testing_Module:
        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

        def parameters(self):
            found = []
            for name, value in attributes(self):
                add_testing_parameters(value, found)
            return found

    def add_testing_parameters(value, found):
        if isinstance(value, testing_Parameter):
            found.append(value.variable)
        elif isinstance(value, testing_Module):
            found.extend(value.parameters())
        elif isinstance(value, list):
            for each in value:
                add_testing_parameters(each, found)

    class testing_Sequential(testing_Module):
        def __init__(self, *modules):
            self.modules = list(modules)

        def forward(self, x):
            for module in self.modules:
                x = module(x)
            return x

    class testing_ReLU(testing_Module):
        def forward(self, x):
            return R.nn.relu(x)

    class testing_LogSoftmax(testing_Module):
        def forward(self, x):
            return R.nn.log_softmax(x)

    class testing_Linear(testing_Module):
        def __init__(self, in_features, out_features, bias=True):
            self.weight = testing_Parameter((in_features, out_features), name="linear_weight")
            self.bias = testing_Parameter((out_features,), name="linear_bias") if bias else None

        def forward(self, x):
            x = R.matmul(x, self.weight)
            if self.bias is not None:
                x = R.add(x, self.bias)
            return x

    # ---- Programs and functions outside of the model

    def tensor_expr_op(tensor_expr_func, name_hint, args, attrs=None):
        return R.emit_te(tensor_expr_func, *args, primfunc_name_hint=name_hint)

    def tensor_ir_op(func, name_hint, args, out):
        return R.call_tir(func, tuple(several(args, 1)), out_sinfo=out)

    def tensor_ir_inplace_op(func, name_hint, args, inplace_indices, out):
        return R.call_tir_inplace(func, tuple(several(args, 1)), several(inplace_indices, 1), out)

    def extern(name, args, out):
        return R.call_dps_packed(name, tuple(several(args, 1)), out_sinfo=out)

    def wrap_nested(expr, name=""):
        return expr

    def print_(tensor):
        pass
)python";

}  // namespace relaxc::text
