"""Pooling, reductions, normalizations, softmax, and what selects or sums along an axis."""
from form import Form, const, each_input, each_output, elements, weight, x

# name, dims, kernel, stride, padding
POOLS = [
    ('3x3_s2', '64 h=112 w=112', (3, 3), 2, 1), ('2x2_s2', '64 h=56 w=56', (2, 2), 2, 0),
    ('3x3_s1', '192 h=28 w=28', (3, 3), 1, 1),
    ('5x5_s1', '128 h=20 w=20', (5, 5), 1, 2), ('13x13_s1', '64 h=20 w=20', (13, 13), 1, 6),
    ('3x3_s2_odd', '37 h=35 w=35', (3, 3), 2, 0),
    ('1x4_s4', '32 h=16 w=256', (1, 4), 4, 0), ('2_s2_1d', '64 t=1000', (2,), 2, 0),
    ('3_s2_1d', '64 t=1000', (3,), 2, 1),
    ('2_s2_3d', '16 d=16 h=32 w=32', (2, 2, 2), 2, 0), ('7x7_s7', '512 h=14 w=14', (7, 7), 7, 0),
    ('3x3_s1_one', '1 h=256 w=256', (3, 3), 1, 1), ('16x16_s16', '3 h=224 w=224', (16, 16), 16, 0),
    ('5x5_s3', '40 h=45 w=61', (5, 5), 3, 2),
]
# operator, dims, axes
REDUCTIONS = [
    ('ReduceMean', 'n=1 512 h=14 w=14', [2, 3]), ('ReduceMean', 's=128 768', [1]), ('ReduceMean', 's=128 768', [0]),
    ('ReduceMean', 'n=8 s=64 128', [1]), ('ReduceMean', 'n=1 64 h=56 w=56', [1]),
    ('ReduceMean', 'n=16 h=28 w=28 16', [1, 2]),
    ('ReduceSum', 'm=256 n=256', [1]), ('ReduceSum', 'm=256 n=256', [0]), ('ReduceSum', 'm=256 n=256', [0, 1]),
    ('ReduceSum', 'k=65536', [0]),
    ('ReduceSum', 'a=32 b=32 c=64', [0, 2]), ('ReduceSum', 'a=32 b=32 c=64', [1]),
    ('ReduceSum', 'a=8 b=8 c=8 d=8 e=16', [1, 3]),
    ('ReduceSum', 'm=20000 4', [1]), ('ReduceSum', 'm=20000 3', [0]), ('ReduceSum', 'm=37 n=1001', [1]),
    ('ReduceSum', 'm=4 n=16384', [1]),
    ('ReduceMax', 'm=256 n=256', [1]), ('ReduceMax', 'm=256 n=256', [0]), ('ReduceMax', 'n=1 64 h=32 w=32', [2, 3]),
    ('ReduceMax', 'k=65536', [0]),
    ('ReduceMin', 'm=256 n=256', [1]), ('ReduceMin', 'm=300 4', [1]), ('ReduceProd', 'm=256 n=256', [1]),
    ('ReduceL1', 'm=256 n=256', [1]),
    ('ReduceL2', 'm=256 n=256', [1]), ('ReduceL2', 'n=1 64 h=32 w=32', [1]), ('ReduceSumSquare', 'm=256 n=256', [1]),
    ('ReduceLogSumExp', 'm=256 n=256', [1]), ('ReduceLogSum', 'm=256 n=256', [1]),
    ('ArgMax', 'm=128 n=1000', [1]), ('ArgMax', 'm=1000 n=128', [0]), ('ArgMax', 'n=1 21 h=64 w=64', [1]),
    ('ArgMax', 'k=50257', [0]),
    ('ArgMin', 'm=300 n=80', [1]), ('ArgMax', 'b=8400 80', [1]),
]
SOFTMAX = [
    ('Softmax', 'b=12 s=128 t=128', -1), ('Softmax', 'b=12 s=16 t=1024', -1), ('Softmax', 'm=1 1000', -1),
    ('Softmax', 'm=64 n=49', -1),
    ('Softmax', 'n=1 21 h=64 w=64', 1), ('Softmax', 'n=1 2 h=256 w=256', 1), ('Softmax', 'm=1024 4', -1),
    ('Softmax', 'm=1 50257', -1),
    ('Softmax', 'a=64 b=64 c=16', 1), ('Softmax', 'a=256 b=256', 0), ('Softmax', 'b=4 s=8400 16', -1),
    ('LogSoftmax', 'm=128 n=1000', -1), ('LogSoftmax', 'n=1 21 h=64 w=64', 1),
    ('Hardmax', 'm=128 n=1000', -1),
]


