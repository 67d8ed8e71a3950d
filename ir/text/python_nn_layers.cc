// The layers that a model of tvm.relax.frontend.nn may be made of.
#include "ir/text/python_nn.h"

namespace relaxc::text {

const std::string_view kNnLayers = R"python(
def library():
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

    class Attention(Module):
        def __init__(self, query_dim, cross_attention_dim=None, heads=8, dim_head=64, bias=False, norm_num_groups=None,
                     out_bias=True, scale_qk=True):
            self.inner_dim = dim_head * heads
            self.heads = heads
            context_dim = cross_attention_dim if cross_attention_dim else query_dim
            self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
            self.to_k = Linear(context_dim, self.inner_dim, bias=bias)
            self.to_v = Linear(context_dim, self.inner_dim, bias=bias)
            self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
            self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

        def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None, **others):
            assert attention_mask is None
            if self.group_norm is not None:
                hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
            query = self.to_q(hidden_states)
            if encoder_hidden_states is None:
                encoder_hidden_states = hidden_states
            shape = [0, -1, self.heads, self.inner_dim // self.heads]
            query = R.reshape(query, shape)
            key = R.reshape(self.to_k(encoder_hidden_states), shape)
            value = R.reshape(self.to_v(encoder_hidden_states), shape)
            attended = scaled_dot_product_attention(query, key, value)
            return self.to_out[0](R.reshape(attended, [0, -1, self.inner_dim]))

    class TimestepEmbedding(Module):
        def __init__(self, in_channels, time_embed_dim, act_fn="silu", out_dim=None, post_act_fn=None,
                     cond_proj_dim=None):
            assert act_fn == "silu" and post_act_fn is None
            self.linear_1 = Linear(in_channels, time_embed_dim)
            self.cond_proj = None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
            self.act = SiLU()
            self.linear_2 = Linear(time_embed_dim, out_dim if out_dim else time_embed_dim)

        def forward(self, sample, condition=None):
            if condition is not None:
                sample = R.add(sample, self.cond_proj(condition))
            return self.linear_2(self.act(self.linear_1(sample)))

    class Timesteps(Module):
        def __init__(self, num_channels, flip_sin_to_cos=False, downscale_freq_shift=1):
            self.num_channels = num_channels
            self.flip_sin_to_cos = flip_sin_to_cos
            self.downscale_freq_shift = downscale_freq_shift

        def forward(self, x):
            return get_timestep_embedding(x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift)
)python";

}  // namespace relaxc::text
