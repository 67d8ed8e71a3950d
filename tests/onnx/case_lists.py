"""The cases that make_cases.py writes."""
import numpy as np

import formulas as f


def add(m):
    case, numbers, integers = m.case, m.numbers, m.integers
    i64 = lambda *values: np.array(values, np.int64)
    f32 = lambda *values: np.array(values, np.float32)

    # ---- Detection
    def boxes(count, images=1, seed="boxes"):
        corner, size = numbers(images, count, 2, seed=seed, low=0, high=25), numbers(images, count, 2, seed=seed + "s", low=4, high=25)
        return np.concatenate([corner, corner + size], 2)

    def scores(images, classes, count):
        return (m.rng(f"s{images}{classes}{count}").permutation(images * classes * count) / 64).astype(np.float32).reshape(
            images, classes, count)

    runs = [("two images", [boxes(7, 2), scores(2, 2, 7), i64(3), f32(0.25), f32(0.125)]),
            ("no box", [boxes(0, 1), scores(1, 2, 0), i64(3), f32(0.25), f32(0.125)]),
            ("many", [boxes(20, 1), scores(1, 3, 20), i64(100), f32(0.5), f32(0.5)])]
    for opset in (10, 11):
        case(f"nms_{opset}", opset, "Suppression with all inputs, without the last ones, of corners in any order, and of centers.",
             "float[b,n,4] boxes; float[b,c,n] scores; int64[1] most; float[1] overlap; float[1] least", runs,
             [("NonMaxSuppression", {}, "boxes scores most overlap least", 1, f.non_max_suppression),
              ("NonMaxSuppression", {}, "boxes scores most", 1, f.non_max_suppression),
              ("NonMaxSuppression", {}, "boxes scores", 1, f.non_max_suppression),
              ("NonMaxSuppression", {}, "boxes scores most - least", 1, f.non_max_suppression),
              ("NonMaxSuppression", {"center_point_box": 1}, "boxes scores most overlap", 1,
               lambda *a: f.non_max_suppression(*a, center_point_box=1)),
              ("NonMaxSuppression", {"center_point_box": 0}, "boxes scores two half", 1, f.non_max_suppression)],
             {"two": np.int64(2), "half": np.float32(0.5)})
    case("unique_11", 11, "Distinct elements and slices, in both orders, with some of the outputs.",
         "int64[n,m] x; float[k] y",
         [("some", [integers(4, 3, high=2), f32(2, -1, 2, 0.5, -1, 2)]), ("one", [i64([7]), f32(3)]),
          ("all alike", [np.zeros((3, 2), np.int64), np.zeros(4, np.float32)])],
         [("Unique", {}, "x", 4, lambda x: f.unique(x)), ("Unique", {"sorted": 0}, "y", 4, lambda y: f.unique(y, None, False)),
          ("Unique", {"axis": 0}, "x", 4, lambda x: f.unique(x, 0)), ("Unique", {"axis": -1}, "x", 4, lambda x: f.unique(x, 1)),
          ("Unique", {"axis": 0, "sorted": 0}, "x", 4, lambda x: f.unique(x, 0, False)),
          ("Unique", {}, "y", 1, lambda y: f.unique(y)[0]), ("Unique", {"axis": 1}, "x", 2, lambda x: f.unique(x, 1)[:2])])
    regions = f32([0, 0, 4, 4], [1, 2, 6.5, 7], [-3, -2, 3, 12], [5, 5, 5, 5])
    roi_runs = [("four regions", [numbers(2, 2, 6, 7), regions, i64(0, 1, 1, 0)]),
                ("one region", [numbers(1, 1, 3, 4), regions[1:2], i64(0)]),
                ("none", [numbers(1, 1, 3, 4), regions[:0], i64()])]

    def align(attributes, half_pixel, **more):
        return ("RoiAlign", attributes, "x rois images", 1,
                lambda x, rois, images: f.roi_align(x, rois, images, half_pixel=half_pixel, **more))

    for opset in (10, 16, 22):
        nodes = [align({}, opset > 10),
                 align({"output_height": 2, "output_width": 3, "sampling_ratio": 2}, opset > 10, size=(2, 3), samples=2),
                 align({"output_height": 2, "output_width": 2, "mode": "max"}, opset > 10, size=(2, 2), mode="max"),
                 align({"output_height": 3, "output_width": 1, "spatial_scale": 0.5}, opset > 10, size=(3, 1), scale=0.5)]
        if opset > 10:
            nodes.append(align({"coordinate_transformation_mode": "output_half_pixel", "output_height": 2,
                                "output_width": 2, "sampling_ratio": 1, "mode": "max"}, False, size=(2, 2), samples=1, mode="max"))
        case(f"roi_align_{opset}", opset, "Averages and maxima of samples, adaptive and of a given number.",
             "float[n,c,h,w] x; float[k,4] rois; int64[k] images", roi_runs, nodes)
    pool_rois = f32([0, 0, 0, 4, 4], [1, 1, 2, 6.5, 7], [0, -3, -2, 3, 12], [1, 5, 5, 5, 5])
    for opset in (7, 22):
        case(f"max_roi_pool_{opset}", opset, "Maxima of the bins of regions.", "float[n,c,h,w] x; float[k,5] rois",
             [("four regions", [numbers(2, 2, 6, 7), pool_rois]), ("one region", [numbers(1, 3, 3, 4), pool_rois[:1]])],
             [("MaxRoiPool", {"pooled_shape": size, "spatial_scale": scale}, "x rois", 1,
               lambda x, rois, size=size, scale=scale: f.max_roi_pool(x, rois, size, scale))
              for size, scale in (([1, 1], 1.0), ([2, 3], 1.0), ([3, 2], 0.5), ([2, 2], 0.25))])

    # ---- Pools
    for opset in (9, 11, 22):
        case(f"max_unpool_{opset}", opset, "Elements put back, with strides and pads, and into a larger tensor.",
             "float[n,c,h,w] x; int64[n,c,h,w] at; int64[4] shape",
             [("two by two", [numbers(1, 1, 2, 2), i64(0, 3, 8, 15).reshape(1, 1, 2, 2), i64(1, 1, 5, 6)]),
              ("two images", [numbers(2, 1, 1, 3), i64(1, 2, 9, 13, 17, 20).reshape(2, 1, 1, 3), i64(2, 1, 4, 8)])],
             [("MaxUnpool", {"kernel_shape": [2, 2], "strides": [2, 2]}, "x at", 1,
               lambda x, at: f.max_unpool(x, at, [2, 2], [2, 2])),
              ("MaxUnpool", {"kernel_shape": [3, 4], "strides": [3, 2]}, "x at", 1,
               lambda x, at: f.max_unpool(x, at, [3, 4], [3, 2])),
              ("MaxUnpool", {"kernel_shape": [4, 5], "strides": [3, 3], "pads": [1, 0, 0, 1]}, "x at", 1,
               lambda x, at: f.max_unpool(x, at, [4, 5], [3, 3], [1, 0, 0, 1])),
              ("MaxUnpool", {"kernel_shape": [2, 2], "strides": [2, 2]}, "x at shape", 1,
               lambda x, at, shape: f.max_unpool(x, at, [2, 2], [2, 2], None, shape))])
    pools = [("two images", [numbers(2, 1, 7, 8)]), ("one row more", [numbers(1, 2, 8, 8)])]
    windows = [({"kernel_shape": [3, 2]}, {}), ({"kernel_shape": [2, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}, {}),
               ({"kernel_shape": [2, 3], "dilations": [3, 2]}, {}),
               ({"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, {}),
               ({"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, {}),
               ({"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1}, {})]

    def pooled(op, kind, attributes):
        names = {"kernel_shape": "kernel", "ceil_mode": "ceil", "count_include_pad": "include"}
        given = {names.get(key, key): value for key, value in attributes.items()}
        return (op, attributes, "x", 1, lambda x: f.pool(x, kind, **given))

    for opset in (19, 22):
        case(f"average_pool_{opset}", opset, "Averages with dilations, pads that count and pads that do not.",
             "float[n,c,h,8] x", pools, [pooled("AveragePool", "average", w) for w, _ in windows] + [
                 pooled("AveragePool", "average", {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 1, 0, 2],
                                                   "count_include_pad": 1})] + [
                 # The last window would begin behind the image, on pads.
                 pooled("AveragePool", "average", {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1],
                                                   "ceil_mode": 1, "count_include_pad": include}) for include in (0, 1)])
    for opset in (11, 18, 22):
        listed = [dict(w, p=p) for (w, _), p in zip(windows, (1, 2, 3, 2, 1, 4))]
        listed = [w for w in listed if opset >= 18 or not ({"dilations", "ceil_mode"} & set(w))]
        listed.append({"kernel_shape": [1, 2], "strides": [1, 2], "p": 3})
        case(f"lp_pool_{opset}", opset, "Norms of windows.", "float[n,c,h,8] x", pools,
             [pooled("LpPool", "lp", w) for w in listed])
    for opset in (2, 22):
        case(f"global_lp_pool_{opset}", max(opset, 7), "Norms of images.", "float[n,c,h,w] x; float[m,d,k] y",
             [("some", [numbers(2, 3, 2, 3), numbers(1, 2, 4)]), ("one", [numbers(1, 1, 1, 1), numbers(2, 1, 2)])],
             [("GlobalLpPool", {} if p is None else {"p": p}, name, 1,
               lambda x, p=p or 2: (abs(x).astype(float) ** p).sum(tuple(range(2, x.ndim)), keepdims=True).astype(
                   np.float32) ** np.float32(1 / p)) for p, name in ((None, "x"), (1, "x"), (3, "y"), (2, "y"))])
    signals(m, i64, f32)
    images(m, i64, f32)
    layouts(m, i64, f32)
    training(m, i64, f32)


def signals(m, i64, f32):
    case, numbers, integers = m.case, m.numbers, m.integers
    spectrum_runs = [("two signals", [numbers(2, 6, 3, 1), numbers(2, 5, 2), numbers(1, 4, 2), np.int64(4)]),
                     ("longer", [numbers(1, 9, 2, 1), numbers(1, 8, 2), numbers(3, 5, 2), np.int64(11)])]

    def transform(opset, axis, operand, length=False, **attributes):
        flags = {key: bool(value) for key, value in attributes.items()}
        given = dict(attributes)
        used = f"{operand} {'length' if length else '-'}"
        if opset < 20:
            given["axis"] = axis
        else:
            used += f" axis_{axis}".replace("-", "m")
        names = used.rstrip(" -") if used.endswith("-") else used
        return ("DFT", given, names, 1, lambda x, n=None, a=None: f.dft(x, axis, n, **flags))

    for opset in (17, 20):
        nodes = [transform(opset, 1, "real"), transform(opset, -2, "real", onesided=1),
                 transform(opset, 1, "complex", inverse=1), transform(opset, 1, "complex", True),
                 transform(opset, -3, "real", True, onesided=1), transform(opset, 0, "real"),
                 transform(opset, 1, "complex", True, inverse=1), transform(opset, 1, "half", inverse=1, onesided=1)]
        if opset >= 20:
            nodes.append(("DFT", {}, "real", 1, lambda x: f.dft(x, -2)))
            nodes.append(("DFT", {}, "complex length", 1, lambda x, n: f.dft(x, -2, n)))
            nodes += [("DFT", attributes, operands, 1,
                       lambda x, n, a, more=more: f.dft(x, int(a), n, **more)) for attributes, operands, more in (
                ({}, "real - axis", {}), ({"onesided": 1}, "real length axis", {"onesided": True}),
                ({"inverse": 1}, "real length axis", {"inverse": True}))]
        case(f"dft_{opset}", opset, "Transforms and their inverses, of real and complex signals, cut and continued with zeros.",
             "float[b,n,k,1] real; float[c,n2,2] complex; float[d,n3,2] half; int64 length" + ("; int64 axis" if opset >= 20 else ""),
             [(title, arrays + ([np.int64(axis)] if opset >= 20 else [])) for (title, arrays), axis in zip(spectrum_runs, (1, -2))], nodes,
             {"axis_1": np.int64(1), "axis_m2": np.int64(-2), "axis_m3": np.int64(-3), "axis_0": np.int64(0)})
        case(f"dft_known_{opset}", opset, "Transforms of constant lengths are products with a matrix.",
             "float[b,6,1] real; double[b,5,2] complex",
             [("two signals", [numbers(2, 6, 1), numbers(2, 5, 2, dtype=np.float64)])],
             [transform(opset, 1, "real"), transform(opset, 1, "real", onesided=1), transform(opset, 1, "complex"),
              transform(opset, 1, "complex", inverse=1), transform(opset, 1, "complex", inverse=1, onesided=1)] +
             [("DFT", {"onesided": 1}, "real eight", 1, lambda x, n: f.dft(x, 1, n, onesided=True)),
              ("DFT", {}, "complex three", 1, lambda x, n: f.dft(x, 1, n)),
              ("DFT", {"inverse": 1, "onesided": 1}, "complex seven", 1, lambda x, n: f.dft(x, 1, n, True, True))],
             {"axis_1": np.int64(1), "eight": np.int64(8), "three": np.int64(3), "seven": np.int64(7)})
    case("stft_17", 17, "Frames of signals, with and without a window, of known and unknown sizes.",
         "float[b,n,1] real; float[c,k,2] complex; int64 step; int64 length; float[w] window; float[2,20] flat",
         [("short", [numbers(2, 12, 1), numbers(1, 9, 2), np.int64(3), np.int64(5), numbers(4), numbers(2, 20)]),
          ("long", [numbers(1, 20, 1), numbers(2, 13, 2), np.int64(2), np.int64(8), numbers(6), numbers(2, 20, seed="y")])],
         [("STFT", {}, "real step - length", 1, f.stft), ("STFT", {"onesided": 0}, "complex step - length", 1,
                                                         lambda *a: f.stft(*a, onesided=False)),
          ("STFT", {"onesided": 0}, "real step window", 1, lambda *a: f.stft(*a, onesided=False)),
          ("STFT", {"onesided": 1}, "flat four hann eight", 1, f.stft), ("STFT", {}, "real four hann", 1, f.stft)],
         {"four": np.int64(4), "eight": np.int64(8), "hann": (0.5 - 0.5 * np.cos(np.pi * np.arange(8) / 4)).astype(np.float32)})
    kinds = {"HannWindow": [0.5, -0.5], "HammingWindow": [25 / 46, -21 / 46], "BlackmanWindow": [0.42, -0.5, 0.08]}
    case("windows_17", 17, "Windows, periodic and symmetric, in two dtypes.", "int64 size",
         [("ten", [np.int64(10)]), ("seven", [np.int64(7)])],
         [(kind, attributes, "size", 1,
           lambda n, w=w, attributes=attributes: f.window(n, w, attributes.get("periodic", 1),
                                                          np.float64 if attributes.get("output_datatype") == 11 else np.float32))
          for kind, w in kinds.items()
          for attributes in ({}, {"periodic": 0}, {"periodic": 1, "output_datatype": 11}, {"periodic": 0, "output_datatype": 11})])
    case("mel_17", 17, "Mel filters of several sizes, from constants and from inputs.",
         "int64 bins; int32 length; int32 rate; float low; float high",
         [("sixteen", [np.int64(8), np.int32(16), np.int32(8192), np.float32(0), np.float32(4096)]),
          ("more", [np.int64(5), np.int32(64), np.int32(16000), np.float32(20), np.float32(7600)])],
         [("MelWeightMatrix", {}, "bins length rate low high", 1, f.mel_weights),
          ("MelWeightMatrix", {"output_datatype": 11}, "bins length rate low high", 1,
           lambda *a: f.mel_weights(*a, dtype=np.float64)),
          ("MelWeightMatrix", {}, "b l r low high", 1, f.mel_weights), ("MelWeightMatrix", {}, "b l r lo hi", 1, f.mel_weights)],
         {"b": np.int64(3), "l": np.int64(30), "r": np.int64(8000), "lo": np.float32(300), "hi": np.float32(3400)})
    pool = dict(ngram_counts=[0, 4], ngram_indexes=[0, 2, 1, 3, 6, 5, 4], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
    weights = [0.5, 1.0, 2.0, 1.5, 3.0, 0.25, 4.0]

    def grams(mode, least, most, skips, operand, weighted=False):
        attributes = dict(mode=mode, min_gram_length=least, max_gram_length=most, max_skip_count=skips, **pool)
        if weighted:
            attributes["weights"] = weights
        return ("TfIdfVectorizer", attributes, operand, 1,
                lambda x: f.tf_idf(x, mode, least, most, skips, pool["ngram_counts"], pool["ngram_indexes"],
                                   pool["pool_int64s"], weights if weighted else None))

    case("tfidf_9", 9, "Counts of n-grams with and without gaps, in all modes.", "int64[b,n] x; int32[m] y",
         [("two rows", [i64([1, 1, 3, 3, 3, 7, 8, 6, 7, 5], [8, 6, 7, 5, 6, 7, 8, 8, 5, 6]), np.array([5, 6, 7, 8, 5, 6], np.int32)]),
          ("short rows", [i64([7], [2], [9]), np.array([7, 8], np.int32)]),
          ("empty rows", [np.zeros((2, 0), np.int64), np.array([2], np.int32)])],
         [grams("TF", 1, 2, 5, "x"), grams("TF", 2, 2, 0, "x"), grams("IDF", 1, 2, 1, "x", True), grams("TFIDF", 1, 2, 3, "x", True),
          grams("TFIDF", 2, 2, 2, "y", True), grams("IDF", 1, 1, 0, "y")])


def images(m, i64, f32):
    case, numbers, integers = m.case, m.numbers, m.integers
    names = dict(coordinate_transformation_mode="transform", nearest_mode="nearest", cubic_coeff_a="a",
                 extrapolation_value="extrapolation", keep_aspect_ratio_policy="policy")

    def resized(attributes, operands):
        given = {names.get(key, key): value for key, value in attributes.items()}
        return ("Resize", attributes, operands, 1,
                lambda x, roi=None, scales=None, sizes=None: f.resize(x, scales, sizes, roi, **given))

    some = [("two images", [numbers(2, 1, 4, 6), f32(0.6, 0.75), i64(3, 4), f32(0.25, 0.5, 0.75, 1.25)]),
            ("larger", [numbers(1, 2, 8, 5), f32(1.25, 0.5), i64(3, 7), f32(0, -0.25, 0.5, 1)])]
    declared = "float[n,c,h,w] x; float[2] scales; int64[2] sizes; float[4] roi"
    hw = {"axes": [2, 3]}
    known = {"up": f32(1, 1, 2, 1.5), "down": f32(1, 1, 0.5, 0.75), "to": i64(1, 1, 3, 5), "region": f32(0, 0, 0.25, 0.25, 1, 1, 0.75, 1)}
    for opset in (11, 13):
        nodes = [resized({"mode": mode, "coordinate_transformation_mode": transform, **more}, "x - up" if k % 2 else "x - down")
                 for k, (mode, transform, more) in enumerate([
                     ("nearest", "half_pixel", {}), ("linear", "align_corners", {}), ("cubic", "asymmetric", {}),
                     ("cubic", "pytorch_half_pixel", {"cubic_coeff_a": -0.5, "exclude_outside": 1}),
                     ("nearest", "asymmetric", {"nearest_mode": "ceil"})])]
        nodes.append(resized({"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0},
                             "x region up"))
        case(f"resize_{opset}", opset, "Resampling in all modes.", "float[n,c,h,w] x",
             [("two images", [numbers(2, 1, 4, 6)]), ("one", [numbers(1, 2, 3, 5)])], nodes, known)
    for opset in (18, 19):
        nodes = [resized(dict(hw, mode="linear", antialias=1), "x - scales"), resized(dict(hw, mode="cubic", antialias=1), "x - scales"),
                 resized(dict(hw, mode="cubic", antialias=1, exclude_outside=1), "x - - sizes"),
                 resized(dict(hw, mode="linear", antialias=1, coordinate_transformation_mode="align_corners"), "x - - sizes"),
                 resized({"axes": [3, 2], "mode": "nearest"}, "x - scales"), resized(dict(hw, mode="linear"), "x - - sizes"),
                 resized(dict(hw, mode="linear", keep_aspect_ratio_policy="not_larger"), "x - - sizes"),
                 resized({"axes": [-1, -2], "mode": "nearest", "keep_aspect_ratio_policy": "not_smaller"}, "x - - sizes"),
                 resized(dict(hw, mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5),
                         "x roi - sizes"),
                 resized(dict(hw, mode="cubic", coordinate_transformation_mode="tf_crop_and_resize"), "x box scales")]
        if opset >= 19:
            nodes += [resized(dict(hw, mode="linear", coordinate_transformation_mode="half_pixel_symmetric"), "x - scales"),
                      resized(dict(hw, mode="cubic", coordinate_transformation_mode="half_pixel_symmetric"), "x - - sizes"),
                      resized(dict(hw, mode="nearest", coordinate_transformation_mode="half_pixel_symmetric"), "x - half")]
        case(f"resize_{opset}", opset, "Scales, sizes and regions of some axes, known when the model runs; antialiasing; policies.",
             declared, some, nodes, {"box": f32(0.125, 0.25, 0.875, 1), "half": f32(0.6, 0.4)})
        fixed = [resized(dict(mode=mode, antialias=1, **more), "x - scale") for mode, more in
                 (("linear", {}), ("cubic", {}), ("cubic", {"cubic_coeff_a": -0.5}), ("linear", {"coordinate_transformation_mode": "asymmetric"}))]
        fixed += [resized(dict(hw, mode="cubic", antialias=1, keep_aspect_ratio_policy=policy), "x - - to")
                  for policy in ("not_larger", "not_smaller")]
        case(f"resize_known_{opset}", opset, "Antialiasing and policies with constant sizes.", "float[1,1,6,9] x; uint8[1,1,4,6] y",
             [("one image", [numbers(1, 1, 6, 9), integers(1, 1, 4, 6, high=200, dtype=np.uint8)])],
             fixed + [resized(dict(mode="linear", antialias=1), "y - scale")],
             {"scale": f32(1, 1, 0.5, 0.34), "to": i64(4, 4)})

    def sampled(opset, x, grid, mode, padding="zeros", align=0):
        old = {"linear": "bilinear", "cubic": "bicubic"}
        attributes = {"mode": mode if opset >= 20 else old.get(mode, mode), "padding_mode": padding, "align_corners": align}
        return ("GridSample", attributes, f"{x} {grid}", 1, lambda x, grid: f.grid_sample(x, grid, mode, padding, align))

    def grid(*shape):
        return (m.rng(f"grid{shape}").integers(-11, 12, shape) / 8).astype(np.float32)

    for opset in (16, 20, 22):
        nodes = [sampled(opset, "x", "g", *how) for how in (
            ("linear",), ("linear", "border", 1), ("linear", "reflection"), ("nearest", "zeros", 1), ("nearest", "reflection", 1),
            ("cubic",), ("cubic", "border"), ("cubic", "reflection", 1))]
        inputs, runs = "float[n,c,h,w] x; float[n,p,q,2] g", [("two images", [numbers(2, 1, 3, 4), grid(2, 2, 3, 2)]),
                                                              ("one", [numbers(1, 2, 2, 2), grid(1, 3, 1, 2)])]
        if opset >= 20:
            nodes += [sampled(opset, "v", "g3", *how) for how in (
                ("linear",), ("linear", "border"), ("linear", "reflection", 1), ("nearest", "border", 1), ("nearest",),
                ("nearest", "zeros", 1), ("nearest", "reflection"))]
            inputs += "; float[m,c,d,h2,w2] v; float[m,o,p2,q2,3] g3"
            runs[0][1].extend([numbers(1, 1, 2, 3, 4), grid(1, 2, 2, 1, 3)])
            runs[1][1].extend([numbers(2, 2, 3, 2, 1), grid(2, 1, 2, 2, 3)])
        case(f"grid_sample_{opset}", opset, "All modes and borders, in two and three dims.", inputs, runs, nodes)
    case("affine_grid_20", 20, "Grids in two and three dims, of a size that is an input or a constant.",
         "float[n,2,3] a; float[m,3,4] b; int64[4] size; int64[5] volume",
         [("two maps", [numbers(2, 2, 3), numbers(1, 3, 4), i64(2, 1, 2, 3), i64(1, 2, 2, 1, 3)]),
          ("one", [numbers(1, 2, 3), numbers(2, 3, 4), i64(1, 3, 4, 1), i64(2, 1, 1, 2, 2)])],
         [("AffineGrid", {"align_corners": align} if align is not None else {}, operands, 1,
           lambda t, s, align=align: f.affine_grid(t, s, align or 0))
          for operands, align in (("a size", None), ("a size", 1), ("b volume", 0), ("b volume", 1))])
    case("col2im_18", 18, "Columns of windows with strides, pads and dilations, in one to three dims.",
         "float[n,8,k] x; float[n,12,l] y; int64[2] image; float[n,8,j] z; int64[2] block2; float[n,8,q] w",
         [("one image", [numbers(1, 8, 6), numbers(1, 12, 15), i64(3, 4), numbers(1, 8, 2), i64(2, 2), numbers(1, 8, 10)]),
          ("two images", [numbers(2, 8, 12), numbers(2, 12, 24), i64(4, 5), numbers(2, 8, 2), i64(1, 4), numbers(2, 8, 16)])],
         [("Col2Im", {}, "x image square", 1, f.col2im),
          ("Col2Im", {"pads": [0, 1, 0, 1], "strides": [1, 1]}, "w image block2", 1, lambda *a: f.col2im(*a, pads=[0, 1, 0, 1])),
          ("Col2Im", {"pads": [0, 1, 2, 1]}, "y image window", 1, lambda *a: f.col2im(*a, pads=[0, 1, 2, 1])),
          ("Col2Im", {"strides": [1, 1, 2], "dilations": [2, 1, 1]}, "z volume block", 1,
           lambda *a: f.col2im(*a, strides=[1, 1, 2], dilations=[2, 1, 1])),
          ("Col2Im", {"strides": [2], "pads": [1, 0]}, "z line pair", 1, lambda *a: f.col2im(*a, strides=[2], pads=[1, 0]))],
         {"square": i64(2, 2), "window": i64(3, 2), "volume": i64(3, 2, 4), "block": i64(2, 2, 2), "line": i64(3), "pair": i64(2)})
    case("center_crop_pad_18", 18, "Crops and pads in the middle, odd and even, of some axes.", "float[n,m,k] x; int64[2] size; int64[3] all",
         [("both", [numbers(3, 5, 4), i64(6, 2), i64(4, 2, 7)]), ("other sizes", [numbers(2, 2, 5), i64(3, 3), i64(1, 5, 5)])],
         [("CenterCropPad", {}, "x all", 1, f.center_crop_pad)] +
         [("CenterCropPad", {"axes": axes}, "x size", 1, lambda x, s, axes=axes: f.center_crop_pad(x, s, axes))
          for axes in ([0, 1], [1, 2], [-1, -3])] +
         [("CenterCropPad", {"axes": [1]}, "x four", 1, lambda x, s: f.center_crop_pad(x, s, [1]))], {"four": i64(4)})

    def deformed(operands, shape, **attributes):
        def run(x, offset, bias=None, mask=None):
            return f.deform_conv(x, numbers(*shape, seed="w"), offset, bias, mask, **attributes)
        used = operands.split(" ")
        return ("DeformConv", attributes, " ".join([used[0], "w" + "".join(map(str, shape))] + used[1:]), 1,
                lambda x, w, *more: run(x, *more))

    shapes = ((3, 2, 2, 2), (2, 1, 2, 2), (2, 2, 2, 2), (2, 2, 3, 1))
    for opset in (19, 22):
        case(f"deform_conv_{opset}", opset, "Offsets, masks, groups and windows with strides, pads and dilations.",
             "float[n,2,5,4] x; float[n,8,4,3] o; float[n,16,4,3] o2; float[n,8,2,2] o3; float[n,6,5,4] o4; float[n,8,4,3] mask2; "
             "float[n,4,4,3] mask",
             [(title, [numbers(n, 2, 5, 4)] + [numbers(n, *s, seed="o", low=-9, high=10) for s in
                                               ((8, 4, 3), (16, 4, 3), (8, 2, 2), (6, 5, 4), (8, 4, 3), (4, 4, 3))])
              for title, n in (("one image", 1), ("two images", 2))],
             [deformed("x o", shapes[0]), deformed("x o bias3 mask", shapes[0]), deformed("x o2 - mask2", shapes[1], group=2, offset_group=2),
              deformed("x o3 bias2", shapes[2], strides=[2, 2], pads=[0, 1, 0, 0], dilations=[2, 2]),
              deformed("x o4", shapes[3], pads=[1, 0, 1, 0])],
             {**{"w" + "".join(map(str, s)): numbers(*s, seed="w") for s in shapes}, "bias3": numbers(3), "bias2": numbers(2)})


def layouts(m, i64, f32):
    case, numbers, integers = m.case, m.numbers, m.integers
    bits = lambda x, to: x.view(to)
    case("bit_cast_26", 26, "Bits of one dtype as those of another.",
         "float[n] a; int32[n] b; double[n] c; int64[n] d; float16[n] e; int16[n] g; uint8[n] h; bool[n] k",
         [("four", [f32(1.5, -0.0, np.inf, 0.1), np.array([1, -2, 1 << 30, 7], np.int32), np.array([1.5, -2, 0, 1e300]), i64(1, -1, 5, 1 << 62),
                    np.array([1, -2, 0.5, 65504], np.float16), np.array([1, -1, 15360, 3], np.int16), np.array([0, 255, 7, 128], np.uint8),
                    np.array([True, False, True, True])])],
         [("BitCast", {"to": code}, name, 1, lambda x, to=to: bits(x, to)) for name, code, to in (
             ("a", 6, np.int32), ("a", 12, np.uint32), ("b", 1, np.float32), ("c", 7, np.int64), ("d", 11, np.float64),
             ("d", 13, np.uint64), ("e", 4, np.uint16), ("g", 10, np.float16), ("h", 3, np.int8), ("k", 2, np.uint8))])
    padded = [("some", [numbers(2, 3, 4), i64(1, 0, 2, 1), i64(0, -1)]), ("other", [numbers(3, 4, 3), i64(0, 2, 1, 0), i64(1, 2)])]

    def pad(mode, operands, fixed=None, value=0):
        def run(x, pads, fill=None, axes=None):
            axes = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]
            width = [[0, 0] for _ in range(x.ndim)]
            for k, axis in enumerate(axes):
                width[axis] = [int(pads[k]), int(pads[k + len(axes)])]
            more = {"constant_values": float(fill) if fill is not None else 0} if mode == "constant" else {}
            crop = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, width))
            return np.pad(x[crop], [(max(a, 0), max(b, 0)) for a, b in width], mode=mode, **more)
        return ("Pad", {"mode": mode}, operands, 1, run)

    for opset in (18, 19, 21):
        nodes = [pad("constant", "x pads - axes"), pad("constant", "x pads two axes"), pad("edge", "x pads - axes"),
                 pad("reflect", "x less - last"), pad("constant", "x crop")]
        if opset >= 19:
            nodes += [pad("wrap", "x pads - axes"), pad("wrap", "x far - last")]
        case(f"pad_{opset}", opset, "Pads of axes that are read when the model runs, in all modes.",
             "float[n,m,k] x; int64[4] pads; int64[2] axes", padded, nodes,
             {"two": np.float32(2.5), "less": i64(1, 2), "last": i64(-1), "crop": i64(-1, 0, 1, 0, -1, 0), "far": i64(5, 4)})
    reduces = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
               "ReduceL1": lambda x, **k: np.sum(abs(x), **k), "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
               "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k), "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
               "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k))}

    def reduced(op, attributes, operands):
        def run(x, axes=None):
            given = () if axes is None else tuple(int(a) for a in axes)
            if not given and attributes.get("noop_with_empty_axes", 0):
                return x
            result = reduces[op](x.astype(np.float64) if x.dtype == np.float32 else x, axis=given or None,
                                 keepdims=bool(attributes.get("keepdims", 1)))
            return np.asarray(result, x.dtype)
        return (op, attributes, operands, 1, run)

    for opset in (13, 18):
        for op in reduces if opset == 18 else ["ReduceSum"]:
            case(f"{op.lower()}_{opset}", opset, "Axes that are an input, empty and absent axes, with and without kept dims.",
                 "float[n,m,k] x; int64[2] axes",
                 [("first and last", [numbers(2, 3, 2, low=1), i64(0, -1)]), ("last two", [numbers(3, 1, 2, low=1), i64(2, 1)])],
                 [reduced(op, {}, "x axes"), reduced(op, {"keepdims": 0}, "x axes"), reduced(op, {}, "x"),
                  reduced(op, {"noop_with_empty_axes": 1}, "x axes")] +
                 ([] if op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum") else
                  [reduced(op, {"noop_with_empty_axes": 1}, "x none")]) +
                 [reduced(op, {"keepdims": 0}, "x none"), reduced(op, {"keepdims": 0}, "x middle")],
                 {"none": i64(), "middle": i64(1)})
    empty = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceL1": 0, "ReduceL2": 0,
             "ReduceSumSquare": 0, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}
    case("reduce_nothing_18", 20, "Reductions over no elements, where only the run knows that there are none.", "float[n,m,4] x",
         [("no elements", [np.zeros((2, 0, 4), np.float32)]), ("nothing left", [np.zeros((0, 0, 4), np.float32)])],
         [(op, {"keepdims": keep}, "x middle", 1,
           lambda x, a, value=value, keep=keep: np.full((x.shape[0], 1, 4) if keep else (x.shape[0], 4), value, np.float32))
          for op, value in empty.items() for keep in (0, 1)], {"middle": i64(1)})
    flags = np.array([[True, False, True], [False, False, True]])
    for op, function in (("ReduceMax", np.max), ("ReduceMin", np.min)):
        case(f"{op.lower()}_20", 20, "Of flags.", "bool[n,m] x; int64[1] axes; uint8[n,m] y",
             [("rows", [flags, i64(0), integers(2, 3, high=255, dtype=np.uint8)]),
              ("columns", [~flags, i64(-1), integers(2, 3, seed="k", high=255, dtype=np.uint8)])],
             [(op, attributes, operands, 1,
               lambda x, axes=None, attributes=attributes, function=function: np.asarray(function(
                   x, axis=None if axes is None else int(axes[0]), keepdims=bool(attributes.get("keepdims", 1)))))
              for attributes, operands in (({}, "x axes"), ({"keepdims": 0}, "x axes"), ({}, "x"), ({"keepdims": 0}, "y axes"))])

    def parts(x, count, axis, lengths=None):
        size = -(-x.shape[axis] // count)
        ends = np.cumsum([size] * (count - 1) if lengths is None else lengths[:-1])
        return np.split(x, ends, axis)

    case("split_18", 18, "Parts that are not of equal size, and lengths that the run knows.",
         "float[n,m] x; int64[3] lengths",
         [("seven", [numbers(2, 7), i64(1, 4, 2)]), ("five", [numbers(3, 5), i64(0, 3, 2)])],
         [("Split", {"axis": 1, "num_outputs": 3}, "x", 3, lambda x: parts(x, 3, 1)), ("Split", {"num_outputs": 2}, "x", 2, lambda x: parts(x, 2, 0)),
          ("Split", {"axis": -1}, "x lengths", 3, lambda x, n: parts(x, 3, 1, n)), ("Split", {"axis": 1, "num_outputs": 1}, "x", 1, lambda x: [x])])

    def scattered(x, indices, updates, reduction, axis):
        y = x.copy()
        combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "none": lambda a, b: b}[reduction]
        for at in np.ndindex(*indices.shape):
            to = list(at)
            to[axis] = int(indices[at])
            y[tuple(to)] = combine(y[tuple(to)], updates[at])
        return y

    def scattered_nd(x, indices, updates, reduction):
        y = x.copy()
        combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "none": lambda a, b: b}[reduction]
        for at in np.ndindex(*indices.shape[:-1]):
            to = tuple(int(k) for k in indices[at])
            y[to] = combine(y[to], updates[at])
        return y

    kinds = ("none", "add", "mul", "max", "min")
    for opset in (16, 18):
        allowed = kinds if opset >= 18 else kinds[:3]
        case(f"scatter_elements_{opset}", opset, "All reductions, with indices that repeat and that count from the end.",
             "float[n,m] x; int64[n,k] at; float[n,k] u",
             [("two rows", [numbers(2, 4), i64([1, 1, -1], [0, 2, 2]) if False else i64([1, 3, -4], [0, 2, -1]), numbers(2, 3)]),
              ("one row", [numbers(1, 2), i64([-1]), numbers(1, 1)])],
             [("ScatterElements", {"axis": 1, "reduction": kind}, "x at u", 1, lambda x, at, u, kind=kind: scattered(x, at, u, kind, 1))
              for kind in allowed] +
             [("ScatterElements", {"axis": 1, "reduction": kind}, "x again more", 1,
               lambda x, at, u, kind=kind: scattered(x, at, u, kind, 1)) for kind in allowed[1:]],
             {"again": i64([1, 1]), "more": f32([2, -3])})
        case(f"scatter_nd_{opset}", opset, "All reductions of slices and of elements.",
             "float[n,3] x; int64[k,1] rows; float[k,3] u; int64[j,2] at; float[j] e",
             [("some", [numbers(3, 3), i64([2], [0], [2]), numbers(3, 3, seed="u"), i64([0, 1], [2, 2]), numbers(2)]),
              ("one", [numbers(2, 3), i64([1]), numbers(1, 3, seed="u"), i64([1, -1]), numbers(1)])],
             [("ScatterND", {"reduction": kind}, "x rows u", 1, lambda x, at, u, kind=kind: scattered_nd(x, at, u, kind)) for kind in allowed] +
             [("ScatterND", {"reduction": kind}, "x at e", 1, lambda x, at, u, kind=kind: scattered_nd(x, at, u, kind)) for kind in allowed[:2]])

    def group_norm(x, scale, bias, groups, epsilon=1e-5, per_group=False):
        y = x.reshape(x.shape[0], groups, -1).astype(float)
        y = (y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + epsilon)
        y = y.reshape(x.shape)
        if per_group:
            scale, bias = (np.repeat(v, x.shape[1] // groups) for v in (scale, bias))
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return (y * scale.reshape(shape) + bias.reshape(shape)).astype(x.dtype)

    for opset in (18, 21):
        nodes = []
        for groups, epsilon, name in ((2, 1e-5, "x"), (4, 0.5, "x"), (1, 1e-5, "v"), (2, 0.01, "v")):
            size = groups if opset < 21 else 4
            nodes.append(("GroupNormalization", {"num_groups": groups, "epsilon": epsilon}, f"{name} s{size} b{size}", 1,
                          lambda x, s, b, groups=groups, epsilon=epsilon, old=opset < 21: group_norm(x, s, b, groups, epsilon, old)))
        case(f"group_norm_{opset}", opset, "A scale for each group, and since opset 21 for each channel.",
             "float[n,4,h,w] x; float[n,4,k] v", [("two images", [numbers(2, 4, 2, 3), numbers(2, 4, 3)]), ("one", [numbers(1, 4, 1, 4), numbers(1, 4, 5)])],
             nodes, {f"{kind}{n}": numbers(n, seed=kind) for kind in "sb" for n in (1, 2, 4)})
    for opset in (11, 24):
        def top(x, k, axis, largest):
            order = np.argsort(-x if largest else x, axis, kind="stable")
            at = np.take(order, range(int(np.ravel(k)[0])), axis)
            return [np.take_along_axis(x, at, axis), at.astype(np.int64)]
        case(f"topk_{opset}", opset, "The largest and the smallest, of a number that the run knows.", "float[n,m] x; int64[1] k; int32[n,m] y",
             [("two", [numbers(3, 5), i64(2), integers(3, 5, dtype=np.int32)]), ("all", [numbers(2, 3), i64(2), integers(2, 3, dtype=np.int32)])],
             [("TopK", {"axis": axis, "largest": largest, "sorted": 1}, f"{name} {k}", 2,
               lambda x, k, axis=axis, largest=largest: top(x, k, axis, largest))
              for axis, largest, name, k in ((-1, 1, "x", "k"), (0, 0, "x", "k"), (1, 0, "y", "k"), (0, 1, "y", "one"))], {"one": i64(1)})
    def scanned(x, axis, exclusive, reverse, function):
        axis = int(np.ravel(axis)[0])
        x = np.flip(x, axis) if reverse else x
        if exclusive:
            start = np.full_like(np.take(x, [0], axis), 1 if function is np.cumprod else 0)
            x = np.concatenate([start, np.take(x, range(x.shape[axis] - 1), axis)], axis)
        y = function(x.astype(float), axis).astype(x.dtype)
        return np.flip(y, axis) if reverse else y

    for op, opset, function in (("CumSum", 14, np.cumsum), ("CumProd", 26, np.cumprod)):
        case(f"{op.lower()}_{opset}", opset, "Forward and backward, with and without the element itself.", "float[n,m] x; int64 axis",
             [("rows", [numbers(2, 4), np.int64(0)]), ("columns", [numbers(3, 2), np.int64(-1)])],
             [(op, {"exclusive": e, "reverse": r}, f"x {axis}", 1,
               lambda x, axis, e=e, r=r, function=function: scanned(x, axis, e, r, function))
              for e, r, axis in ((0, 0, "axis"), (1, 0, "one"), (0, 1, "one"), (1, 1, "axis"))], {"one": np.int64(1)})
    for opset in (15, 19, 21, 23, 24, 25):
        case(f"shapes_{opset}", opset, "Parts of shapes, sizes, and tensors made of them.", "float[n,m,3] x; int64[2] to; int32[3] perm",
             [("some", [numbers(2, 4, 3), i64(3, -1), np.array([0, 1, 2], np.int32)]), ("other", [numbers(1, 2, 3), i64(-1, 2), np.array([0, 1, 2], np.int32)])],
             [("Shape", {"start": 1}, "x", 1, lambda x: i64(*x.shape[1:])), ("Shape", {"start": -2, "end": -1}, "x", 1, lambda x: i64(x.shape[1])),
              ("Shape", {"end": 9}, "x", 1, lambda x: i64(*x.shape)), ("Shape", {"start": 2, "end": 1}, "x", 1, lambda x: i64()),
              ("Size", {}, "x", 1, lambda x: np.int64(x.size)), ("Reshape", {}, "x to", 1, lambda x, to: x.reshape(to)),
              ("Reshape", {"allowzero": 0}, "x keep", 1, lambda x, to: x.reshape(x.shape[0], -1)), ("Identity", {}, "x", 1, lambda x: x),
              ("Transpose", {"perm": [2, 0, 1]}, "x", 1, lambda x: x.transpose(2, 0, 1)), ("Flatten", {"axis": -1}, "x", 1, lambda x: x.reshape(-1, 3)),
              ("Unsqueeze", {}, "x ends", 1, lambda x, a: x[None, ..., None]), ("ConstantOfShape", {}, "to_known", 1, lambda s: np.zeros(s, np.float32))],
             {"keep": i64(0, -1), "ends": i64(0, -1), "to_known": i64(2, 0, 3)})
    case("sizes_from_data", 18, "Sizes that only data decide: what follows has them as dims.",
         "float[n,m] x; bool[n] keep; int64 start; int64 end; int64 step; int64 depth; int64[2] axes; int64[2] from; int64[2] to",
         [("some", [numbers(3, 4), np.array([True, False, True]), np.int64(1), np.int64(8), np.int64(3), np.int64(4), i64(1, 0), i64(1, 0), i64(3, 2)]),
          ("none", [np.zeros((2, 2), np.float32), np.array([False, False]), np.int64(4), np.int64(4), np.int64(1), np.int64(2), i64(0, -1), i64(0, 1), i64(2, 9)])],
         [("NonZero", {}, "x", 1, lambda x: np.array(np.nonzero(x), np.int64)), ("Compress", {"axis": 0}, "x keep", 1, lambda x, c: x[c]),
          ("Compress", {}, "x keep", 1, lambda x, c: x.ravel()[:len(c)][c]), ("Range", {}, "start end step", 1, lambda a, b, s: np.arange(a, b, s)),
          ("OneHot", {"axis": 0}, "axes depth onoff", 1,
           lambda at, depth, v: np.where(np.arange(depth)[:, None] == at % depth, v[1], v[0])),
          ("Slice", {}, "x from to axes", 1,
           lambda x, a, b, axes: x[tuple(slice(int(a[list(axes % 2).index(d)]), int(b[list(axes % 2).index(d)])) for d in range(2))])],
         {"onoff": f32(-1, 2)})


def training(m, i64, f32):
    case, numbers = m.case, m.numbers
    t = "ai.onnx.preview.training"
    state = [numbers(2, 3, seed=s) for s in "xgvh"]
    more = [numbers(4, seed=s) for s in "xgvh"]
    positive = lambda a: abs(a)
    runs = lambda columns: [(title, [np.float32(0.1), np.int64(count)] + [a for pair in columns for a in pair])
                            for title, count in (("first step", 0), ("third step", 2))]
    lists = {"Adagrad": [(state[0], more[0]), (state[1], more[1]), (positive(state[3]), positive(more[3]))],
             "Adam": [(state[0], more[0]), (state[1], more[1]), (state[2], more[2]), (positive(state[3]), positive(more[3]))],
             "Momentum": [(state[0], more[0]), (state[1], more[1]), (state[2], more[2])]}

    def step(op, names, function, attributes, **given):
        used = ["r", "t"] + names
        return (op, attributes, " ".join(used), len(names) - len(names) // (4 if op == "Adam" else 3),
                lambda rate, count, *values: function(float(rate), int(count), list(values), **given))

    for op, function, settings in (
            ("Adagrad", f.adagrad, [({}, {}), ({"decay_factor": 0.1, "epsilon": 0.01}, {"decay": 0.1, "epsilon": 0.01}),
                                    ({"norm_coefficient": 0.5}, {"norm": 0.5})]),
            ("Adam", f.adam, [({}, {}), ({"alpha": 0.5, "beta": 0.75, "epsilon": 0.01}, {"alpha": 0.5, "beta": 0.75, "epsilon": 0.01}),
                              ({"norm_coefficient": 0.5, "norm_coefficient_post": 0.25}, {"norm": 0.5, "post": 0.25})]),
            ("Momentum", f.momentum, [({"alpha": a, "beta": b, "mode": mode, "norm_coefficient": n}, {"alpha": a, "beta": b, "mode": mode, "norm": n})
                                      for a, b, mode, n in ((0.9, 0.1, "standard", 0.0), (0.5, 1.0, "nesterov", 0.25), (0.5, 0.5, "standard", 0.5))])):
        columns = lists[op]
        letters = [f"{letter}{k}" for letter in "xgvh"[:len(columns)] for k in "ab"]
        declared = "; ".join(["float r", "int64 t"] + [f"float[n,m] {name}" if name.endswith("a") else f"float[k] {name}" for name in letters])
        first = [name for name in letters if name.endswith("a")]
        nodes = [step(op, letters, function, a, **g) for a, g in settings] + [step(op, first, function, settings[0][0], **settings[0][1])]
        case(op.lower(), 17, "Steps for one variable and for two.", declared, runs(columns), nodes, None, t)
    case("random_seeded", 22, "Numbers of a seed are those of Philox4x32-10, in the order of the elements.", "float[n,m] x; double[k] d",
         [("some", [numbers(2, 3), numbers(3, dtype=np.float64)]), ("none", [numbers(0, 3), numbers(1, dtype=np.float64)])],
         [("RandomUniform", {"shape": [2, 5], "seed": 1.5}, "", 1, lambda: f.uniform((2, 5), 1.5, 0, 1, np.float32)),
          ("RandomUniform", {"shape": [4], "seed": -2.0, "low": -1.0, "high": 3.0, "dtype": 11}, "", 1, lambda: f.uniform((4,), -2.0, -1, 3, np.float64)),
          ("RandomUniformLike", {"seed": 7.0, "low": 2.0, "high": 4.0}, "x", 1, lambda x: f.uniform(x.shape, 7.0, 2, 4, np.float32)),
          ("RandomUniformLike", {"seed": 0.0, "dtype": 1}, "d", 1, lambda d: f.uniform(d.shape, 0.0, 0, 1, np.float32)),
          ("Bernoulli", {"seed": 3.0}, "x", 1, lambda x: (f.uniform(x.shape, 3.0, 0, 1, np.float32) < x).astype(np.float32))])
