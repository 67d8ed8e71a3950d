"""Trains forests with scikit-learn (and XGBoost, where it is installed) and writes them as ONNX models.

usage: /usr/bin/python3 bench/trees/export.py FOLDER [--trees 500]

Each model gets a folder with model.onnx and test_data_BATCH/ for three sizes: rows and what the library itself predicts
for them. `relaxc run FOLDER/boosted/model.onnx --test-data FOLDER/boosted/test_data_100` compares.
"""
import argparse
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import (GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingRegressor,
                              RandomForestClassifier, RandomForestRegressor)

FEATURES = 20
BATCHES = (1, 100, 1000)


class Nodes:
    """The attributes of a tree ensemble, filled node by node. `kind` is "target" or "class"."""

    def __init__(self, kind):
        self.kind = kind
        self.columns = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                                              "falsenodeids", "missing_value_tracks_true")}
        self.weights = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def branch(self, tree, node, feature, threshold, left, right, missing_left=False, mode="BRANCH_LEQ"):
        row = (tree, node, int(feature), mode, float(threshold), int(left), int(right), int(missing_left))
        for column, value in zip(self.columns.values(), row):
            column.append(value)

    def leaf(self, tree, node, weights):
        self.branch(tree, node, 0, 0, 0, 0, mode="LEAF")
        for target, weight in weights:
            for column, value in zip(self.weights.values(), (tree, node, target, float(weight))):
                column.append(value)

    def attributes(self):
        result = {f"nodes_{name}": values for name, values in self.columns.items()}
        result.update({f"{self.kind}_{name}": values for name, values in self.weights.items()})
        return result


def add_sklearn_tree(nodes, number, tree, weights_of):
    for node in range(tree.node_count):
        if tree.children_left[node] < 0:
            nodes.leaf(number, node, weights_of(tree.value[node]))
        else:  # scikit-learn compares float32 features with float64 thresholds: the next lower float32 does the same
            threshold = np.float32(tree.threshold[node])
            if threshold > tree.threshold[node]:
                threshold = np.nextafter(threshold, np.float32(-np.inf))
            nodes.branch(number, node, tree.feature[node], threshold, tree.children_left[node],
                         tree.children_right[node])


def boosted_regressor(model):
    nodes = Nodes("target")
    for number, (tree,) in enumerate(model.estimators_):
        add_sklearn_tree(nodes, number, tree.tree_, lambda value: [(0, model.learning_rate * value[0, 0])])
    return "TreeEnsembleRegressor", dict(nodes.attributes(), n_targets=1, base_values=[float(model.init_.constant_)])


def boosted_classifier(model):
    nodes = Nodes("class")
    for number, (tree,) in enumerate(model.estimators_):
        add_sklearn_tree(nodes, number, tree.tree_, lambda value: [(0, model.learning_rate * value[0, 0])])
    positive = model.init_.class_prior_[1]
    return "TreeEnsembleClassifier", dict(nodes.attributes(), classlabels_int64s=[0, 1], post_transform="LOGISTIC",
                                          base_values=[float(np.log(positive / (1 - positive)))])


def forest_regressor(model):
    nodes = Nodes("target")
    for number, tree in enumerate(model.estimators_):
        add_sklearn_tree(nodes, number, tree.tree_, lambda value: [(0, value[0, 0])])
    return "TreeEnsembleRegressor", dict(nodes.attributes(), n_targets=1, aggregate_function="AVERAGE")


def forest_classifier(model):
    nodes = Nodes("class")
    count = len(model.estimators_)
    for number, tree in enumerate(model.estimators_):
        add_sklearn_tree(nodes, number, tree.tree_,
                         lambda value: [(k, weight / value[0].sum() / count) for k, weight in enumerate(value[0])])
    return "TreeEnsembleClassifier", dict(nodes.attributes(), post_transform="NONE",
                                          classlabels_int64s=[int(label) for label in model.classes_])


