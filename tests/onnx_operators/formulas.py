"""Results by formulas, for operators of which ONNX Runtime runs some dtypes only. Each is called behind the node that it
describes."""
from fractions import Fraction
from itertools import product
from math import ceil, floor

from draw import is_float, limits_of, size_of


def places(shape):
    return product(*(range(dim) for dim in shape))


def flat(place, shape):
    at = 0
    for index, dim in zip(place, shape):
        at = at * dim + index
    return at


def wrapped(dtype, number):
    """An integer as its dtype holds it."""
    if is_float(dtype):
        return number
    low, high = limits_of(dtype)
    return (number - low) % (high - low + 1) + low


def moved(g, x, shape, source, otherwise=None):
    """Each element is the one of x at source(place), or `otherwise` where that is None."""
    taken = [source(place) for place in places(shape)]
    g.expect(x.dtype, shape, [otherwise if at is None else x.data[flat(at, x.shape)] for at in taken])


def nothing(dtype):
    return "" if dtype == "string" else False if dtype == "bool" else 0


def prelu(g, x, slope):
    if g.is_wild:
        return  # float16 overflows
    def one(place):
        near = [index if dim > 1 else 0 for index, dim in zip(place[x.rank - slope.rank:], slope.shape)]
        number = x.data[flat(place, x.shape)]
        return number if number >= 0 else wrapped(x.dtype, number * slope.data[flat(near, slope.shape)])
    g.expect(x.dtype, x.shape, [one(place) for place in places(x.shape)])


def trilu(g, x, k, upper):
    inside = (lambda row, column: column - row >= k) if upper else (lambda row, column: column - row <= k)
    moved(g, x, x.shape, lambda place: place if inside(*place[-2:]) else None, nothing(x.dtype))


def depth_to_space(g, x, block, mode):
    count, channels, height, width = x.shape
    inner = channels // (block * block)
    def source(place):
        n, c, h, w = place
        spot = h % block * block + w % block
        return n, spot * inner + c if mode == "DCR" else c * block * block + spot, h // block, w // block
    moved(g, x, [count, inner, height * block, width * block], source)


