"""Operators that move data: transposes, joins, parts, padding, gathers and scatters, and other sizes of images."""
from form import Form, const, each_output, elements, weight, x
from reductions import short

TRANSPOSES = [
    ('m=512 n=512', (1, 0)), ('m=1024 n=128', (1, 0)), ('m=37 n=1001', (1, 0)), ('m=16384 4', (1, 0)),
    ('3 n=50000', (1, 0)),
    ('n=1 s=128 12 64', (0, 2, 1, 3)), ('n=1 12 s=128 64', (0, 2, 1, 3)), ('n=1 s=128 12 64', (0, 2, 3, 1)),
    ('n=1 12 s=128 64', (0, 1, 3, 2)),
    ('n=1 64 h=32 w=32', (0, 2, 3, 1)), ('n=1 h=32 w=32 64', (0, 3, 1, 2)), ('n=1 3 h=128 w=128', (0, 2, 3, 1)),
    ('n=1 h=128 w=128 3', (0, 3, 1, 2)),
    ('a=16 b=64 c=64', (1, 0, 2)), ('a=16 b=64 c=64', (0, 2, 1)), ('a=16 b=64 c=64', (2, 1, 0)),
    ('a=16 b=64 c=64', (2, 0, 1)), ('a=16 b=64 c=64', (1, 2, 0)),
    ('a=8 b=16 c=16 d=32', (3, 2, 1, 0)), ('n=1 h=8 7 w=8 7 32', (0, 1, 3, 2, 4, 5)),
    ('a=4 b=8 c=8 d=8 e=32', (0, 3, 1, 4, 2)),
    ('n=1 2 2 16 h=32 w=32', (0, 3, 4, 1, 5, 2)), ('n=1 s=64 3 8 32', (2, 0, 3, 1, 4)),
    ('n=1 2 58 h=28 w=28', (0, 2, 1, 3, 4)), ('1 m=256 n=256', (0, 2, 1)),
    ('a=4 b=4 c=8 d=8 e=8 f=8', (5, 3, 1, 4, 2, 0)), ('n=1 h=56 w=56 96', (0, 3, 1, 2)), ('m=100 n=300', (1, 0)),
]
CONCATS = [  # name, dims of the parts, axis
    ('channels', ['n=1 64 h=32 w=32', 'n=1 64 h=32 w=32'], 1), ('last', ['m=256 128', 'm=256 128'], 1),
    ('first', ['m=128 256', 'm=128 256'], 0), ('last_odd', ['m=1000 3', 'm=1000 61'], 1),
    ('last_ones', ['m=20000 1', 'm=20000 1'], 1), ('four', ['n=1 32 h=28 w=28'] * 4, 1),
    ('cache', ['b=1 12 p=127 64', 'b=1 12 1 64'], 2), ('sixteen', ['m=64 64'] * 16, 1),
    ('middle', ['a=64 b=1 c=128', 'a=64 b2=31 c=128'], 1),
    ('heads', ['n=1 s=64 64'] * 12, 2), ('large', ['n=1 256 h=56 w=56', 'n=1 256 h=56 w=56'], 1),
]
SPLITS = [('channels', 'n=1 128 h=32 w=32', [64, 64], 1), ('thirds', 's=128 2304', [768] * 3, 1),
          ('last_pair', 'm=20000 2', [1, 1], 1), ('first', 'm=256 n=512', None, 0),
          ('uneven', 'm=256 512', [100, 156, 256], 1), ('sixteen', 'm=64 1024', [64] * 16, 1),
          ('last_odd', 'm=1000 85', [4, 1, 80], 1)]