def pool(op, row):
    name, dims, kernel, stride, pad = row
    attributes = {'kernel_shape': list(kernel), 'strides': [stride] * len(kernel), 'pads': [pad] * (2 * len(kernel))}
    if name == '1x4_s4':
        attributes['strides'] = [1, 4]
    window = elements(kernel)
    reason = ('a sum takes an instruction that could do two operations, a maximum that keeps NaN two instructions, and '
              'each loads an element')
    return Form(f'{op.lower()}_{name}', op, [x(f'n=1 {dims}')], attributes, each_output(window), reason=reason)


def short(dims):
    return 'x'.join(dim.rpartition('=')[2] for dim in dims.split())


def reduction(op, dims, axes):
    name = f"{op.lower()}_{short(dims)}_{'_'.join(map(str, axes))}"
    limits = (0.1, 2.0) if 'Log' in op or 'Prod' in op else None
    work = each_input(20 if op == 'ReduceLogSumExp' else 1)
    if op.startswith('Arg'):
        return Form(name, op, [x(dims)], {'axis': axes[0], 'keepdims': 0}, work)
    tensors = [x(dims, limits=limits)] + ([const(axes)] if op == 'ReduceSum' else [])
    return Form(name, op, tensors, {'keepdims': 0, **({} if op == 'ReduceSum' else {'axes': axes})}, work)


def layer_norm(dims, width, bias=True):
    weights = [weight(width)] * (2 if bias else 1)
    return Form(f"layernorm_{short(dims)}{'' if bias else '_no_bias'}", 'LayerNormalization', [x(dims), *weights],
                {'axis': -1}, each_input(7))


def norm_of_nodes(name, dims, nodes, *constants):
    return Form(f'{name}_of_nodes_{short(dims)}', nodes, [x(dims), *constants], {}, each_input(7),
                results=[x(dims).shape])


def rms_nodes():
    return [('Mul', 'i0 i0', 'square', {}), ('ReduceMean', 'square', 'mean', {'axes': [-1]}),
            ('Add', 'mean i1', 'safe', {}),
            ('Sqrt', 'safe', 'root', {}), ('Div', 'i0 root', 'unit', {}), ('Mul', 'unit i2', 'o0', {})]


def layer_nodes():
    return [('ReduceMean', 'i0', 'mean', {'axes': [-1]}), ('Sub', 'i0 mean', 'centered', {}),
            ('Pow', 'centered i1', 'square', {}), ('ReduceMean', 'square', 'variance', {'axes': [-1]}),
            ('Add', 'variance i2', 'safe', {}), ('Sqrt', 'safe', 'root', {}), ('Div', 'centered root', 'unit', {}),
            ('Mul', 'unit i3', 'scaled', {}), ('Add', 'scaled i4', 'o0', {})]


def group_nodes(groups):
    return [('Reshape', 'i0 i1', 'groups', {}), ('InstanceNormalization', 'groups i2 i3', 'unit', {}),
            ('Shape', 'i0', 'shape', {}), ('Reshape', 'unit shape', 'plain', {}), ('Mul', 'plain i4', 'scaled', {}),
            ('Add', 'scaled i5', 'o0', {})]


