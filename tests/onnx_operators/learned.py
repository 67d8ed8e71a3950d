"""ai.onnx.ml: features, linear models, support vectors and trees."""
from math import exp, isnan

from draw import Unfit, is_float, size_of
import wire

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
INPUTS = ["float32", "float32", "float32", "float64", "int64", "int32"]


def ml(build, version=1):
    def draw(g):
        g.version = version
        build(g)
    return draw


def eighths(g, count, low=-16, high=16):
    return [g.integer(low, high) / 8 for _ in range(count)]


def transformed(scores, name):
    """The scores of one row behind a post_transform, which changes a single score only where it is PROBIT."""
    if len(scores) == 1:
        return scores
    if name == "LOGISTIC":
        return [1 / (1 + exp(-score)) for score in scores]
    if name in ("SOFTMAX", "SOFTMAX_ZERO"):
        powers = [0.0 if name == "SOFTMAX_ZERO" and score == 0 else exp(score - max(scores)) for score in scores]
        return [power / (sum(powers) or 1.0) for power in powers]
    return scores


def table(g, zero=0.03):
    return [0 if g.chance(zero) else g.integer(1, 4), g.integer(1, 5)]


def scaler(g):
    shape = table(g)
    count = lambda: g.one_of([1, shape[1]])
    attributes = {"offset": eighths(g, count()), "scale": eighths(g, count())}
    if len(attributes["offset"]) != len(attributes["scale"]):
        raise Unfit
    g.node([g.tensor(g.one_of(INPUTS), shape)], domain=ML, tolerance=(1e-4, 1e-4), **attributes)


def normalizer(g):
    g.node([g.tensor(g.one_of(INPUTS), table(g) if g.chance(0.8) else [g.integer(1, 5)], "small")], domain=ML, tolerance=(1e-4, 1e-5),
           norm=g.one_of(["MAX", "L1", "L2"]))


def binarizer(g):
    g.node([g.tensor("float32", g.shape(0, 3))], domain=ML, **g.maybe(0.8, threshold=g.integer(-8, 8) / 8))


def imputer(g):
    shape = table(g)
    count = g.one_of([1, shape[1]])
    if g.chance(0.6):
        hole = g.one_of([float("nan"), 0.5, -1.0])
        data = [hole if g.chance(0.3) else g.integer(-8, 8) / 8 for _ in range(size_of(shape))]
        return g.node([g.given("float32", shape, data)], domain=ML, imputed_value_floats=eighths(g, count), replaced_value_float=hole)
    g.node([g.tensor("int64", shape, lambda: g.integer(-2, 2))], domain=ML,
           imputed_value_int64s=[g.integer(5, 9) for _ in range(count)], replaced_value_int64=g.integer(-1, 1))


def vectorizer(g):
    rows = g.integer(1, 3)
    widths = [g.integer(1, 4) for _ in range(g.integer(1, 3))]
    dtype = g.one_of(INPUTS)
    g.node([g.tensor(dtype, [rows, width]) for width in widths], domain=ML, inputdimensions=widths)


def extractor(g):
    shape = g.shape(1, 3, 0)
    g.node([g.tensor(g.one_of(INPUTS + ["string"]), shape),
            g.given("int64", [count := g.integer(1, 4)], [g.integer(0, shape[-1] - 1) for _ in range(count)])], domain=ML)


def one_hot(g):
    attributes = g.maybe(0.5, zeros=1)
    shape = g.shape(1, 3, 0)
    if g.chance(0.4):
        return g.node([g.tensor("string", shape)], domain=ML, cats_strings=["a", "b", "cat", ""], zeros=1)
    kind = lambda: g.integer(0, 3)
    dtype = g.one_of(["int64", "int32", "float32", "float64"])
    cats = g.random.sample(range(-1, 6), 5)
    number = lambda: g.one_of(cats) if not attributes else g.integer(-2, 7)
    g.node([g.tensor(dtype, shape, lambda: float(number()) if is_float(dtype) else number())], domain=ML, cats_int64s=cats, **attributes)


