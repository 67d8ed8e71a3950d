"""Operators of ONNX in NumPy, from the formulas of the specification, element by element where that is plainest."""
import itertools
import math

import numpy as np


# ---- Detection


def non_max_suppression(boxes, scores, most=None, overlap=None, least=None, center_point_box=0):
    most = 0 if most is None else int(np.ravel(most)[0])
    overlap = 0.0 if overlap is None else float(np.ravel(overlap)[0])

    def corners(box):
        if center_point_box:
            x, y, w, h = box
            return x - w / 2, y - h / 2, x + w / 2, y + h / 2
        return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])

    def shared(a, b):
        a, b = corners(a), corners(b)
        sides = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
        both = sides[0] * sides[1]
        union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
        return both / union if union > 0 else 0.0

    rows = []
    for image, group in itertools.product(range(scores.shape[0]), range(scores.shape[1])):
        kept = []
        for k in sorted(range(scores.shape[2]), key=lambda k: (-scores[image, group, k], k)):
            if least is not None and not scores[image, group, k] > np.ravel(least)[0]:
                continue
            if len(kept) < most and all(not shared(boxes[image, k], boxes[image, other]) > overlap for other in kept):
                kept.append(k)
        rows += [[image, group, k] for k in kept]
    return np.array(rows, np.int64).reshape(-1, 3)


def unique(x, axis=None, is_sorted=True):
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = np.ravel(inverse)
    if not is_sorted:
        order = np.argsort(first)
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return [values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)]


def roi_align(x, rois, images, mode="avg", size=(1, 1), samples=0, scale=1.0, half_pixel=True):
    height, width = x.shape[2:]
    y = np.zeros((len(rois), x.shape[1]) + tuple(size), np.float64)
    for r, (roi, image) in enumerate(zip(rois.astype(np.float64), images)):
        x0, y0, x1, y1 = roi * scale - (0.5 if half_pixel else 0)
        w, h = x1 - x0, y1 - y0
        if not half_pixel:
            w, h = max(w, 1), max(h, 1)
        bins = h / size[0], w / size[1]
        counts = [samples if samples > 0 else int(math.ceil(b)) for b in bins]
        for c, p, q in itertools.product(range(x.shape[1]), range(size[0]), range(size[1])):
            found = []
            for i, j in itertools.product(range(counts[0]), range(counts[1])):
                v = y0 + p * bins[0] + (i + 0.5) * bins[0] / counts[0]
                u = x0 + q * bins[1] + (j + 0.5) * bins[1] / counts[1]
                if v < -1 or v > height or u < -1 or u > width:
                    found.append([0, 0, 0, 0])
                    continue
                v, u = min(max(v, 0), height - 1), min(max(u, 0), width - 1)
                v0, u0 = int(v), int(u)
                v1, u1 = min(v0 + 1, height - 1), min(u0 + 1, width - 1)
                a, b = v - v0, u - u0
                plane = x[image, c].astype(np.float64)
                found.append([(1 - a) * (1 - b) * plane[v0, u0], (1 - a) * b * plane[v0, u1],
                              a * (1 - b) * plane[v1, u0], a * b * plane[v1, u1]])
            if mode == "avg":
                y[r, c, p, q] = sum(map(sum, found)) / max(len(found), 1)
            else:
                y[r, c, p, q] = max(map(max, found)) if found else 0
    return y.astype(x.dtype)


def max_roi_pool(x, rois, size, scale=1.0):
    height, width = x.shape[2:]
    y = np.zeros((len(rois), x.shape[1]) + tuple(size), x.dtype)
    for r, roi in enumerate(rois):
        left, top, right, bottom = [int(math.floor(v * scale + 0.5)) for v in roi[1:].astype(float)]
        h, w = max(bottom - top + 1, 1) / size[0], max(right - left + 1, 1) / size[1]
        for p, q in itertools.product(range(size[0]), range(size[1])):
            rows = slice(min(max(top + int(math.floor(p * h)), 0), height),
                         min(max(top + int(math.ceil((p + 1) * h)), 0), height))
            columns = slice(min(max(left + int(math.floor(q * w)), 0), width),
                            min(max(left + int(math.ceil((q + 1) * w)), 0), width))
            part = x[int(roi[0]), :, rows, columns]
            if part.size:
                y[r, :, p, q] = part.max((1, 2))
    return y