def norm_forms():
    tiny = const(1e-5, 'float32')
    ones = [const([1.0] * 32, 'float32'), const([0.0] * 32, 'float32')]
    forms = [layer_norm('n=1 s=128 768', 768), layer_norm('n=1 s=197 192', 192), layer_norm('n=1 s=1 768', 768),
             layer_norm('n=1 s=3136 96', 96), layer_norm('n=4 s=50 1024', 1024, bias=False), layer_norm('s=64 37', 37),
             norm_of_nodes('rms', 'n=1 s=128 768', rms_nodes(), tiny, weight(768)),
             norm_of_nodes('rms', 'n=1 s=1 2048', rms_nodes(), tiny, weight(2048)),
             norm_of_nodes('layernorm', 'n=1 s=128 768', layer_nodes(), const(2.0, 'float32'), tiny,
                             weight(768), weight(768)),
             norm_of_nodes('groupnorm', 'n=1 320 h=16 w=16', group_nodes(32), const([0, 32, -1]), *ones,
                             weight(320, 1, 1), weight(320, 1, 1))]
    for dims, channels in [('n=1 64 h=56 w=56', 64), ('n=1 32 t=4000', 32), ('n=4 16 h=28 w=28', 16)]:
        forms.append(Form(f'instancenorm_{short(dims)}', 'InstanceNormalization',
                          [x(dims), weight(channels), weight(channels)], {}, each_input(7)))
    for dims, channels in [('n=1 64 h=56 w=56', 64), ('n=32 256', 256), ('n=1 37 t=1001', 37)]:
        forms.append(Form(f'batchnorm_{short(dims)}', 'BatchNormalization',
                          [x(dims), weight(channels), weight(channels), weight(channels),
                           const([1.0] * channels, 'float32')], {},
                          each_input(2)))
    forms += [Form(f'lrn_{short(dims)}', 'LRN', [x(dims)], {'size': size}, each_input(30))
              for dims, size in [('n=1 96 h=28 w=28', 5), ('n=1 64 h=56 w=56', 3)]]
    forms += [Form(f'lpnorm_{short(dims)}_{axis}', 'LpNormalization', [x(dims)], {'axis': axis, 'p': 2}, each_input(3))
              for dims, axis in [('m=256 256', -1), ('n=1 64 h=32 w=32', 1)]]
    forms.append(Form('meanvariance_1x64x56x56', 'MeanVarianceNormalization', [x('n=1 64 h=56 w=56')],
                      {'axes': [0, 2, 3]}, each_input(7)))
    return forms


def selecting():
    forms = []
    for dims, k, axis in [('m=1 50257', 50, -1), ('m=128 n=1000', 5, -1), ('m=8400 80', 1, -1), ('m=1 n=8400', 300, -1),
                          ('m=64 n=64', 64, -1), ('m=1000 n=64', 3, 0), ('k=65536', 1000, 0),
                          ('m=32 n=4096', 4096, -1), ('m=1 n=25200', 1000, -1), ('m=32 128', 8, -1)]:
        forms.append(Form(f'topk_{short(dims)}_{axis}_{k}', 'TopK', [x(dims), const([k])], {'axis': axis},
                          each_input(1),
                          outputs=2))
    for dims, axis in [('m=256 n=256', 1), ('m=256 n=256', 0), ('k=65536', 0), ('b=32 s=64 c=32', 1), ('m=1 50257', 1),
                       ('b=8 s=512', 1)]:
        forms.append(Form(f'cumsum_{short(dims)}_{axis}', 'CumSum', [x(dims), const(axis)], {}, each_input(1)))
    forms.append(Form('cumsum_reverse_256x256', 'CumSum', [x('m=256 n=256'), const(1)], {'reverse': 1, 'exclusive': 1},
                      each_input(1)))
    return forms


FORMS = [pool(op, row) for op in ('MaxPool', 'AveragePool') for row in POOLS]
FORMS += [Form(f'{op.lower()}_{short(dims)}', op, [x(dims)], {}, each_input(1)) for op, dims in [
    ('GlobalAveragePool', 'n=1 512 h=7 w=7'), ('GlobalAveragePool', 'n=1 64 h=56 w=56'),
    ('GlobalAveragePool', 'n=1 64 t=1000'),
    ('GlobalMaxPool', 'n=1 512 h=7 w=7'), ('GlobalMaxPool', 'n=1 64 h=56 w=56')]]
FORMS += [Form('maxpool_indices', 'MaxPool', [x('n=1 64 h=56 w=56')], {'kernel_shape': [2, 2], 'strides': [2, 2]},
               each_output(4), outputs=2),
          Form('maxpool_dilated', 'MaxPool', [x('n=1 64 h=56 w=56')], {'kernel_shape': [3, 3], 'dilations': [2, 2]},
               each_output(9)),
          Form('lppool_2x2', 'LpPool', [x('n=1 64 h=56 w=56')], {'kernel_shape': [2, 2], 'strides': [2, 2]},
               each_output(8))]
FORMS += [reduction(*row) for row in REDUCTIONS]
FORMS += [Form(f"{op.lower()}_{short(dims)}_{axis}", op, [x(dims)], {'axis': axis},
               each_input(2 if op == 'Hardmax' else 24))
          for op, dims, axis in SOFTMAX]
FORMS += norm_forms() + selecting()
