"""Products, convolutions, pools, images, recurrent layers, signals and attention."""
from draw import FLOATS, Operand, Unfit, size_of
import formulas
import wire

LOOSE = {"float16": (2e-2, 8e-2), "float32": (1e-3, 1e-3), "float64": (1e-6, 1e-6)}


def matmul(g):
    dtype = g.one_of(FLOATS + ["int32", "int64", "uint32", "float32"])
    m, k, n = g.dim(), g.dim(), g.dim()
    form = g.integer(0, 5)
    batch = g.shape(0, 2)
    left, right = batch + [m, k], g.partner(batch) + [k, n]
    if form == 0:
        left = [k]
    if form == 1:
        right = [k]
    if form == 2:
        left, right = [k], [k]
    g.node([g.tensor(dtype, left, "small"), g.tensor(dtype, right, "small")], tolerance=LOOSE.get(dtype))


def gemm(g):
    dtype = g.one_of(FLOATS)
    m, k, n = g.dim(), g.dim(), g.dim()
    flip = [g.integer(0, 1), g.integer(0, 1)]
    inputs = [g.tensor(dtype, [k, m] if flip[0] else [m, k], "small"), g.tensor(dtype, [n, k] if flip[1] else [k, n], "small")]
    if g.opset < 11 or g.chance(0.7):
        inputs.append(g.tensor(dtype, g.one_of([[m, n], [n], [1, n], [m, 1], [], [1], [1, 1]]), "small"))
    attributes = g.maybe(0.4, alpha=0.5, beta=2.0)
    attributes |= {key: value for key, value in zip(("transA", "transB"), flip) if value or g.chance(0.3)}
    g.node(inputs, tolerance=LOOSE[dtype], **attributes)


def einsum(g):
    letters = {letter: g.integer(1, 4) for letter in "ijkb"}
    forms = ["ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "i,i->", "i,j->ij", "ij->ji", "ij->i", "ij->", "ii->i", "ii",
             "ij,j", "...ij,...jk->...ik", "bij,bjk", "ijk->kji", "...i->...", "ij,ij->ij", "ij,jk,kb->ib", " i j -> j i"]
    form = g.one_of(forms)
    dtype = g.one_of(["float32", "float64", "int32", "int64", "float32"])
    extra = g.shape(0, 2, 0)
    operands = []
    for part in form.split("->")[0].split(","):
        shape = []
        for letter in part.strip().replace("...", "."):
            shape += extra if letter == "." else [] if letter == " " else [letters[letter]]
        operands.append(g.tensor(dtype, shape, "small"))
    g.node(operands, equation=form, tolerance=LOOSE.get(dtype))