def histogram_regressor(model):
    """Trees that grow leaf by leaf, with 31 leaves, as LightGBM's; NaN goes where it fitted better."""
    nodes = Nodes("target")
    for number, (predictor,) in enumerate(model._predictors):
        for i, node in enumerate(predictor.nodes):
            if node["is_leaf"]:
                nodes.leaf(number, i, [(0, node["value"])])
            else:
                threshold = np.float32(node["num_threshold"])
                if threshold > node["num_threshold"]:
                    threshold = np.nextafter(threshold, np.float32(-np.inf))
                nodes.branch(number, i, node["feature_idx"], threshold, node["left"], node["right"],
                             node["missing_go_to_left"])
    return "TreeEnsembleRegressor", dict(nodes.attributes(), n_targets=1,
                                         base_values=[float(np.ravel(model._baseline_prediction)[0])])


def xgboost_regressor(model):
    """XGBoost's trees: `feature < threshold` in float32, NaN by its own rule."""
    nodes = Nodes("target")
    for number, text in enumerate(model.get_booster().get_dump(dump_format="json")):
        open_nodes = [json.loads(text)]
        while open_nodes:
            node = open_nodes.pop()
            if "leaf" in node:
                nodes.leaf(number, node["nodeid"], [(0, node["leaf"])])
                continue
            nodes.branch(number, node["nodeid"], int(node["split"][1:]), np.float32(node["split_condition"]), node["yes"],
                         node["no"], node["missing"] == node["yes"], mode="BRANCH_LT")
            open_nodes += node["children"]
    return "TreeEnsembleRegressor", dict(nodes.attributes(), n_targets=1, base_values=[0.5])


def models(trees, x, number, label):
    yield "boosted", boosted_regressor, GradientBoostingRegressor(n_estimators=trees, max_depth=3), number
    yield "boosted_classes", boosted_classifier, GradientBoostingClassifier(n_estimators=trees), label % 2
    yield "leafwise", histogram_regressor, HistGradientBoostingRegressor(max_iter=trees, early_stopping=False), number
    yield "forest", forest_regressor, RandomForestRegressor(n_estimators=trees), number
    yield "forest_classes", forest_classifier, RandomForestClassifier(n_estimators=trees), label
    try:
        import xgboost
    except ImportError:
        return
    yield "xgboost", xgboost_regressor, xgboost.XGBRegressor(n_estimators=trees, max_depth=6, base_score=0.5), number


def write(folder, op_type, attributes, model, x):
    outputs = ["label", "scores"] if op_type.endswith("Classifier") else ["scores"]
    node = helper.make_node(op_type, ["x"], outputs, domain="ai.onnx.ml", **attributes)
    columns = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])]
    dtypes = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
    graph = helper.make_graph([node], "forest", columns,
                              [helper.make_tensor_value_info(name, dtypes[name], None) for name in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(folder / "model.onnx"))
    for batch in BATCHES:
        rows = x[:batch]
        data = folder / f"test_data_{batch}"
        data.mkdir(exist_ok=True)
        if len(outputs) == 2:
            expected = [model.predict(rows).astype(np.int64), model.predict_proba(rows).astype(np.float32)]
        else:
            expected = [model.predict(rows).astype(np.float32)[:, None]]
        (data / "input_0.pb").write_bytes(numpy_helper.from_array(rows, "x").SerializeToString())
        for i, (name, value) in enumerate(zip(outputs, expected)):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, (2000, FEATURES)).astype(np.float32)
    number = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] ** 2 + random.normal(0, 0.1, len(x))
    label = np.digitize(number, np.quantile(number, [0.33, 0.66]))
    rows = random.uniform(-1, 1, (max(BATCHES), FEATURES)).astype(np.float32)
    for name, convert, model, target in models(options.trees, x, number, label):
        model.random_state = 7
        model.fit(x, target)
        write(options.folder / name, *convert(model), model, rows)
        print(f"wrote {options.folder / name}")


if __name__ == "__main__":
    main()