def space_to_depth(g, x, block):
    count, channels, height, width = x.shape
    def source(place):
        n, c, h, w = place
        spot = c // channels
        return n, c % channels, h * block + spot // block, w * block + spot % block
    moved(g, x, [count, channels * block * block, height // block, width // block], source)


def center_crop_pad(g, x, axes, sizes):
    shape = list(x.shape)
    for axis, size in zip(axes, sizes):
        shape[axis] = size
    first = [(dim - size) // 2 if dim >= size else -((size - dim) // 2) for dim, size in zip(x.shape, shape)]
    def source(place):
        at = [index + start for index, start in zip(place, first)]
        return at if all(0 <= index < dim for index, dim in zip(at, x.shape)) else None
    moved(g, x, shape, source, nothing(x.dtype))


def scatter(g, x, indices, updates, axis):
    data = list(x.data)
    for place in places(indices.shape):
        at = list(place)
        at[axis] = indices.data[flat(place, indices.shape)] % x.shape[axis]
        data[flat(at, x.shape)] = updates.data[flat(place, indices.shape)]
    g.expect(x.dtype, x.shape, data)


def one_hot(g, indices, depth, values, axis):
    axis %= indices.rank + 1
    shape = indices.shape[:axis] + [depth] + indices.shape[axis:]
    def one(place):
        index = int(indices.data[flat(place[:axis] + place[axis + 1:], indices.shape)])
        return values.data[1 if -depth <= index < depth and index % depth == place[axis] else 0]
    g.expect(values.dtype, shape, [one(place) for place in places(shape)])


def global_lp_pool(g, x, p):
    if g.is_wild:
        return  # infinities, and numbers whose powers overflow
    inner = size_of(x.shape[2:])
    sums = [sum(abs(number) ** p for number in x.data[i * inner:(i + 1) * inner]) for i in range(size_of(x.shape[:2]))]
    g.expect(x.dtype, x.shape[:2] + [1] * (x.rank - 2), [total ** (1 / p) for total in sums])


def det(g, x):
    if g.is_wild:
        return  # infinities
    n = x.shape[-1]
    def determinant(rows):
        if not rows:
            return Fraction(1)
        return sum((-1) ** k * rows[0][k] * determinant([row[:k] + row[k + 1:] for row in rows[1:]]) for k in range(len(rows)))
    matrices = [[Fraction(number) for number in x.data[i * n * n:(i + 1) * n * n]] for i in range(size_of(x.shape[:-2]))]
    g.expect(x.dtype, x.shape[:-2], [float(determinant([m[r * n:(r + 1) * n] for r in range(n)])) for m in matrices])


def max_roi_pool(g, x, rois, pooled, scale):
    _, channels, height, width = x.shape
    result = []
    for r in range(rois.shape[0]):
        image, *corners = rois.data[r * 5:r * 5 + 5]
        left, top, right, bottom = [floor(abs(corner * scale) + 0.5) for corner in corners]  # corners are not negative
        size = [max(bottom - top + 1, 1), max(right - left + 1, 1)]
        def window(i, k, first, limit):
            low, high = floor(i * size[k] / pooled[k]) + first, ceil((i + 1) * size[k] / pooled[k]) + first
            return range(min(max(low, 0), limit), min(max(high, 0), limit))
        for c, i, j in product(range(channels), range(pooled[0]), range(pooled[1])):
            rows, columns = window(i, 0, top, height), window(j, 1, left, width)
            result.append(max([x.data[flat((int(image), c, h, w), x.shape)] for h in rows for w in columns], default=0.0))
    g.expect(x.dtype, [rois.shape[0], channels] + list(pooled), result)


def roi_align(g, x, rois, images, attributes):
    """The mean of samples; `mode` max is not written down in a formula that all agree on."""
    if attributes.get("mode", "avg") != "avg":
        return
    _, channels, height, width = x.shape
    out = [attributes.get("output_height", 1), attributes.get("output_width", 1)]
    scale = attributes.get("spatial_scale", 1.0)
    default = "half_pixel" if g.opset >= 16 else "output_half_pixel"
    is_half = attributes.get("coordinate_transformation_mode", default) == "half_pixel"
    def sample(image, c, y, x_):
        if y < -1 or y > height or x_ < -1 or x_ > width:
            return 0.0
        y, x_ = max(y, 0), max(x_, 0)
        corners = []
        for at, limit in ((y, height), (x_, width)):
            low = min(floor(at), limit - 1)
            share = 0.0 if low == limit - 1 else at - low
            corners.append([(low, 1 - share), (min(low + 1, limit - 1), share)])
        return sum(a * b * x.data[flat((image, c, h, w), x.shape)] for (h, a) in corners[0] for (w, b) in corners[1])
    result = []
    for r in range(rois.shape[0]):
        left, top, right, bottom = [corner * scale - (0.5 if is_half else 0.0) for corner in rois.data[r * 4:r * 4 + 4]]
        size = [bottom - top, right - left]
        if not is_half:
            size = [max(extent, 1.0) for extent in size]
        step = [extent / count for extent, count in zip(size, out)]
        ratio = attributes.get("sampling_ratio", 0)
        counts = [ratio or ceil(extent) for extent in step]
        for c, i, j in product(range(channels), range(out[0]), range(out[1])):
            samples = [sample(images.data[r], c, top + step[0] * (i + (a + 0.5) / counts[0]), left + step[1] * (j + (b + 0.5) / counts[1]))
                       for a in range(counts[0]) for b in range(counts[1])]
            result.append(sum(samples) / max(len(samples), 1))
    g.expect(x.dtype, [rois.shape[0], channels] + out, result)


def col2im(g, x, image, block, strides, dilations, pads):
    batch, columns, count = x.shape
    channels = columns // size_of(block)
    steps = [(image[i] + pads[i] + pads[i + 2] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    shape = [batch, channels] + list(image)
    result = [0.0] * size_of(shape)
    for n, c, u, v, i, j in product(range(batch), range(channels), range(block[0]), range(block[1]), range(steps[0]), range(steps[1])):
        h, w = i * strides[0] - pads[0] + u * dilations[0], j * strides[1] - pads[1] + v * dilations[1]
        if 0 <= h < image[0] and 0 <= w < image[1]:
            number = x.data[flat((n, (c * block[0] + u) * block[1] + v, i * steps[1] + j), x.shape)]
            result[flat((n, c, h, w), shape)] += number
    if not g.is_wild:
        g.expect(x.dtype, shape, result)


def string_normalizer(g, x, attributes):
    """Of words of ASCII."""
    folded = (lambda word: word) if attributes.get("is_case_sensitive") else str.lower
    stops = [folded(word) for word in attributes.get("stopwords", [])]
    action = {"LOWER": str.lower, "UPPER": str.upper}.get(attributes.get("case_change_action"), lambda word: word)
    kept = [action(word) for word in x.data if folded(word) not in stops] or [""]
    g.expect("string", x.shape[:-1] + [len(kept)], kept)
