// The functions of tvm.relax.frontend.nn.op.
#include "ir/text/python_nn.h"

namespace relaxc::text {

const std::string_view kNnOperators = R"python(
def library():
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
    def multinomial_from_uniform(prob, uniform_sample, sample_indices=None, dtype="int64", name=""):
        if sample_indices is None:
            sample_indices = R.reshape(R.arange(prob.shape[0], dtype="int64"), [prob.shape[0], 1])
        return R.multinomial_from_uniform(prob, uniform_sample, sample_indices, dtype=dtype)

    def ccl_allreduce(x, op_type="sum", in_group=True, name=""): return R.ccl.allreduce(x, op_type, in_group)
    def ccl_broadcast_from_worker0(x, name=""): return R.ccl.broadcast_from_worker0(x)
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

    def interpolate(x, size=None, scale_factor=None, mode="nearest", recompute_scale_factor=None, align_corners=None,
                    antialias=None, data_layout="NCHW", name=""):
        assert recompute_scale_factor is None and antialias is None
        if size is None:
            dims = [x.shape[i] for i in range(4) if data_layout[i] not in ["N", "C"]]
            factors = several(scale_factor, len(dims))
            size = [int(dims[i] * factors[i]) for i in range(len(dims))]
        coordinates = "align_corners" if align_corners else "half_pixel"
        if mode.startswith("nearest"):
            mode = "nearest_neighbor"
            coordinates = "asymmetric"
        elif mode.startswith("bi"):
            mode = mode[2:]
        return R.image.resize2d(x, R.shape(several(size, 2)), layout=data_layout, method=mode,
                                coordinate_transformation_mode=coordinates, rounding_method="round")

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

    def debug_func(name, *args):
        pass
)python";

}  // namespace relaxc::text