SLICES = [  # name, dims, starts, ends, axes, steps, shape of the result
    ('rows', 'm=512 n=512', [128], [384], [0], [1], [256, 512]),
    ('columns', 'm=512 n=512', [128], [384], [1], [1], [512, 256]),
    ('step_2_last', 'm=512 n=512', [0], [512], [1], [2], [512, 256]),
    ('step_2_first', 'm=512 n=512', [0], [512], [0], [2], [256, 512]),
    ('reverse_last', 'm=256 n=256', [-1], [-10000], [1], [-1], [256, 256]),
    ('reverse_first', 'm=256 n=256', [-1], [-10000], [0], [-1], [256, 256]),
    ('focus', 'n=1 3 h=256 w=256', [0, 1], [256, 256], [2, 3], [2, 2], [1, 3, 128, 128]),
    ('crop', 'n=1 32 h=64 w=64', [4, 4], [-4, -4], [2, 3], [1, 1], [1, 32, 56, 56]),
    ('one_row', 'n=8 s=128 768', [0], [1], [1], [1], [8, 1, 768]),
    ('half_last', 'n=1 12 s=128 64', [32], [64], [3], [1], [1, 12, 128, 32]),
    ('step_3_odd', 'm=301 n=307', [1], [300], [1], [3], [301, 100]),
]
PADS = [('zeros_image', 'n=1 64 h=32 w=32', [0, 0, 1, 1, 0, 0, 1, 1], 'constant'),
        ('reflect_image', 'n=1 32 h=64 w=64', [0, 0, 3, 3, 0, 0, 3, 3], 'reflect'),
        ('edge_image', 'n=1 32 h=64 w=64', [0, 0, 2, 2, 0, 0, 2, 2], 'edge'),
        ('rows', 'm=256 n=256', [0, 0, 64, 0], 'constant'), ('columns', 'm=256 n=256', [0, 3, 0, 5], 'constant'),
        ('right_bottom', 'n=1 64 h=56 w=56', [0, 0, 0, 0, 0, 0, 1, 1], 'constant'),
        ('reflect_sound', 'n=1 1 t=65536', [0, 0, 200, 0, 0, 200], 'reflect'),
        ('channels', 'n=1 16 h=32 w=32', [0, 8, 0, 0, 0, 8, 0, 0], 'constant')]
GATHERS = [  # name, data, indices, axis, below
    ('embedding', weight(10000, 768), 'n=1 s=128', 0), ('embedding_small', weight(1000, 64), 'n=8 s=64', 0),
    ('embedding_one', weight(5000, 768), 'n=1 s=1', 0), ('rows', x('m=1000 n=128'), 'k=300', 0),
    ('columns', x('m=256 n=512'), 'k=256', 1),
    ('middle', x('a=16 b=64 c=64'), 'k=32', 1), ('last_many', x('m=64 n=1024'), 'k=1024', 1),
    ('scalars', x('k=65536'), 'j=10000', 0), ('last_of_rows', x('m=4096 n=64'), 'k=16', 1),
]
RESIZES = [  # mode, coordinates, dims, scales, what else
    ('nearest', 'asymmetric', 'n=1 64 h=28 w=28', (2, 2), {}),
    ('nearest', 'half_pixel', 'n=1 64 h=28 w=28', (2, 2), {}),
    ('nearest', 'asymmetric', 'n=1 32 h=40 w=40', (1.5, 1.5), {'nearest_mode': 'floor'}),
    ('nearest', 'asymmetric', 'n=1 64 h=56 w=56', (0.5, 0.5), {'nearest_mode': 'floor'}),
    ('nearest', 'asymmetric', 'n=1 64 t=500', (2,), {'nearest_mode': 'floor'}),
    ('nearest', 'asymmetric', 'n=1 16 d=8 h=16 w=16', (2, 2, 2), {'nearest_mode': 'floor'}),
    ('linear', 'half_pixel', 'n=1 64 h=28 w=28', (2, 2), {}),
    ('linear', 'align_corners', 'n=1 64 h=28 w=28', (2, 2), {}),
    ('linear', 'asymmetric', 'n=1 64 h=28 w=28', (2, 2), {}), ('linear', 'half_pixel', 'n=1 21 h=16 w=16', (8, 8), {}),
    ('linear', 'half_pixel', 'n=1 3 h=224 w=224', (0.5, 0.5), {}),
    ('linear', 'half_pixel', 'n=1 3 h=100 w=150', (2.24, 1.5), {}), ('linear', 'half_pixel', 'n=1 64 t=500', (2,), {}),
    ('linear', 'half_pixel', 'n=1 8 d=8 h=16 w=16', (2, 2, 2), {}),
    ('cubic', 'half_pixel', 'n=1 3 h=64 w=64', (2, 2), {}), ('cubic', 'align_corners', 'n=1 32 h=14 w=14', (2, 2), {}),
]
TAPS = {'nearest': 1, 'linear': 2, 'cubic': 4}