def max_unpool(x, positions, kernel, strides=None, pads=None, shape=None):
    spatial = len(kernel)
    strides, pads = strides or [1] * spatial, pads or [0] * 2 * spatial
    natural = list(x.shape[:2]) + [
        (x.shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[spatial + d] for d in range(spatial)]
    flat = np.zeros(int(np.prod(natural)), x.dtype)
    flat[positions.ravel()] = x.ravel()
    y = np.zeros(natural if shape is None else shape, x.dtype)
    y[tuple(slice(0, n) for n in natural)] = flat.reshape(natural)
    return y


# ---- Signals


def dft(x, axis, length=None, inverse=False, onesided=False):
    signal = x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0)
    axis = axis if axis >= 0 else axis + x.ndim
    if inverse and onesided:
        n = 2 * (x.shape[axis] - 1) if length is None else int(length)
        return np.fft.irfft(signal, n, axis)[..., None].astype(x.dtype)
    n = x.shape[axis] if length is None else int(length)
    y = (np.fft.ifft if inverse else np.fft.fft)(signal, n, axis)
    if onesided:
        y = np.take(y, range(n // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1).astype(x.dtype)


def stft(x, step, window=None, length=None, onesided=True):
    x = x if x.ndim == 3 else x[..., None]
    n = int(length) if length is not None else len(window) if window is not None else x.shape[1]
    frames = [x[:, k:k + n] for k in range(0, x.shape[1] - n + 1, int(step))]
    y = np.stack(frames, 1)
    if window is not None:
        y = y * window[:, None]
    return dft(y, 2, None, False, onesided).astype(x.dtype)


def window(n, weights, periodic, dtype):
    n = int(n)
    angle = 2 * np.pi * np.arange(n) / (n if periodic else n - 1)
    return sum(w * np.cos(k * angle) for k, w in enumerate(weights)).astype(dtype)


def mel_weights(bins, length, rate, low, high, dtype=np.float32):
    bins, length = int(bins), int(length)

    def mel(hertz):
        return 2595 * np.log10(1 + float(hertz) / 700)

    steps = np.arange(bins + 2) * ((mel(high) - mel(low)) / (bins + 2)) + mel(low)
    corners = np.floor((length + 1) * (700 * (10 ** (steps / 2595) - 1)) / int(rate)).astype(int)
    y = np.zeros((length // 2 + 1, bins))
    for b in range(bins):
        lower, center, upper = corners[b:b + 3]
        for row in range(y.shape[0]):
            if row == center:
                y[row, b] = 1
            elif lower <= row < center:
                y[row, b] = (row - lower) / (center - lower)
            elif center < row < upper:
                y[row, b] = (upper - row) / (upper - center)
    return y.astype(dtype)


def tf_idf(x, mode, least, most, skips, starts, columns, pool, weights=None):
    rows = x if x.ndim == 2 else x[None]
    y = np.zeros((len(rows), max(columns) + 1), np.float32)
    grams, number = [], 0
    for length in range(1, len(starts) + 1):
        end = starts[length] if length < len(starts) else len(pool)
        for at in range(starts[length - 1], end, length):
            grams.append((length, list(pool[at:at + length])))
    for r, row in enumerate(rows):
        for number, (length, gram) in enumerate(grams):
            if not least <= length <= most:
                continue
            count = 0
            for step in range(1, (skips if length > 1 else 0) + 2):
                for begin in range(len(row) - (length - 1) * step):
                    count += [row[begin + k * step] for k in range(length)] == gram
            weight = 1 if weights is None else weights[number]
            y[r, columns[number]] = count if mode == "TF" else weight * (count if mode == "TFIDF" else min(count, 1))
    return y.reshape(x.shape[:-1] + (y.shape[1],))


# ---- Images


def _filter(mode, distance, a):
    s = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - s)
    if s <= 1:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1
    return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a if s < 2 else 0.0


def resize(x, scales=None, sizes=None, roi=None, axes=None, mode="nearest", transform="half_pixel",
           nearest="round_prefer_floor", a=-0.75, exclude_outside=0, extrapolation=0.0, antialias=0, policy="stretch"):
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    if scales is not None:
        factors = {axis: float(np.float32(s)) for axis, s in zip(axes, scales)}
        lengths = {axis: int(np.floor(np.float32(x.shape[axis]) * np.float32(s))) for axis, s in zip(axes, scales)}
    else:
        factors = {axis: int(s) / x.shape[axis] for axis, s in zip(axes, sizes)}
        lengths = {axis: int(s) for axis, s in zip(axes, sizes)}
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(factors.values())
            factors = {axis: one for axis in axes}
            lengths = {axis: int(math.floor(x.shape[axis] * one + 0.5)) for axis in axes}
    y, outside = x.astype(np.float64), {}
    for k, axis in enumerate(axes):
        n, m, scale = x.shape[axis], lengths[axis], factors[axis]
        exact = n * scale
        lines = []
        for i in range(m):
            half = (i + 0.5) / scale - 0.5
            if transform == "half_pixel":
                c = half
            elif transform == "pytorch_half_pixel":
                c = half if m > 1 else 0
            elif transform == "half_pixel_symmetric":
                c = n / 2 * (1 - m / exact) + half
            elif transform == "align_corners":
                c = 0 if exact == 1 else i * (n - 1) / (exact - 1)
            elif transform == "asymmetric":
                c = i / scale
            else:  # tf_crop_and_resize
                start, end = float(roi[k]), float(roi[k + len(axes)])
                c = start * (n - 1) + i * (end - start) * (n - 1) / (m - 1) if m > 1 else 0.5 * (start + end) * (n - 1)
                outside.setdefault(axis, []).append(c < 0 or c > n - 1)
            if mode == "nearest":
                at = {"round_prefer_floor": math.ceil(c - 0.5), "round_prefer_ceil": math.floor(c + 0.5),
                      "floor": math.floor(c), "ceil": math.ceil(c)}[nearest]
                taps = [(at, 1.0)]
            else:
                reach = 1 if mode == "linear" else 2
                shrink = min(scale, 1.0) if antialias else 1.0
                left = math.ceil(c) - 1
                first = math.floor(-reach / shrink) + 1
                taps = [(left + j, _filter(mode, (left + j - c) * shrink, a)) for j in range(first, 2 - first)]
                if exclude_outside:
                    taps = [(p, w) for p, w in taps if 0 <= p < n]
                if exclude_outside or antialias:
                    total = sum(w for _, w in taps)
                    taps = [(p, w / total) for p, w in taps]
            lines.append(sum(np.take(y, min(max(p, 0), n - 1), axis) * w for p, w in taps))
        y = np.stack(lines, axis)
    for axis, flags in outside.items():
        index = [slice(None)] * x.ndim
        index[axis] = np.array(flags)
        y[tuple(index)] = extrapolation
    return np.trunc(y).astype(x.dtype) if x.dtype.kind in "iu" else y.astype(x.dtype)


def grid_sample(x, grid, mode="linear", padding="zeros", align=0):
    dims = x.shape[2:]
    y = np.zeros(x.shape[:2] + grid.shape[1:-1], np.float64)

    def reflect(c, n):
        low, high = (0, n - 1) if align else (-0.5, n - 0.5)
        if high <= low:
            return low
        while c < low or c > high:
            c = 2 * low - c if c < low else 2 * high - c
        return c

    for image in range(x.shape[0]):
        for place in itertools.product(*[range(n) for n in grid.shape[1:-1]]):
            axes = []
            for d, n in enumerate(dims):
                g = float(grid[(image,) + place][len(dims) - 1 - d])
                c = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2
                if mode == "nearest":  # halves go to even pixels of a plane, and away from 0 in a volume
                    c = round(c) if len(dims) != 3 else math.copysign(math.floor(abs(c) + 0.5), c)
                if padding == "border" and mode != "cubic":  # cubic taps read the border's pixels each, as in torch
                    c = min(max(c, 0), n - 1)
                if padding == "reflection":
                    c = reflect(c, n)
                left = math.floor(c)
                if mode == "nearest":
                    axes.append([(round(c), 1.0)])
                elif mode == "linear":
                    axes.append([(left, left + 1 - c), (left + 1, c - left)])
                else:
                    axes.append([(left + j, _filter("cubic", left + j - c, -0.75)) for j in (-1, 0, 1, 2)])
            total = 0
            for taps in itertools.product(*axes):
                index, inside = [], True
                for (p, _), n in zip(taps, dims):
                    if padding == "zeros":
                        inside = inside and 0 <= p < n
                    if padding == "reflection":
                        p = round(reflect(p, n))
                    index.append(min(max(p, 0), n - 1))
                if inside:
                    total = total + np.prod([w for _, w in taps]) * x[(image, slice(None)) + tuple(index)].astype(float)
            y[(image, slice(None)) + place] = total
    return y.astype(x.dtype)


def affine_grid(theta, size, align=0):
    dims = [int(n) for n in size[2:]]
    steps = [np.linspace(-1, 1, n) if align and n > 1 else np.zeros(1) if align else (2 * np.arange(n) + 1) / n - 1
             for n in dims]
    mesh = np.meshgrid(*steps, indexing="ij")
    points = np.stack(mesh[::-1] + [np.ones(dims)], -1)
    return np.einsum("nij,...j->n...i", theta.astype(float), points).astype(theta.dtype)


def col2im(x, image, block, strides=None, pads=None, dilations=None):
    image, block = [int(n) for n in image], [int(n) for n in block]
    spatial = len(image)
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    counts = [(image[d] + pads[d] + pads[spatial + d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1
              for d in range(spatial)]
    channels = x.shape[1] // int(np.prod(block))
    y = np.zeros([x.shape[0], channels] + image, np.float64)
    columns = x.reshape([x.shape[0], channels] + block + counts)
    for place in itertools.product(*[range(n) for n in block]):
        for at in itertools.product(*[range(n) for n in counts]):
            to = [at[d] * strides[d] - pads[d] + place[d] * dilations[d] for d in range(spatial)]
            if all(0 <= to[d] < image[d] for d in range(spatial)):
                y[(slice(None), slice(None)) + tuple(to)] += columns[(slice(None), slice(None)) + place + at]
    return y.astype(x.dtype)


def center_crop_pad(x, shape, axes=None):
    for axis, n in zip(range(x.ndim) if axes is None else axes, [int(n) for n in shape]):
        have = x.shape[axis]
        if n < have:
            x = np.take(x, range((have - n) // 2, (have - n) // 2 + n), axis)
        else:
            width = [(0, 0)] * x.ndim
            width[axis] = ((n - have) // 2, n - have - (n - have) // 2)
            x = np.pad(x, width)
    return x


def deform_conv(x, w, offset, bias=None, mask=None, strides=None, pads=None, dilations=None, group=1, offset_group=1):
    spatial = x.ndim - 2
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    kernel, out = w.shape[2:], offset.shape[2:]
    places = list(itertools.product(*[range(n) for n in kernel]))
    y = np.zeros((x.shape[0], w.shape[0]) + out, np.float64)
    if bias is not None:
        y += bias.reshape((1, -1) + (1,) * spatial)

    def sample(plane, at):
        total = 0.0
        for corner in itertools.product((0, 1), repeat=spatial):
            index = [math.floor(c) + k for c, k in zip(at, corner)]
            if all(0 <= p < n for p, n in zip(index, plane.shape)):
                total += plane[tuple(index)] * np.prod([1 - abs(c - p) for c, p in zip(at, index)])
        return total

    for image, channel in itertools.product(range(x.shape[0]), range(x.shape[1])):
        shared = channel * offset_group // x.shape[1]
        for at in itertools.product(*[range(n) for n in out]):
            for k, place in enumerate(places):
                row = shared * len(places) + k
                moved = [at[d] * strides[d] - pads[d] + place[d] * dilations[d]
                         + float(offset[(image, row * spatial + d) + at]) for d in range(spatial)]
                value = sample(x[image, channel].astype(float), moved)
                if mask is not None:
                    value *= float(mask[(image, row) + at])
                per_group = w.shape[1]
                first = channel // per_group * (w.shape[0] // group)
                for o in range(first, first + w.shape[0] // group):
                    y[(image, o) + at] += value * w[(o, channel % per_group) + place]
    return y.astype(x.dtype)


# ---- Windows of pools


def pool(x, kind, kernel, strides=None, pads=None, dilations=None, ceil=False, auto_pad="NOTSET", include=False, p=2):
    spatial = len(kernel)
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, list(pads or [0] * 2 * spatial)
    reach = [(kernel[d] - 1) * dilations[d] + 1 for d in range(spatial)]
    out = []
    for d, n in enumerate(x.shape[2:]):
        if auto_pad.startswith("SAME"):
            out.append(-(-n // strides[d]))
            total = max((out[d] - 1) * strides[d] + reach[d] - n, 0)
            pads[d] = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            pads[spatial + d] = total - pads[d]
            continue
        room = n + pads[d] + pads[spatial + d] - reach[d]
        count = (-(-room // strides[d]) if ceil else room // strides[d]) + 1
        if ceil and (count - 1) * strides[d] >= n + pads[d]:
            count -= 1  # windows begin inside of the image or the pads before it
        out.append(count)
    y = np.zeros(x.shape[:2] + tuple(out), np.float64)
    for at in itertools.product(*[range(n) for n in out]):
        found, size = [], 0
        for place in itertools.product(*[range(k) for k in kernel]):
            index = [at[d] * strides[d] - pads[d] + place[d] * dilations[d] for d in range(spatial)]
            inside = all(0 <= index[d] < x.shape[d + 2] for d in range(spatial))
            size += inside or (include and all(index[d] < x.shape[d + 2] + pads[spatial + d] for d in range(spatial)))
            if inside:
                found.append(x[(slice(None), slice(None)) + tuple(index)].astype(float))
        if kind == "average":
            value = sum(found) / size
        elif kind == "max":
            value = np.max(found, 0)
        else:
            value = sum(abs(v) ** p for v in found) ** (1 / p)
        y[(slice(None), slice(None)) + at] = value
    return y.astype(x.dtype)


# ---- Steps of optimizers, for variables, gradients and what follows them


def adagrad(rate, count, values, decay=0.0, norm=0.0, epsilon=1e-6):
    n = len(values) // 3
    results = []
    for x, g, h in zip(values[:n], values[n:2 * n], values[2 * n:]):
        g = norm * x + g
        h = h + g * g
        results.append((x - rate / (1 + count * decay) * g / (np.sqrt(h) + epsilon), h))
    return [np.asarray(r[k], np.float32) for k in range(2) for r in results]


def adam(rate, count, values, alpha=0.9, beta=0.999, norm=0.0, post=0.0, epsilon=1e-6):
    n = len(values) // 4
    results = []
    for k in range(n):
        x, g, v, h = (values[k + n * j].astype(float) for j in range(4))
        g = norm * x + g
        v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        r = rate * np.sqrt(1 - beta ** int(count)) / (1 - alpha ** int(count)) if count > 0 else rate
        results.append(((1 - post) * (x - r * v / (np.sqrt(h) + epsilon)), v, h))
    return [np.asarray(r[k], np.float32) for k in range(3) for r in results]


def momentum(rate, count, values, alpha, beta, mode, norm=0.0):
    n = len(values) // 3
    results = []
    for x, g, v in zip(values[:n], values[n:2 * n], values[2 * n:]):
        g = norm * x + g
        v = alpha * v + (beta if count > 0 else 1) * g
        results.append((x - rate * (v if mode == "standard" else g + alpha * v), v))
    return [np.asarray(r[k], np.float32) for k in range(2) for r in results]


# ---- Random numbers


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # the authors' test vector


def uniform(shape, seed, low, high, dtype):
    bits = int(np.float32(seed).view(np.int32)) & 0xFFFFFFFFFFFFFFFF
    y = []
    for i in range(int(np.prod(shape))):
        words = philox([i, 0, 0, 0], [bits & 0xFFFFFFFF, bits >> 32])
        y.append((words[0] * 2**21 + words[1] // 2**11) / 2**53 if dtype == np.float64 else words[0] // 2**8 / 2**24)
    return (low + np.array(y) * (high - low)).reshape(shape).astype(dtype)
