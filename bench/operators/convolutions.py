"""Convolutions: a row each, as the networks that they come from have them."""
import math

from form import Form, weight, x

# channels in, out, kernel, image (a number: that in all dims), then what differs from: 1 group, stride 1, dilation 1,
# half of the kernel as padding.
CONV2D = [
    # pointwise
    (64, 64, 1, 56), (64, 256, 1, 56), (256, 64, 1, 56), (256, 512, 1, 56, 's2'), (1024, 256, 1, 14),
    (256, 1024, 1, 14), (512, 2048, 1, 7), (2048, 512, 1, 7), (16, 96, 1, 112), (96, 24, 1, 56), (24, 144, 1, 56),
    (320, 1280, 1, 7), (960, 160, 1, 7), (3, 16, 1, 112), (37, 61, 1, 28), (1, 1, 1, 256), (512, 1, 1, 32),
    (1, 512, 1, 32), (1280, 1000, 1, 1), (40, 10, 1, 1), (64, 256, 1, (57, 59)), (128, 128, 1, 28, 'n4'),
    # 3x3
    (3, 32, 3, 224, 's2'), (3, 64, 3, 112), (1, 16, 3, 28), (1, 32, 3, 128), (64, 64, 3, 56), (128, 128, 3, 28),
    (256, 256, 3, 14), (512, 512, 3, 7), (64, 128, 3, 56, 's2'), (128, 256, 3, 28, 's2'), (256, 512, 3, 14, 's2'),
    (32, 32, 3, 112), (16, 16, 3, 128), (8, 8, 3, 128), (4, 4, 3, 256), (2, 2, 3, 256), (1, 1, 3, 256),
    (64, 3, 3, 128), (64, 1, 3, 128), (37, 61, 3, 28), (257, 129, 3, 14), (64, 64, 3, 56, 'd2'),
    (256, 256, 3, 28, 'd2'), (256, 256, 3, 28, 'd12'), (64, 64, 3, (57, 59)), (64, 64, 3, 28, 'n4'),
    (64, 64, 3, 56, 'p0'), (128, 128, 3, (4, 400)), (128, 128, 3, (400, 4)),
    # other kernels
    (16, 32, 5, 28), (48, 128, 5, 27), (1, 6, 5, 32), (64, 64, 5, 28, 's2'), (3, 64, 7, 112, 's2'), (64, 64, 7, 28),
    (3, 96, 11, 224, 's4'), (3, 192, 16, 224, 's16 p0'), (3, 96, 4, 224, 's4 p0'), (96, 192, 2, 56, 's2 p0'),
    (160, 192, (1, 7), 17), (192, 192, (7, 1), 17), (384, 384, (1, 3), 8), (384, 384, (3, 1), 8), (64, 64, (3, 5), 28),
    (1, 64, (3, 80), (200, 80), 'p0'),
    # groups: few, many, narrow, odd
    (64, 64, 3, 56, 'g2'), (96, 192, 3, 28, 'g3'), (128, 128, 3, 56, 'g32'), (256, 256, 3, 28, 'g32'),
    (256, 256, 3, 56, 's2 g32'), (512, 512, 3, 14, 'g32'), (64, 64, 3, 56, 'g16'), (448, 448, 3, 14, 'g8'),
    (240, 240, 1, 28, 'g3'), (60, 60, 1, 28, 'g4'), (66, 66, 3, 28, 'g3'), (128, 128, 1, 28, 'g8'),
    # depthwise, and with a multiplier
    (32, 32, 3, 112, 'g32'), (96, 96, 3, 112, 's2 g96'), (144, 144, 3, 56, 'g144'), (144, 144, 3, 56, 's2 g144'),
    (384, 384, 3, 14, 'g384'), (960, 960, 3, 7, 'g960'), (576, 576, 3, 14, 's2 g576'), (120, 120, 5, 28, 'g120'),
    (72, 72, 5, 56, 's2 g72'), (672, 672, 5, 14, 's2 g672'), (96, 96, 7, 56, 'g96'), (384, 384, 7, 14, 'g384'),
    (768, 768, 7, 7, 'g768'), (256, 256, 3, 28, 'd2 g256'), (37, 37, 3, 28, 'g37'), (64, 64, (1, 9), 28, 'g64'),
    (64, 64, (9, 1), 28, 'g64'), (64, 64, 13, 28, 'g64'), (32, 64, 3, 56, 'g32'), (3, 3, 9, 224, 'g3'),
    (58, 58, 3, 28, 'n4 g58'), (40, 40, 5, (19, 45), 'g40'), (24, 24, 7, 112, 's2 g24'), (1, 1, 5, 200),
]
CONV1D = [
    (80, 512, 3, 1500), (512, 512, 3, 1500, 's2'), (1, 512, 10, 16000, 's5 p0'), (512, 512, 3, 800, 's2 p0'),
    (512, 512, 2, 400, 's2 p0'), (64, 64, 3, 1000), (64, 64, 7, 1000), (64, 64, 3, 1000, 'd4'),
    (64, 64, 3, 1000, 'd64'), (1, 16, 9, 4000), (1, 1, 15, 16000), (256, 256, 1, 500), (40, 128, 5, 300),
    (128, 128, 5, 300, 'g4'), (1, 402, 400, 16000, 's160 p0'), (37, 61, 3, 301), (32, 1, 7, 8000),
    (16, 32, 8, 4000, 's4'),
    (512, 512, 3, 800, 'g16'), (768, 768, 128, 100, 'g16'), (2, 2, 3, 16000),
    (256, 256, 31, 500, 'g256'), (512, 512, 3, 400, 'g512'), (1536, 1536, 4, 512, 'p0 g1536'),
    (64, 64, 7, 2000, 's2 g64'), (80, 80, 5, 500, 'd2 g80'),
]
CONV3D = [
    (3, 64, 3, (8, 56, 56)), (3, 64, (3, 7, 7), (8, 56, 56), 's2'), (64, 64, 3, (8, 14, 14)), (1, 16, 3, 32),
    (16, 16, 3, 32), (32, 64, 3, 16, 's2'), (64, 64, 1, (8, 28, 28)), (64, 64, (1, 3, 3), (8, 28, 28)),
    (64, 64, (3, 1, 1), (8, 28, 28)), (1, 1, 3, 32), (16, 16, 3, 16, 'd2'), (64, 64, 3, (8, 14, 14), 'g64'),
    (32, 32, 3, 16, 'g4'), (3, 96, (2, 4, 4), (8, 112, 112), 's4 p0'), (13, 27, 3, (9, 17, 15)),
]
# The padding stands in each row: o1 is an output padding of 1.
TRANSPOSED2D = [
    (64, 32, 2, 28, 's2 p0'), (256, 128, 2, 28, 's2 p0'), (128, 64, 4, 28, 's2 p1'), (512, 256, 4, 8, 's2 p1'),
    (100, 512, 4, 1, 'p0'), (64, 3, 4, 64, 's2 p1'), (21, 21, 16, 28, 's8 p4'), (21, 21, 4, 28, 's2 p1 g21'),
    (64, 64, 3, 28, 's2 p1 o1'), (64, 64, 3, 28, 'p1'), (16, 1, 2, 64, 's2 p0'), (32, 1, 9, 64, 's4 p3'),
    (64, 64, 4, 28, 's2 p1 g4'), (37, 61, 3, 15, 's2 p1'), (64, 64, 3, 28, 'p2 d2'), (256, 256, 4, 14, 's4 p0'),
]
TRANSPOSED1D = [
    (128, 64, 16, 100, 's8 p4'), (64, 32, 4, 500, 's2 p1'), (512, 256, 20, 50, 's10 p5'), (64, 1, 16, 500, 's8 p4'),
    (64, 64, 3, 500, 'p1'), (513, 1, 1024, 60, 's256 p0'),
]
TRANSPOSED3D = [(64, 32, 2, 8, 's2 p0'), (32, 16, 3, 8, 's2 p1 o1'), (16, 8, 4, 8, 's2 p1')]