def written_twice(ins, outs):
    """What is written is what is read."""
    return 2 * sum(map(elements, outs))


def free(ins, outs):
    return 0


VIEW = {'operations': free, 'touched': free}


def concat(name, parts, axis):
    return Form(f'concat_{name}', 'Concat', [x(part) for part in parts], {'axis': axis}, free)


def split(name, dims, sizes, axis):
    shape = x(dims).shape
    tensors, count = ([x(dims), const(sizes)], len(sizes)) if sizes else ([x(dims)], 2)
    shapes = [[*shape[:axis], size, *shape[axis + 1:]] for size in sizes or [shape[axis] // 2] * 2]
    return Form(f'split_{name}', 'Split', tensors, {'axis': axis}, free, outputs=count, results=shapes)


def scatter_forms():
    rows = 'm=1000 64'
    return [
        Form('scatternd_rows', 'ScatterND', [x(rows), x('k=200 1', 'int64', (0, 1000)), x('k=200 64')], {}, free),
        Form('scatternd_points', 'ScatterND', [x('m=256 n=256'), x('k=2000 2', 'int64', (0, 256)), x('k=2000')], {},
             free),
        Form('scatternd_cache', 'ScatterND', [x('b=1 s=128 768'), const([[0, 17]]), x('1 768')], {}, free),
        Form('scatterelements_last', 'ScatterElements',
             [x('m=256 n=256'), x('m=256 k=16', 'int64', (0, 256)), x('m=256 k=16')], {'axis': 1}, free),
        Form('scatterelements_first', 'ScatterElements',
             [x('m=256 n=256'), x('k=16 n=256', 'int64', (0, 256)), x('k=16 n=256')], {'axis': 0}, free),
        Form('scatterelements_add', 'ScatterElements',
             [x('m=1000 64'), x('k=4000 64', 'int64', (0, 1000)), x('k=4000 64')], {'axis': 0, 'reduction': 'add'}),
        Form('gatherelements_last', 'GatherElements', [x('m=256 n=256'), x('m=256 k=64', 'int64', (0, 256))],
             {'axis': 1}, free),
        Form('gatherelements_first', 'GatherElements', [x('m=256 n=256'), x('k=64 n=256', 'int64', (0, 256))],
             {'axis': 0}, free),
        Form('gathernd_points', 'GatherND', [x('m=256 n=256'), x('k=4000 2', 'int64', (0, 256))], {}, free),
        Form('gathernd_rows', 'GatherND', [x('m=256 n=256 64'), x('k=1000 2', 'int64', (0, 256))], {}, free,
             touched=lambda ins, outs: 2 * elements(outs[0])),
        Form('gathernd_batch', 'GatherND', [x('b=32 s=64 64'), x('b=32 1', 'int64', (0, 64))], {'batch_dims': 1}, free,
             touched=written_twice),
        Form('onehot_last', 'OneHot', [x('k=512', 'int64', (0, 128)), const([128]), const([0.0, 1.0], 'float32')],
             {'axis': -1}, free, results=[[512, 128]]),
        Form('onehot_first', 'OneHot',
             [x('n=1 h=64 w=64', 'int64', (0, 21)), const([21]), const([0.0, 1.0], 'float32')], {'axis': 1}, free,
             results=[[1, 21, 64, 64]]),
    ]


def gather(name, data, indices, axis):
    return Form(f'gather_{name}', 'Gather', [data, x(indices, 'int64', (0, data.shape[axis]))], {'axis': axis}, free,
                touched=written_twice)


def resize(mode, coordinates, dims, scales, attributes):
    taps = TAPS[mode] ** len(scales)
    shape = x(dims).shape
    result = shape[:2] + [int(size * scale) for size, scale in zip(shape[2:], scales)]
    return Form(f"resize_{mode}_{coordinates}_{short(dims)}_{'x'.join(map(str, scales))}", 'Resize',
                [x(dims), None, const([1.0, 1.0, *scales], 'float32')],
                {'mode': mode, 'coordinate_transformation_mode': coordinates, **attributes},
                free if mode == 'nearest' else each_output(2 * taps), results=[result])


def other_forms():
    shuffle = [('Reshape', 'i0 i1', 'a', {}), ('Transpose', 'a', 'b', {'perm': [0, 2, 1, 3, 4]}),
               ('Reshape', 'b i2', 'o0', {})]
    return [
        Form('expand_channel', 'Expand', [x('n=1 64 1 1'), const([1, 64, 32, 32])], {}, free),
        Form('expand_rows', 'Expand', [x('1 n=512'), const([128, 1])], {}, free),
        Form('expand_last', 'Expand', [x('m=512 1'), const([1, 256])], {}, free),
        Form('expand_heads', 'Expand', [x('b=1 8 1 s=128 64'), const([1, 8, 4, 1, 64])], {}, free),
        Form('tile_rows', 'Tile', [x('m=64 n=512'), const([4, 1])], {}, free, results=[[256, 512]]),
        Form('tile_last', 'Tile', [x('m=512 n=64'), const([1, 4])], {}, free, results=[[512, 256]]),
        Form('reshape', 'Reshape', [x('m=256 n=512'), const([-1])], {}, **VIEW, results=[[131072]]),
        Form('identity', 'Identity', [x('m=256 n=512')], {}, **VIEW),
        Form('unsqueeze', 'Unsqueeze', [x('m=256 n=512'), const([1])], {}, **VIEW),
        Form('flatten', 'Flatten', [x('n=1 512 h=14 w=14')], {}, **VIEW),
        Form('depth_to_space_dcr', 'DepthToSpace', [x('n=1 64 h=32 w=32')], {'blocksize': 2, 'mode': 'DCR'}, free),
        Form('depth_to_space_crd', 'DepthToSpace', [x('n=1 27 h=64 w=64')], {'blocksize': 3, 'mode': 'CRD'}, free),
        Form('space_to_depth', 'SpaceToDepth', [x('n=1 16 h=64 w=64')], {'blocksize': 2}, free),
        Form('channel_shuffle_of_nodes', shuffle,
             [x('n=1 116 h=28 w=28'), const([0, 2, 58, 28, 28]), const([0, 116, 28, 28])], {}, free,
             results=[[1, 116, 28, 28]]),
        Form('trilu_lower', 'Trilu', [x('m=512 n=512')], {'upper': 0}, free),
        Form('trilu_upper_batch', 'Trilu', [x('b=8 m=128 n=128'), const(1)], {'upper': 1}, free),
        Form('reversesequence', 'ReverseSequence', [x('s=64 b=8 256'), x('b=8', 'int64', (1, 65))], {}, free),
        Form('constantofshape', 'ConstantOfShape', [x('2', 'int64', (300, 301))], {}, free, results=[[300, 300]]),
        Form('range', 'Range', [const(0), x('', 'int64', (65536, 65537)), const(1)], {}, free, results=[[65536]],
             result_dtype='int64'),
             Form('eyelike', 'EyeLike', [x('m=512 n=512')], {}, free, touched=lambda ins, outs: elements(outs[0])),
        Form('shape', 'Shape', [x('n=1 64 h=56 w=56')], {}, free, touched=lambda ins, outs: 8),
        Form('size', 'Size', [x('n=1 64 h=56 w=56')], {}, free, touched=lambda ins, outs: 2),
    ]


FORMS = [Form(f"transpose_{short(dims)}_{''.join(map(str, permutation))}", 'Transpose', [x(dims)],
              {'perm': list(permutation)}, free) for dims, permutation in TRANSPOSES]
FORMS += [Form('transpose_uint8_1x128x128x3_0312', 'Transpose', [x('n=1 h=128 w=128 3', 'uint8')],
               {'perm': [0, 3, 1, 2]}, free)]
FORMS += [concat(*row) for row in CONCATS] + [split(*row) for row in SPLITS]
FORMS += [Form(f'slice_{name}', 'Slice', [x(dims), const(starts), const(ends), const(axes), const(steps)], {}, free,
               touched=written_twice, results=[shape])
          for name, dims, starts, ends, axes, steps, shape in SLICES]
FORMS += [Form(f'pad_{name}', 'Pad', [x(dims), const(pads)], {'mode': mode}, free) for name, dims, pads, mode in PADS]
FORMS += [gather(*row) for row in GATHERS] + scatter_forms() + [resize(*row) for row in RESIZES] + other_forms()