def label_encoder(g):
    pairs = [("strings", "int64s"), ("int64s", "strings"), ("strings", "floats"), ("floats", "strings"), ("int64s", "floats"),
             ("floats", "int64s"), ("strings", "strings"), ("int64s", "int64s"), ("floats", "floats")]
    source, target = g.one_of(pairs)
    words = {"strings": ["a", "cat", "dog", ""], "int64s": [0, 3, -2, 5], "floats": [0.5, 1.0, -2.5, float("nan") if g.chance(0.3) else 4.0]}
    results = {"strings": ["w", "x", "y", "z"], "int64s": [9, -8, 7, 6], "floats": [0.25, 1.5, 2.5, -1.0]}
    attributes = {f"keys_{source}": words[source], f"values_{target}": results[target]}
    if g.chance(0.5):
        attributes |= {"default_string": "none"} if target == "strings" else {"default_int64": -77} if target == "int64s" else {"default_float": -7.5}
    shape = g.shape(0 if g.chance(0.1) else 1, 3)
    dtype = {"strings": "string", "int64s": "int64", "floats": "float32"}[source]
    others = {"strings": ["bird"], "int64s": [100], "floats": [3.25]}[source]
    data = [g.one_of(words[source] + others) for _ in range(size_of(shape))]
    g.node([g.given(dtype, shape, data)], domain=ML, **attributes)


def linear_regressor(g):
    shape = table(g)
    targets = g.integer(1, 3)
    attributes = {"coefficients": eighths(g, targets * shape[1]), "targets": targets}
    if g.chance(0.7):
        attributes["intercepts"] = eighths(g, targets)
    x, transform = g.tensor(g.one_of(INPUTS), shape, "small"), g.maybe(0.6, post_transform=g.one_of(TRANSFORMS))
    g.node([x], domain=ML, tolerance=(1e-3, 1e-4), **attributes, **transform)
    weights, bias = attributes["coefficients"], attributes.get("intercepts", [0.0] * targets)
    scores = [[sum(a * b for a, b in zip(row, weights[t * shape[1]:])) + bias[t] for t in range(targets)] for row in rows_of(x)]
    g.expect("float32", [shape[0], targets], [score for row in scores for score in transformed(row, transform.get("post_transform"))])


def labels(g, count, ints="classlabels_ints"):
    return {ints: g.random.sample(range(-3, 9), count)} if g.chance(0.5) else {
        "classlabels_strings": g.random.sample(["a", "b", "no", "yes", "x"], count)}


def linear_classifier(g):
    shape = table(g, 0)
    classes = g.integer(2, 4)
    rows = 1 if classes == 2 and g.chance(0.5) else classes
    named = labels(g, classes)
    if "classlabels_strings" in named:
        named = {"classlabels_strings": named["classlabels_strings"]}
    g.node([g.tensor(g.one_of(INPUTS), shape, "small")], count=2, domain=ML, coefficients=eighths(g, rows * shape[1]),
           intercepts=eighths(g, rows), tolerance=(1e-3, 1e-4), multi_class=g.integer(0, 1), **named,
           **g.maybe(0.6, post_transform=g.one_of(TRANSFORMS)))


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def kernel(g):
    return {"kernel_type": g.one_of(KERNELS), "kernel_params": [g.integer(1, 4) / 8, g.integer(-4, 4) / 8, float(g.integer(1, 3))]}


def svm_regressor(g):
    shape = table(g, 0)
    supports = g.integer(1, 4)
    attributes = kernel(g) | {"n_supports": supports, "support_vectors": eighths(g, supports * shape[1]),
                              "coefficients": eighths(g, supports), "rho": eighths(g, 1)}
    if g.chance(0.2):  # without support vectors it is linear
        attributes = {"kernel_type": "LINEAR", "coefficients": eighths(g, shape[1]), "rho": eighths(g, 1)}
    g.node([g.tensor("float32", shape, "small")], domain=ML, tolerance=(2e-3, 1e-3), **attributes, **g.maybe(0.2, one_class=1))


def svm_classifier(g):
    shape = table(g, 0)
    classes = g.integer(2, 3)
    per_class = [g.integer(1, 3) for _ in range(classes)]
    supports = sum(per_class)
    pairs = classes * (classes - 1) // 2
    attributes = kernel(g) | labels(g, classes) | {
        "vectors_per_class": per_class, "support_vectors": eighths(g, supports * shape[1]),
        "coefficients": eighths(g, supports * (classes - 1)), "rho": eighths(g, pairs)}
    if g.chance(0.5):
        attributes |= {"prob_a": [-0.5 - g.integer(0, 4) / 8 for _ in range(pairs)], "prob_b": eighths(g, pairs)}
    g.node([g.tensor("float32", shape, "small")], count=2, domain=ML, tolerance=(5e-3, 2e-3), **attributes,
           **g.maybe(0.4, post_transform=g.one_of(["NONE", "SOFTMAX", "LOGISTIC"])))