def options_of(row):
    return {text[0]: int(text[1:]) for text in (row[4].split() if len(row) > 4 else [])}


def in_all_dims(size, dims):
    return size if isinstance(size, tuple) else (size,) * dims


def spelled(sizes):
    return 'x'.join(map(str, sizes)) if len(set(sizes)) > 1 or len(sizes) == 1 else f'{sizes[0]}'


def taps(size, results, kernel, stride, dilation, pad):
    """Counts the pairs of a result and an element of the kernel that do not meet the padding."""
    return sum(0 <= result * stride + tap * dilation - pad < size for result in range(results) for tap in range(kernel))


def convolution(row, dims, transposed=False):
    channels, features, kernel, image = row[:4]
    kernel, image, options = in_all_dims(kernel, dims), in_all_dims(image, dims), options_of(row)
    groups, stride, dilation = options.get('g', 1), options.get('s', 1), options.get('d', 1)
    pads = [options.get('p', dilation * (size - 1) // 2) for size in kernel]
    attributes = {'strides': [stride] * dims, 'dilations': [dilation] * dims, 'pads': pads * 2, 'group': groups,
                  'kernel_shape': list(kernel)}
    if transposed:
        attributes['output_padding'] = [options.get('o', 0)] * dims
    spatial = ' '.join(f'{name}={size}' for name, size in zip('dhw'[-dims:], image))
    shape = (channels, features // groups) if transposed else (features, channels // groups)

    def operations(ins, outs):
        # A transposed convolution is the other one with its results and its image in each other's place.
        images, results = (outs[0], ins[0]) if transposed else (ins[0], outs[0])
        pairs = [taps(*args, stride, dilation, pad) for *args, pad in zip(images[2:], results[2:], kernel, pads)]
        return 2 * ins[0][0] * channels * features // groups * math.prod(pairs)

    is_depthwise = groups > 1 and shape[1] == 1
    reason = ''
    if is_depthwise and not transposed and image[-1] // stride < 16:
        reason = 'a row of the result does not fill a vector, and a small image is mostly border'
    name = f"{'deconv' if transposed else 'conv'}{dims}d_{channels}-{features}_k{spelled(kernel)}_{spelled(image)}"
    name = '_'.join([name] + (row[4].split() if len(row) > 4 else []))
    return Form(name, 'ConvTranspose' if transposed else 'Conv',
                [x(f"n={options.get('n', 1)} {channels} {spatial}"), weight(*shape, *kernel), weight(features)],
                attributes, operations, reason=reason)


FORMS = [convolution(row, dims) for dims, rows in ((2, CONV2D), (1, CONV1D), (3, CONV3D)) for row in rows]
FORMS += [convolution(row, dims, True)
          for dims, rows in ((2, TRANSPOSED2D), (1, TRANSPOSED1D), (3, TRANSPOSED3D)) for row in rows]