def window(g, rank, dtype=None, most=6):
    """Attributes of a window over `rank` dims, with the dims of an operand that it fits."""
    kernel = [g.integer(1, 3) for _ in range(rank)]
    attributes = {"kernel_shape": kernel}
    strides = [g.integer(1, 3) for _ in range(rank)] if g.chance(0.5) else [1] * rank
    dilations = [g.integer(1, 2) for _ in range(rank)]
    pads = [0] * (2 * rank)
    mode = g.one_of(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if strides != [1] * rank or g.chance(0.3):
        attributes["strides"] = strides
    if mode != "NOTSET":
        attributes["auto_pad"] = mode
    elif g.chance(0.6):
        pads = [g.integer(0, kernel[i % rank] - 1) for i in range(2 * rank)]
        attributes["pads"] = pads
    return kernel, strides, dilations, pads, attributes, mode


def extents(g, kernel, dilations, pads):
    rank = len(kernel)
    least = [max(1, (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + rank]) for i in range(rank)]
    return [g.integer(low, low + 4) for low in least]


def conv(g):
    rank = g.one_of([1, 2, 2, 2, 3])
    kernel, strides, dilations, pads, attributes, mode = window(g, rank)
    if g.chance(0.3):
        attributes["dilations"] = dilations
    else:
        dilations = [1] * rank
    group = g.integer(1, 3)
    inner, outer = g.integer(1, 3), g.integer(1, 3) * group
    if group > 1 or g.chance(0.3):
        attributes["group"] = group
    dtype = g.one_of(["float32", "float32", "float32", "float16", "float64"])
    shape = [g.dim(), inner * group] + extents(g, kernel, dilations, pads)
    weight = g.tensor(dtype, [outer, inner] + kernel, "small", g.chance(0.7))
    if g.chance(0.3):
        del attributes["kernel_shape"]
    inputs = [g.tensor(dtype, shape, "small"), weight]
    if g.chance(0.5):
        inputs.append(g.tensor(dtype, [outer], "small"))
    g.node(inputs, tolerance=LOOSE[dtype], **attributes)


def conv_transpose(g):
    rank = g.one_of([1, 2, 2, 3])
    kernel, strides, dilations, pads, attributes, mode = window(g, rank)
    if g.chance(0.3):
        attributes["dilations"] = dilations
    else:
        dilations = [1] * rank
    group = g.integer(1, 2)
    inner, outer = g.integer(1, 3) * group, g.integer(1, 3)
    if group > 1 or g.chance(0.3):
        attributes["group"] = group
    dtype = g.one_of(["float32", "float32", "float32", "float64"])
    shape = [g.dim(), inner] + [g.integer(1, 5) for _ in kernel]
    out = [(shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + rank] for i in range(rank)]
    if min(out) < 1:
        raise Unfit
    if g.chance(0.3) and "strides" in attributes:
        attributes["output_padding"] = [g.integer(0, max(strides[i], dilations[i]) - 1) for i in range(rank)]
    elif g.chance(0.15) and mode == "NOTSET":
        attributes["output_shape"] = [shape[2 + i] * strides[i] for i in range(rank)]
        attributes.pop("pads", None)
        if any((shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 < shape[2 + i] * strides[i] for i in range(rank)):
            raise Unfit
    inputs = [g.tensor(dtype, shape, "small"), g.tensor(dtype, [inner, outer] + kernel, "small", g.chance(0.7))]
    if g.chance(0.5):
        inputs.append(g.tensor(dtype, [outer * group], "small"))
    g.node(inputs, tolerance=LOOSE[dtype], **attributes)


def pool(count_since=None, dtypes=FLOATS, **more):
    def build(g):
        rank = g.one_of([1, 2, 2, 2, 3])
        kernel, strides, dilations, pads, attributes, mode = window(g, rank)
        has_dilations = g.chance(0.3) and g.opset >= more.get("dilations", 99)
        if has_dilations:
            attributes["dilations"] = dilations
        else:
            dilations = [1] * rank
        if g.opset >= more.get("ceil", 99) and g.chance(0.4) and mode == "NOTSET":
            attributes["ceil_mode"] = 1
        if g.op == "AveragePool":
            attributes |= g.maybe(0.5, count_include_pad=g.integer(0, 1))
        if g.op == "LpPool":
            attributes |= g.maybe(0.6, p=g.integer(1, 3))
        count = 1
        if g.op == "MaxPool" and g.opset >= 8:
            count = g.integer(1, 2)
            if count == 2:
                attributes |= g.maybe(0.4, storage_order=g.integer(0, 1))
        dtype = g.one_of(dtypes)
        if g.op == "MaxPool" and g.opset >= 12 and g.chance(0.15):
            dtype = g.one_of(["int8", "uint8"])
        g.node([g.tensor(dtype, [g.dim(), g.dim()] + extents(g, kernel, dilations, pads), "small" if count == 1 else "fine")],
               count=count, tolerance=LOOSE.get(dtype), **attributes)
    return build


def global_pool(g):
    shape = [g.dim(), g.dim()] + g.shape(1, 3, 0)
    x, attributes = g.tensor(g.one_of(FLOATS), shape), g.maybe(0.6, p=g.integer(1, 3)) if g.op == "GlobalLpPool" else {}
    g.node([x], tolerance=(1e-2, 1e-2), **attributes)
    if g.op == "GlobalLpPool":
        formulas.global_lp_pool(g, x, attributes.get("p", 2))


def max_unpool(g):
    kernel = [g.integer(1, 2) for _ in range(2)]
    shape = [g.integer(1, 2), g.integer(1, 2)] + [g.integer(1, 3) for _ in kernel]
    out = [shape[2 + i] * kernel[i] for i in range(2)]
    plane = size_of(out)
    data = []
    for image in range(shape[0] * shape[1]):
        spots = g.random.sample(range(plane), shape[2] * shape[3])
        data += [spot + image * plane for spot in spots]
    g.node([g.tensor("float32", shape), g.given("int64", shape, data)], kernel_shape=kernel, strides=kernel)


def resize(g):
    rank = g.one_of([1, 2, 3, 4, 4])
    shape = [g.integer(1, 5) for _ in range(rank)]
    if rank == 4 and g.chance(0.6):
        scaled = [2, 3]
    else:
        scaled = list(range(rank)) if g.chance(0.4) else [rank - 1]
    mode = g.one_of(["nearest", "linear", "cubic"])
    attributes = {"mode": mode} if mode != "nearest" or g.chance(0.5) else {}
    dtype = g.one_of(["float32", "float32", "uint8", "int8", "float16", "float64", "int32"] if mode == "nearest" else
                     ["float32", "float32", "float64", "float16"])
    targets = [g.integer(1, 8) if i in scaled else shape[i] for i in range(rank)]
    x = g.tensor(dtype, shape, "small")
    if g.opset >= 11:
        ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
        if g.opset >= 19:
            ways.append("half_pixel_symmetric")
        way = g.one_of(ways)
        if way != "half_pixel" or g.chance(0.3):
            attributes["coordinate_transformation_mode"] = way
        if mode == "nearest":
            attributes |= g.maybe(0.6, nearest_mode=g.one_of(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
        if mode == "cubic":
            attributes |= g.maybe(0.5, cubic_coeff_a=-0.5, exclude_outside=1)
    inputs = [x]
    if g.opset < 11:
        scales = [targets[i] / shape[i] for i in range(rank)]
        if any(int(shape[i] * scales[i]) != targets[i] for i in range(rank)):
            raise Unfit
        return g.node([x, g.given("float32", [rank], scales, g.chance(0.8))], **attributes)
    roi = ""
    axes = list(range(rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = scaled
        attributes["axes"] = [a - rank if g.chance(0.3) else a for a in axes]
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        cut = [targets[a] != shape[a] for a in axes]  # ONNX Runtime does not crop an axis that keeps its size
        starts = [g.integer(0, 4) / 16 if is_cut else 0.0 for is_cut in cut]
        ends = [start + g.integer(4, 11) / 16 if is_cut else 1.0 for start, is_cut in zip(starts, cut)]
        roi = g.given("float32", [2 * len(axes)], starts + ends, True)
        attributes |= g.maybe(0.5, extrapolation_value=-2.5)
    if g.opset >= 18 and g.chance(0.25) and mode != "nearest":
        attributes["antialias"] = 1
    if g.chance(0.5):
        scales = [targets[a] / shape[a] if a in scaled else 1.0 for a in axes]
        g.node([x, roi, g.given("float32", [len(axes)], scales, g.chance(0.8))], tolerance=LOOSE.get(dtype), **attributes)
    else:
        if g.opset >= 18 and g.chance(0.25):
            attributes["keep_aspect_ratio_policy"] = g.one_of(["stretch", "not_larger", "not_smaller"])
        g.node([x, roi, "", g.ints([targets[a] for a in axes])], tolerance=LOOSE.get(dtype), **attributes)


def upsample(g):
    g.opset = min(g.opset, 9)
    shape = [1, g.integer(1, 3), g.integer(1, 5), g.integer(1, 5)]
    scales = [1.0, 1.0, float(g.integer(1, 3)), g.one_of([1.0, 1.5, 2.0])]
    x = g.tensor("float32", shape)
    attributes = {"mode": g.one_of(["nearest", "linear"])}
    if g.opset < 9:
        return g.node([x], scales=scales, **attributes)
    g.node([x, g.given("float32", [4], scales, True)], tolerance=(1e-3, 1e-3), **attributes)


def grid_coordinate(g):
    """One between pixels and outside of them, or halfway between two."""
    return g.one_of([-1.0, -0.5, 0.0, 0.5, 1.0]) if g.chance(0.1) else g.integer(-150, 150) / 101


def grid_sample(g):
    rank = g.one_of([2, 2, 3]) if g.opset >= 20 else 2
    shape = [g.integer(1, 2), g.integer(1, 3)] + [g.integer(1, 5) for _ in range(rank)]
    out = [shape[0]] + [g.integer(1, 4) for _ in range(rank)] + [rank]
    names = ["linear", "nearest"] + (["cubic"] if rank == 2 else []) if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    attributes = g.maybe(0.7, mode=g.one_of(names), padding_mode=g.one_of(["zeros", "border", "reflection"]),
                         align_corners=g.integer(0, 1))
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", out, lambda: grid_coordinate(g))],
           tolerance=(1e-2, 1e-2), **attributes)


def affine_grid(g):
    rank = g.one_of([2, 3])
    count = g.integer(1, 3)
    size = [count, g.integer(1, 3)] + [g.integer(1, 4) for _ in range(rank)]
    dtype = g.one_of(["float32", "float64"])
    g.node([g.tensor(dtype, [count, rank, rank + 1], "small"), g.ints(size)], tolerance=LOOSE[dtype],
           **g.maybe(0.6, align_corners=g.integer(0, 1)))


def roi_align(g):
    shape = [g.integer(1, 2), g.integer(1, 3), g.integer(3, 6), g.integer(3, 6)]
    count = g.integer(0 if g.chance(0.05) else 1, 4)
    rois = []
    for _ in range(count):
        x, y = g.integer(0, 8) / 4, g.integer(0, 8) / 4
        rois += [x, y, x + g.integer(1, 16) / 4, y + g.integer(1, 16) / 4]
    attributes = g.maybe(0.6, output_height=g.integer(1, 3), output_width=g.integer(1, 3), sampling_ratio=g.integer(0, 3),
                         spatial_scale=g.one_of([0.5, 1.0, 0.25]), mode=g.one_of(["avg", "max"]))
    if g.opset >= 16:
        attributes |= g.maybe(0.5, coordinate_transformation_mode=g.one_of(["half_pixel", "output_half_pixel"]))
    dtype = g.one_of(["float32", "float32", "float64"])
    inputs = [g.tensor(dtype, shape, "fine"), g.given(dtype, [count, 4], rois),
              g.given("int64", [count], [g.integer(0, shape[0] - 1) for _ in range(count)])]
    g.node(inputs, tolerance=(1e-3, 1e-3), **attributes)
    formulas.roi_align(g, *inputs, attributes)


def max_roi_pool(g):
    shape = [g.integer(1, 2), g.integer(1, 3), g.integer(3, 6), g.integer(3, 6)]
    rois = []
    count = g.integer(1, 4)
    for _ in range(count):
        x, y = g.integer(0, 3), g.integer(0, 3)
        rois += [g.integer(0, shape[0] - 1), x, y, x + g.integer(0, 3), y + g.integer(0, 3)]
    inputs = [g.tensor("float32", shape, "fine"), g.given("float32", [count, 5], [float(v) for v in rois])]
    pooled, scale = [g.integer(1, 3), g.integer(1, 3)], g.maybe(0.5, spatial_scale=g.one_of([0.5, 1.0]))
    g.node(inputs, pooled_shape=pooled, **scale)
    formulas.max_roi_pool(g, *inputs, pooled, scale.get("spatial_scale", 1.0))


def deform_conv(g):
    kernel = [g.integer(1, 3), g.integer(1, 3)]
    group, offset_group = g.integer(1, 2), g.integer(1, 2)
    inner = g.integer(1, 2) * offset_group
    channels, outer = inner * group, g.integer(1, 2) * group
    strides = [g.integer(1, 2), g.integer(1, 2)]
    pads = [g.integer(0, 1) for _ in range(4)]
    size = [g.integer(3, 5), g.integer(3, 5)]
    out = [(size[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    count = g.integer(1, 2)
    taps = kernel[0] * kernel[1]
    inputs = [g.tensor("float32", [count, channels] + size, "small"),
              g.tensor("float32", [outer, inner] + kernel, "small"),
              g.tensor("float32", [count, offset_group * taps * 2] + out, lambda: g.integer(-20, 20) / 9)]
    inputs.append(g.tensor("float32", [outer], "small") if g.chance(0.5) else "")
    inputs.append(g.tensor("float32", [count, offset_group * taps] + out, "small") if g.chance(0.5) else "")
    g.node(inputs, strides=strides, pads=pads, group=group, offset_group=offset_group, kernel_shape=kernel, tolerance=(1e-3, 1e-3))


def col2im(g):
    block = [g.integer(1, 3), g.integer(1, 3)]
    image = [g.integer(3, 6), g.integer(3, 6)]
    strides, dilations, pads = [g.integer(1, 2) for _ in block], [g.integer(1, 2) for _ in block], [g.integer(0, 1) for _ in range(4)]
    count = 1
    for i in range(2):
        span = (block[i] - 1) * dilations[i] + 1
        if image[i] + pads[i] + pads[i + 2] < span:
            raise Unfit
        count *= (image[i] + pads[i] + pads[i + 2] - span) // strides[i] + 1
    dtype = g.one_of(["float32", "float32", "float64"])
    x = g.tensor(dtype, [g.integer(1, 2), g.integer(1, 2) * size_of(block), count])
    g.node([x, g.ints(image), g.ints(block)], strides=strides, dilations=dilations, pads=pads)
    formulas.col2im(g, x, image, block, strides, dilations, pads)


def det(g):
    n = g.integer(1, 4)
    dtype = g.one_of(["float32", "float64"])
    x = g.tensor(dtype, g.shape(0, 2) + [n, n], "small")
    g.node([x], tolerance=(1e-3, 1e-2))
    formulas.det(g, x)


def recurrent(gates, states):
    def build(g):
        hidden, width, steps, batch = g.integer(1, 4), g.integer(1, 4), g.integer(1, 5), g.integer(1, 3)
        direction = g.one_of(["forward", "reverse", "bidirectional"])
        ways = 2 if direction == "bidirectional" else 1
        attributes = {"hidden_size": hidden}
        if direction != "forward" or g.chance(0.3):
            attributes["direction"] = direction
        layout = g.integer(0, 1) if g.opset >= 14 and g.chance(0.3) else 0
        if layout:
            attributes["layout"] = 1
        part = lambda shape: g.tensor("float32", shape, lambda: g.integer(-8, 8) / 8, g.chance(0.7))
        inputs = [g.tensor("float32", [batch, steps, width] if layout else [steps, batch, width], "small"),
                  part([ways, gates * hidden, width]), part([ways, gates * hidden, hidden])]
        inputs.append(part([ways, 2 * gates * hidden]) if g.chance(0.6) else "")
        inputs.append(g.given("int32", [batch], [g.integer(1, steps) for _ in range(batch)]) if g.chance(0.3) else "")
        for _ in range(states):
            inputs.append(g.tensor("float32", [batch, ways, hidden] if layout else [ways, batch, hidden], "small")
                          if g.chance(0.4) else "")
        if g.op == "LSTM" and g.chance(0.3):
            inputs.append(part([ways, 3 * hidden]))
        if g.chance(0.2):
            attributes["clip"] = 1.5
        if g.chance(0.3):
            names = ["Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "ThresholdedRelu", "Elu", "Affine", "Softplus", "ScaledTanh"]
            count = {"RNN": 1, "GRU": 2, "LSTM": 3}[g.op]
            chosen = [g.one_of(names) for _ in range(count * ways)]
            attributes["activations"] = chosen
            with_alpha = {"HardSigmoid": 0.25, "LeakyRelu": 0.125, "ThresholdedRelu": 0.5, "Elu": 0.75, "Affine": 0.5, "ScaledTanh": 0.5}
            with_beta = {"HardSigmoid": 0.375, "Affine": 0.25, "ScaledTanh": 0.75}
            if any(name in with_alpha for name in chosen):
                attributes["activation_alpha"] = [with_alpha[name] for name in chosen if name in with_alpha]
                if any(name in with_beta for name in chosen):
                    attributes["activation_beta"] = [with_beta[name] for name in chosen if name in with_beta]
        if g.op == "GRU":
            attributes |= g.maybe(0.5, linear_before_reset=g.integer(0, 1))
        if g.op == "LSTM":
            attributes |= g.maybe(0.2, input_forget=1)
        g.node(inputs, count=g.integer(1, states + 1), tolerance=(1e-3, 1e-3), **attributes)
    return build


def dft(g):
    dtype = g.one_of(["float32", "float32", "float64"])
    shape = g.shape(1, 2, 0)
    inverse, onesided = g.integer(0, 1), g.integer(0, 1)
    parts = 1 if onesided or g.chance(0.4) else 2
    if inverse and g.opset < 20:
        onesided = 0
    if inverse and onesided:
        raise Unfit
    shape = [g.integer(1, 3)] + shape + [parts]
    axis = g.integer(1, len(shape) - 2)
    if g.chance(0.3):
        axis -= len(shape)
    inputs = [g.tensor(dtype, shape, "small"), g.scalar("int64", g.integer(1, 9)) if g.chance(0.4) else ""]
    attributes = {key: value for key, value in (("inverse", inverse), ("onesided", onesided)) if value or g.chance(0.4)}
    if g.opset >= 20:
        inputs.append(g.scalar("int64", axis))
    else:
        attributes["axis"] = axis
    g.node(inputs, tolerance=(1e-3, 1e-3), **attributes)


def stft(g):
    length, frame = g.integer(8, 16), g.integer(2, 8)
    dtype = g.one_of(["float32", "float64"])
    inputs = [g.tensor(dtype, [g.integer(1, 2), length, 1], "small"), g.scalar("int64", g.integer(1, 4))]
    if g.chance(0.6):
        inputs += [g.tensor(dtype, [frame], "small"), g.scalar("int64", frame) if g.chance(0.5) else ""]
    else:
        inputs += ["", g.scalar("int64", frame)]
    g.node(inputs, tolerance=(1e-3, 1e-3), **g.maybe(0.6, onesided=g.integer(0, 1)))


def window_function(g):
    attributes = g.maybe(0.4, output_datatype=wire.ELEMENT_TYPES[g.one_of(["float32", "float64"])], periodic=g.integer(0, 1))
    g.node([g.scalar(g.one_of(["int64", "int32"]), g.integer(2, 12))], tolerance=(1e-4, 1e-5), **attributes)


def mel(g):
    low = float(g.integer(0, 100))
    inputs = [g.scalar("int64", g.integer(2, 6)), g.scalar("int64", g.one_of([16, 32, 64])), g.scalar("int64", g.one_of([8000, 16000])),
              g.scalar("float32", low), g.scalar("float32", low + g.integer(500, 3000))]
    g.node(inputs, tolerance=(1e-3, 1e-4), **g.maybe(0.4, output_datatype=wire.ELEMENT_TYPES[g.one_of(["float32", "float64"])]))


def attention(g):
    batch, heads, groups = g.integer(1, 2), g.integer(1, 2), g.integer(1, 2)
    queries, keys, width, value_width = g.integer(1, 4), g.integer(1, 5), 2 * g.integer(1, 3), g.integer(1, 5)
    dtype = g.one_of(["float32", "float32", "float16"])
    attributes = {}
    query_heads = heads * groups
    if g.chance(0.4):
        attributes = {"q_num_heads": query_heads, "kv_num_heads": heads}
        shapes = [[batch, queries, query_heads * width], [batch, keys, heads * width], [batch, keys, heads * value_width]]
    else:
        shapes = [[batch, query_heads, queries, width], [batch, heads, keys, width], [batch, heads, keys, value_width]]
    inputs = [g.tensor(dtype, shape, "fine") for shape in shapes]
    has_past = g.chance(0.3)
    past = g.integer(1, 3) if has_past else 0
    total = past + keys
    if g.chance(0.4):
        shape = g.one_of([[queries, total], [batch, 1, queries, total], [batch, query_heads, queries, total], [1, 1, queries, total]])
        mask = g.tensor("bool" if g.chance(0.4) else dtype, shape, "small")
        if mask.dtype == "bool" and any(not any(mask.data[i:i + total]) for i in range(0, len(mask.data), total)):
            raise Unfit  # a row that sees nothing
        inputs.append(mask)
    elif has_past:
        inputs.append("")
    if has_past:
        inputs += [g.tensor(dtype, [batch, heads, past, width], "fine"), g.tensor(dtype, [batch, heads, past, value_width], "fine")]
    attributes |= g.maybe(0.3, is_causal=1, scale=0.5, softcap=2.0)
    if any(isinstance(item, Operand) and item.dtype == "bool" for item in inputs):
        attributes.pop("is_causal", None)  # together they may leave nothing to see
    count = 3 if has_past else 1
    g.node(inputs, count=count, tolerance=(2e-2, 2e-2) if dtype == "float16" else (1e-3, 1e-3), **attributes)


def rotary(g):
    batch, heads, steps, width = g.integer(1, 2), g.integer(1, 3), g.integer(1, 4), 2 * g.integer(1, 4)
    attributes = {}
    rotated = width
    if g.chance(0.3) and width > 2:
        rotated = 2 * g.integer(1, width // 2)
        attributes["rotary_embedding_dim"] = rotated
    attributes |= g.maybe(0.5, interleaved=g.integer(0, 1))
    shape = [batch, heads, steps, width]
    if g.chance(0.4):
        shape = [batch, steps, heads * width]
        attributes["num_heads"] = heads
    dtype = g.one_of(["float32", "float32", "float16"])
    x = g.tensor(dtype, shape, "small")
    if g.chance(0.6):
        rows = 8
        inputs = [x, g.tensor(dtype, [rows, rotated // 2], "unit"), g.tensor(dtype, [rows, rotated // 2], "unit"),
                  g.given("int64", [batch, steps], [g.integer(0, rows - 1) for _ in range(batch * steps)])]
    else:
        inputs = [x, g.tensor(dtype, [batch, steps, rotated // 2], "unit"), g.tensor(dtype, [batch, steps, rotated // 2], "unit")]
    g.node(inputs, **attributes)


OPERATORS = {
    "MatMul": ((7, 9, 13), matmul), "Gemm": ((7, 9, 11, 13), gemm), "Einsum": ((12,), einsum),
    "Conv": ((7, 11, 22), conv), "ConvTranspose": ((7, 11, 22), conv_transpose),
    "MaxPool": ((7, 8, 10, 11, 12, 22), pool(ceil=10, dilations=10)),
    "AveragePool": ((7, 10, 11, 19, 22), pool(ceil=10, dilations=19)),
    "LpPool": ((7, 11, 18, 22), pool(ceil=18, dilations=18, dtypes=["float32"])),
    "GlobalAveragePool": ((7, 22), global_pool), "GlobalMaxPool": ((7, 22), global_pool),
    "GlobalLpPool": ((7, 22), global_pool), "MaxUnpool": ((9, 11, 22), max_unpool),
    "Resize": ((10, 11, 13, 18, 19), resize), "Upsample": ((7, 9), upsample), "GridSample": ((16, 20, 22), grid_sample), "AffineGrid": ((20,), affine_grid),
    "RoiAlign": ((10, 16, 22), roi_align), "MaxRoiPool": ((7, 22), max_roi_pool), "DeformConv": ((19, 22), deform_conv),
    "Col2Im": ((18,), col2im), "Det": ((11, 22), det), "RNN": ((7, 14, 22), recurrent(1, 1)),
    "GRU": ((7, 14, 22), recurrent(3, 1)), "LSTM": ((7, 14, 22), recurrent(4, 2)), "DFT": ((17, 20), dft),
    "STFT": ((17,), stft), "HannWindow": ((17,), window_function), "HammingWindow": ((17,), window_function),
    "BlackmanWindow": ((17,), window_function), "MelWeightMatrix": ((17,), mel), "Attention": ((23, 24), attention),
    "RotaryEmbedding": ((23,), rotary),
}