def forest(g, width, outputs, leaf):
    """The node lists of one to three random trees; leaf(tree, node) is called for each leaf."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    one_mode = g.one_of(modes[:1] * 3 + modes) if g.chance(0.7) else None
    names = "treeids nodeids featureids values modes truenodeids falsenodeids missing_value_tracks_true".split()
    lists = {name: [] for name in names}
    for tree in range(g.integer(1, 3)):
        count = [0]
        def grow(depth):
            node = count[0]
            count[0] += 1
            at = len(lists["treeids"])
            is_leaf = depth == 0 or g.chance(0.25)
            row = [tree, node, g.integer(0, width - 1), g.integer(-8, 8) / 4, "LEAF" if is_leaf else one_mode or g.one_of(modes), 0, 0,
                   g.integer(0, 1)]
            for name, value in zip(names, row):
                lists[name].append(value)
            if is_leaf:
                return leaf(tree, node), node
            lists["truenodeids"][at] = grow(depth - 1)[1]
            lists["falsenodeids"][at] = grow(depth - 1)[1]
            return None, node
        grow(g.integer(0, 4))
    result = {f"nodes_{name}": values for name, values in lists.items()}
    if g.chance(0.5):
        del result["nodes_missing_value_tracks_true"]
    return result


COMPARISONS = {"BRANCH_LEQ": lambda a, b: a <= b, "BRANCH_LT": lambda a, b: a < b, "BRANCH_GTE": lambda a, b: a >= b,
               "BRANCH_GT": lambda a, b: a > b, "BRANCH_EQ": lambda a, b: a == b, "BRANCH_NEQ": lambda a, b: a != b}


def leaves_of(attributes, row):
    """The leaves that a row of features reaches, one of each tree, as (tree, node)."""
    lists = [attributes[f"nodes_{name}"] for name in "treeids nodeids featureids values modes truenodeids falsenodeids".split()]
    tracks = attributes.get("nodes_missing_value_tracks_true", [0] * len(lists[0]))
    nodes = {(item[0], item[1]): item[2:] for item in zip(*lists, tracks)}
    result = []
    for tree in sorted(set(lists[0])):
        at = 0
        while nodes[tree, at][2] != "LEAF":
            feature, value, mode, if_true, if_false, missing_is_true = nodes[tree, at]
            x = row[feature]
            is_true = bool(missing_is_true) if isnan(x) and missing_is_true else COMPARISONS[mode](x, value)
            at = if_true if is_true else if_false
        result.append((tree, at))
    return result


def tree_scores(attributes, prefix, outputs, row, aggregate="SUM"):
    """What the leaves of a row give each output; the base is added behind the aggregate."""
    lists = [attributes[f"{prefix}_{name}"] for name in ("treeids", "nodeids", "ids", "weights")]
    reached = leaves_of(attributes, row)
    scores = []
    for output in range(outputs):
        weights = [weight for tree, node, target, weight in zip(*lists) if target == output and (tree, node) in reached]
        score = {"SUM": sum, "AVERAGE": lambda items: sum(items) / len(reached), "MIN": lambda items: min(items, default=0.0),
                 "MAX": lambda items: max(items, default=0.0)}[aggregate](weights)
        scores.append(score + attributes.get("base_values", [0.0] * outputs)[output])
    return scores


def rows_of(x):
    return [x.data[i:i + x.shape[1]] for i in range(0, len(x.data), x.shape[1])]


def tree_inputs(g, width):
    dtype = g.one_of(INPUTS)
    kind = (lambda: g.one_of([float("nan")] + [g.integer(-8, 8) / 4] * 6)) if is_float(dtype) else "small"
    return [g.tensor(dtype, [g.integer(1, 5), width], kind)]


def tree_regressor(g):
    width, targets = g.integer(1, 4), g.integer(1, 3)
    leaves = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    def leaf(tree, node):
        for target in g.random.sample(range(targets), g.integer(1, targets)):
            for name, value in zip(leaves, [tree, node, target, g.integer(-16, 16) / 8]):
                leaves[name].append(value)
    attributes = forest(g, width, targets, leaf) | {f"target_{name}": values for name, values in leaves.items()}
    attributes["n_targets"] = targets
    if g.chance(0.5):
        attributes["base_values"] = eighths(g, targets)
    attributes |= g.maybe(0.6, aggregate_function=g.one_of(["SUM", "AVERAGE", "MIN", "MAX"]), post_transform=g.one_of(TRANSFORMS))
    inputs = tree_inputs(g, width)
    g.node(inputs, domain=ML, tolerance=(1e-4, 1e-4), **attributes)
    result = [transformed(tree_scores(attributes, "target", targets, row, attributes.get("aggregate_function", "SUM")),
                          attributes.get("post_transform")) for row in rows_of(inputs[0])]
    g.expect("float32", [len(result), targets], [score for row in result for score in row])


def tree_classifier(g):
    width, classes = g.integer(1, 4), g.integer(2, 4)
    named = labels(g, classes, "classlabels_int64s")
    leaves = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    is_binary = classes == 2 and g.chance(0.5)
    def leaf(tree, node):
        for target in range(1 if is_binary else classes):  # ONNX Runtime does not choose a class without a score
            for name, value in zip(leaves, [tree, node, target, g.integer(0 if is_binary else -16, 16) / 8]):
                leaves[name].append(value)
    attributes = forest(g, width, classes, leaf) | {f"class_{name}": values for name, values in leaves.items()} | named
    if g.chance(0.4) and not is_binary:
        attributes["base_values"] = eighths(g, classes)
    if set(leaves["ids"]) != ({0} if is_binary else set(range(classes))):
        raise Unfit
    transform = g.maybe(0.6, post_transform=g.one_of(TRANSFORMS))
    inputs = tree_inputs(g, width)
    g.node(inputs, count=2, domain=ML, tolerance=(1e-4, 1e-4), **attributes, **transform)
    name = transform.get("post_transform", "NONE")
    if is_binary and name != "NONE":
        return  # how one score becomes two is not specified for these
    rows = [tree_scores(attributes, "class", classes, row) for row in rows_of(inputs[0])]
    if is_binary:
        rows = [[1 - row[0], row[0]] for row in rows]
    chosen = [next(iter(named.values()))[row.index(max(row))] for row in rows]
    g.expect("string" if "classlabels_strings" in named else "int64", [len(rows)], chosen)
    g.expect("float32", [len(rows), classes], [score for row in rows for score in transformed(row, name)])


def tree_ensemble(g):
    """Version 5: nodes and leaves are numbered apart."""
    width, targets = g.integer(1, 4), g.integer(1, 2)
    nodes = {name: [] for name in "featureids splits modes truenodeids falsenodeids trueleafs falseleafs".split()}
    leaves = {"targetids": [], "weights": []}
    roots = []
    def grow(depth):
        if depth == 0 or g.chance(0.2):
            leaves["targetids"].append(g.integer(0, targets - 1))
            leaves["weights"].append(g.integer(-16, 16) / 8)
            return len(leaves["weights"]) - 1, 1
        at = len(nodes["modes"])
        for name, value in zip(nodes, [g.integer(0, width - 1), g.integer(-8, 8) / 4, g.integer(0, 5), 0, 0, 0, 0]):
            nodes[name].append(value)
        for side in ("true", "false"):
            nodes[f"{side}nodeids"][at], nodes[f"{side}leafs"][at] = grow(depth - 1)
        return at, 0
    for _ in range(g.integer(1, 3)):
        at, is_leaf = grow(g.integer(1, 3))
        if is_leaf:
            raise Unfit
        roots.append(at)
    dtype = g.one_of(["float32", "float64"])
    pack = lambda values, kind: wire.TensorBytes(wire.tensor("values", kind, [len(values)], values))
    attributes = {f"nodes_{name}": values for name, values in nodes.items() if name not in ("splits", "modes")}
    attributes |= {"nodes_splits": pack(nodes["splits"], dtype), "nodes_modes": pack(nodes["modes"], "uint8"),
                   "leaf_targetids": leaves["targetids"], "leaf_weights": pack(leaves["weights"], dtype),
                   "tree_roots": roots, "n_targets": targets}
    attributes |= g.maybe(0.6, aggregate_function=g.integer(0, 3), post_transform=g.integer(0, 3))
    x = g.tensor(dtype, [g.integer(1, 4), width], lambda: g.integer(-8, 8) / 4)
    g.node([x], domain=ML, tolerance=(1e-4, 1e-4), **attributes)


def category_mapper(g):
    words, numbers = ["a", "cat", "dog", ""], [0, 3, -2, 5]
    attributes = {"cats_strings": words, "cats_int64s": numbers} | g.maybe(0.6, default_int64=-9, default_string="none")
    shape = g.shape(1, 3)
    kind = (lambda: g.integer(-3, 5)) if g.chance(0.5) else None
    x = g.tensor("int64", shape, kind) if kind else g.tensor("string", shape)
    g.node([x], domain=ML, **attributes)


def zip_map(g):
    shape = [g.integer(1, 4)] if g.chance(0.3) else [g.integer(0 if g.chance(0.05) else 1, 3), g.integer(1, 4)]
    x = g.tensor("float32", shape, "small")
    keys = g.random.sample(["a", "b", "cat", ""] if g.chance(0.5) else range(-3, 9), shape[-1])
    kind = "string" if isinstance(keys[0], str) else "int64"
    g.node([x], domain=ML, **{f"classlabels_{kind}{'s'}": list(keys)})
    rows = [x.data[i:i + shape[-1]] for i in range(0, len(x.data), shape[-1])]
    g.expect_file(wire.sequence_of_maps([wire.map_value(kind, keys, "float32", row) for row in rows]))


def given_map(g):
    """A graph input, with its entries as a dictionary."""
    key, value = g.one_of([("string", "float32"), ("string", "int64"), ("int64", "float32"), ("int64", "float64"), ("int64", "string")])
    keys = g.random.sample(["a", "b", "cat", "", "日本"] if key == "string" else range(0, 9), g.integer(0, 4))
    numbers = (lambda: str(g.integer(-9, 9))) if value == "string" else (lambda: g.element(value, "small"))
    entries = {item: numbers() for item in keys}
    g.inputs.append(wire.map_info("entries", key, value))
    g.values.append(wire.map_value(key, list(entries), value, list(entries.values())))
    g.words.append(f"{key}->{value} {entries}".replace(" ", ""))
    return key, value, entries


def dict_vectorizer(g):
    key, value, entries = given_map(g)
    others = ["dog", "x"] if key == "string" else [20, 30]
    vocabulary = g.random.sample(list(entries) + others, g.integer(1, len(entries) + 1))
    name = "string_vocabulary" if key == "string" else "int64_vocabulary"
    g.node(["entries"], domain=ML, **{name: vocabulary})
    nothing = "" if value == "string" else 0
    g.expect(value, [1, len(vocabulary)], [entries.get(item, nothing) for item in vocabulary])


def cast_map(g):
    key, value, entries = given_map(g)
    if key != "int64" or value == "float64":
        raise Unfit
    to = g.one_of(["FLOAT", "INT64", "STRING"])
    if to == "STRING" and value != "string":
        raise Unfit  # how a float is written is not specified
    dtype, convert = {"FLOAT": ("float32", float), "INT64": ("int64", lambda item: int(float(item))), "STRING": ("string", str)}[to]
    attributes = {"cast_to": f"TO_{to}"}
    if g.chance(0.5):
        size = g.integer(1, 10)
        nothing = {"FLOAT": 0.0, "INT64": 0, "STRING": "0.f"}[to]
        row = [convert(entries[i]) if i in entries else nothing for i in range(size)]
        attributes |= {"map_form": "SPARSE", "max_map": size}
    else:
        row = [convert(entries[i]) for i in sorted(entries)]
    g.node(["entries"], domain=ML, **attributes)
    g.expect(dtype, [1, len(row)], row)


OPERATORS = {
    f"{ML}.{name}": ((17,), ml(build, version)) for name, build, version in [
        ("Scaler", scaler, 1), ("Normalizer", normalizer, 1), ("Binarizer", binarizer, 1), ("Imputer", imputer, 1),
        ("FeatureVectorizer", vectorizer, 1), ("ArrayFeatureExtractor", extractor, 1), ("OneHotEncoder", one_hot, 1),
        ("ZipMap", zip_map, 1), ("DictVectorizer", dict_vectorizer, 1), ("CastMap", cast_map, 1),
        ("LabelEncoder", label_encoder, 2), ("CategoryMapper", category_mapper, 1), ("LinearRegressor", linear_regressor, 1), ("LinearClassifier", linear_classifier, 1),
        ("SVMRegressor", svm_regressor, 1), ("SVMClassifier", svm_classifier, 1), ("TreeEnsembleRegressor", tree_regressor, 3),
        ("TreeEnsembleClassifier", tree_classifier, 3), ("TreeEnsemble", tree_ensemble, 5)]}
