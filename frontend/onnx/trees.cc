// TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: their attributes as a Forest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "frontend/onnx/forest.h"
#include "frontend/onnx/labels.h"

namespace relaxc::onnx_import {

namespace {

constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                  "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};

TreeMode mode_of(Node& n, const std::string& name) {
  auto mode = std::ranges::find(kModes, name, [](const char* text) { return std::string_view(text); });
  if (mode == std::end(kModes) || name == "BRANCH_MEMBER")
    n.fail("nodes_modes has '{}', expected BRANCH_LEQ, ... or LEAF", name);
  return static_cast<TreeMode>(mode - std::begin(kModes));
}

// Returns the numbers of a float attribute, or of a tensor that replaces it.
std::vector<double> numbers(Node& n, const char* name, const char* as_tensor, Forest& forest) {
  std::optional<Tensor> tensor = n.opset() >= 3 ? n.attr_tensor(as_tensor) : std::nullopt;
  if (!tensor) return n.attr_floats(name);
  if (n.has_attr(name)) n.fail("attributes '{}' and '{}' are both given", name, as_tensor);
  if (!tensor->dtype().is_float())
    n.fail("attribute '{}' has {}, expected floats", as_tensor, to_string(tensor->dtype()));
  if (tensor->dtype() == kFloat64) forest.is_double = true;
  std::vector<double> result;
  for (int64_t i = 0; i < tensor->size(); ++i) result.push_back(tensor->as_double(i));
  return result;
}
void require_length(Node& n, const char* name, size_t length, size_t expected) {
  if (length != expected) n.fail("attribute '{}' has {} items, expected {}", name, length, expected);
}

// ---- Versions 1 and 3: nodes with names (tree, node), and leaves among them

class NamedNodes {
 public:
  NamedNodes(Node& n, Forest& forest) : n_(n), forest_(forest), trees_(n.required_ints("nodes_treeids")) {
    read();
    std::vector<int64_t> order = by_name();
    for (size_t i = 1; i < order.size(); ++i) {
      if (name(order[i - 1]) == name(order[i]))
        n.fail("node {} of tree {} is there twice", ids_[order[i]], trees_[order[i]]);
    }
    sorted_ = std::move(order);
    link();
  }
  void add_weights(const char* trees, const char* nodes, const char* ids, const char* weights, const char* as_tensor) {
    std::vector<int64_t> tree = n_.required_ints(trees), node = n_.required_ints(nodes), id = n_.required_ints(ids);
    std::vector<double> weight = numbers(n_, weights, as_tensor, forest_);
    require_length(n_, nodes, node.size(), tree.size());
    require_length(n_, ids, id.size(), tree.size());
    require_length(n_, weights, weight.size(), tree.size());
    for (size_t i = 0; i < tree.size(); ++i) {
      auto at = find(tree[i], node[i]);
      if (!at) n_.fail("{}: tree {} has no node {}", nodes, tree[i], node[i]);
      if (id[i] < 0 || id[i] >= forest_.targets)
        n_.fail("attribute '{}' has {}, expected 0 to {}", ids, id[i], forest_.targets - 1);
      if (leaf_[*at] >= 0) forest_.add_weight(leaf_[*at], id[i], weight[i]);
    }
  }

 private:
  std::pair<int64_t, int64_t> name(int64_t i) const { return {trees_[i], ids_[i]}; }
  void read() {
    size_t count = trees_.size();
    auto ints = [&](const char* attribute) {
      std::vector<int64_t> result = n_.required_ints(attribute);
      require_length(n_, attribute, result.size(), count);
      return result;
    };
    ids_ = ints("nodes_nodeids");
    holds_ = ints("nodes_truenodeids");
    fails_ = ints("nodes_falsenodeids");
    std::vector<int64_t> features = ints("nodes_featureids");
    std::vector<std::string> modes = n_.attr_strings("nodes_modes");
    require_length(n_, "nodes_modes", modes.size(), count);
    std::vector<double> values = numbers(n_, "nodes_values", "nodes_values_as_tensor", forest_);
    require_length(n_, "nodes_values", values.size(), count);
    std::vector<int64_t> missing = n_.attr_ints("nodes_missing_value_tracks_true").value_or(std::vector<int64_t>());
    if (!missing.empty()) require_length(n_, "nodes_missing_value_tracks_true", missing.size(), count);
    for (size_t i = 0; i < count; ++i) {
      bool nan_holds = !missing.empty() && missing[i] != 0;
      TreeMode mode = mode_of(n_, modes[i]);
      leaf_.push_back(mode == TreeMode::kLeaf ? std::ssize(forest_.leaves) : -1);
      if (mode == TreeMode::kLeaf) forest_.leaves.emplace_back();
      forest_.nodes.push_back({mode, nan_holds, features[i], values[i]});
    }
  }
  std::vector<int64_t> by_name() const {
    std::vector<int64_t> order = int_range(0, std::ssize(trees_));
    std::ranges::sort(order, {}, [&](int64_t i) { return name(i); });
    return order;
  }
  std::optional<int64_t> find(int64_t tree, int64_t node) const {
    auto it = std::ranges::lower_bound(sorted_, std::pair(tree, node), {}, [&](int64_t i) { return name(i); });
    if (it == sorted_.end() || name(*it) != std::pair(tree, node)) return std::nullopt;
    return *it;
  }
  // Resolves children, and finds the root of each tree: the one test without a parent, or a leaf that is all of it.
  void link() {
    std::vector<int64_t> parents(trees_.size());  // how many each node has; trees may share what is below their tests
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (leaf_[i] >= 0) continue;
      auto child = [&](const char* kind, int64_t node) {
        auto at = find(trees_[i], node);
        if (!at)
          n_.fail("node {} of tree {} has the {} child {}, which the tree does not have", ids_[i], trees_[i], kind,
                  node);
        ++parents[*at];
        return leaf_[*at] >= 0 ? ~leaf_[*at] : *at;
      };
      forest_.nodes[i].holds = child("true", holds_[i]);
      forest_.nodes[i].fails = child("false", fails_[i]);
    }
    std::set<int64_t> open(trees_.begin(), trees_.end()), rooted, tested;
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (parents[i] == 0 && leaf_[i] < 0) tested.insert(trees_[i]);
    }
    for (size_t i = 0; i < trees_.size(); ++i) {
      // Exporters that share leaves leave some behind to which no test leads. These are not roots.
      if (parents[i] > 0 || (leaf_[i] >= 0 && tested.contains(trees_[i]))) continue;
      if (!rooted.insert(trees_[i]).second) n_.fail("node {} is a second root of tree {}", ids_[i], trees_[i]);
      forest_.roots.push_back(leaf_[i] >= 0 ? ~leaf_[i] : static_cast<int64_t>(i));
    }
    for (int64_t tree : open) {
      if (!rooted.contains(tree)) n_.fail("tree {} has no root: its nodes form a cycle", tree);
    }
    refuse_cycles(std::move(parents));
  }

  // Takes each node behind all of its parents. Those that are never taken are on a cycle, or below one. (Kahn)
  void refuse_cycles(std::vector<int64_t> waiting) const {
    std::vector<int64_t> open;
    for (int64_t root : forest_.roots) {
      if (root >= 0) open.push_back(root);
    }
    while (!open.empty()) {
      const TreeNode& node = forest_.nodes[open.back()];
      open.pop_back();
      for (int64_t child : {node.holds, node.fails}) {
        if (child >= 0 && --waiting[child] == 0) open.push_back(child);
      }
    }
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (leaf_[i] < 0 && waiting[i] > 0) n_.fail("nodes of tree {} form a cycle, such as node {}", trees_[i], ids_[i]);
    }
  }

  Node& n_;
  Forest& forest_;
  std::vector<int64_t> trees_, ids_ = {}, holds_ = {}, fails_ = {}, leaf_ = {}, sorted_ = {};
};

std::vector<double> base_values(Node& n, Forest& forest) {
  return numbers(n, "base_values", "base_values_as_tensor", forest);
}

std::string aggregate_of(Node& n, const std::string& name) {
  for (const auto& [given, ours] : {std::pair("SUM", "sum"), {"AVERAGE", "sum"}, {"MIN", "min"}, {"MAX", "max"}}) {
    if (name == given) return ours;
  }
  n.fail("aggregate_function is '{}', expected AVERAGE, SUM, MIN or MAX", name);
}

Expr regressed(Node& n, const Forest& forest, bool is_average) {
  Expr scores = aggregate_trees(n, n.tensor(0), forest);
  return is_average ? n.scaled(scores, 1.0 / static_cast<double>(forest.roots.size())) : scores;
}

Expr tree_regressor(Node& n) {
  Forest forest;
  std::string aggregate = n.attr_string("aggregate_function", "SUM");
  forest.aggregate = aggregate_of(n, aggregate);
  forest.targets = n.attr_int("n_targets", 1);
  if (forest.targets < 1) n.fail("n_targets is {}, expected at least 1", forest.targets);
  forest.is_double = n.dtype(0) == kFloat64;
  NamedNodes nodes(n, forest);
  nodes.add_weights("target_treeids", "target_nodeids", "target_ids", "target_weights", "target_weights_as_tensor");
  std::vector<double> base = base_values(n, forest);
  Expr scores = regressed(n, forest, aggregate == "AVERAGE");
  if (!base.empty()) {
    require_length(n, "base_values", base.size(), static_cast<size_t>(forest.targets));
    scores = n.add(scores, row_of(n, base, n.dtype_of_tensor(scores)));
  }
  std::string transform = post_transform_name(n);
  auto* transformed = forest.targets == 1 ? post_transform_of_one : post_transform;
  return n.cast(transformed(n, scores, transform), kFloat32);
}

// What the weights of a classifier say about its classes.
struct Votes {
  std::vector<bool> used;  // whether a leaf has a weight for the class
  bool all_positive = true;
  std::vector<double> base;
};

Votes votes_of(Node& n, Forest& forest) {
  Votes votes{std::vector<bool>(static_cast<size_t>(forest.targets)), true, base_values(n, forest)};
  for (const auto& leaf : forest.leaves) {
    for (const auto& [target, weight] : leaf) {
      votes.used[static_cast<size_t>(target)] = true;
      votes.all_positive = votes.all_positive && weight >= 0;
    }
  }
  return votes;
}

// The label and the scores [n, 2] of two classes. Where all weights are for one of them, the specification leaves open
// what the other one gets. Positive weights without a transform are probabilities, and the other one is what is left of
// 1, as in ONNX's reference; else it is the negative score, as in ONNX Runtime, whose bases this follows, too.
std::pair<Value, Expr> classify_two(Node& n, const Labels& labels, const Expr& sums, const Votes& votes,
                                    const std::string& transform) {
  Expr first = columns_of(n, sums, 0, 1), second = columns_of(n, sums, 1, 2);
  const bool has_both = votes.used[0] && votes.used[1], has_second = votes.used[1];
  const bool are_probabilities = votes.all_positive && (transform == "NONE" || transform == "PROBIT");
  auto plus = [&](const Expr& x, double value) { return n.add(x, n.scalar_like(value, x)); };
  auto is_above = [&](const Expr& x, const Expr& y) { return n.op("greater", {n.reshape(x, {n.dim_of(x, 0)}), y}); };
  if (!votes.base.empty() && votes.used[0]) first = plus(first, votes.base[0]);
  if (votes.base.size() == 2 && has_second) second = plus(second, votes.base[1]);
  Expr other = has_both ? n.reshape(first, {n.dim_of(first, 0)}) : n.scalar_like(are_probabilities ? 0.5 : 0, first);
  Value label = labels.binary(is_above(has_second ? second : first, other));
  if (has_second || votes.base.size() == 2) return {label, post_transform(n, two_columns(n, first, second), transform)};
  if (transform == "PROBIT") return {label, both_probits(n, first)};
  if (are_probabilities) return {label, two_columns(n, plus(n.op("negative", {first}), 1), first)};
  Expr both = two_columns(n, n.op("negative", {first}), first);
  return {label, transform == "LOGISTIC" ? post_transform(n, both, transform) : both};
}

Outputs tree_classifier(Node& n) {
  Forest forest;
  Labels labels(n, "classlabels_int64s", "classlabels_strings");
  forest.targets = labels.size();
  forest.is_double = n.dtype(0) == kFloat64;
  NamedNodes nodes(n, forest);
  nodes.add_weights("class_treeids", "class_nodeids", "class_ids", "class_weights", "class_weights_as_tensor");
  Votes votes = votes_of(n, forest);
  std::string transform = post_transform_name(n);
  Expr sums = aggregate_trees(n, n.tensor(0), forest);
  auto outputs = [&](const Value& label, const Expr& scores) -> Outputs {
    return {label, n.of(n.cast(scores, kFloat32))};
  };
  if (labels.size() == 2) {
    if (votes.base.size() > 2) require_length(n, "base_values", votes.base.size(), 2);
    auto [label, scores] = classify_two(n, labels, sums, votes, transform);
    return outputs(label, scores);
  }
  if (!votes.base.empty()) {
    require_length(n, "base_values", votes.base.size(), votes.used.size());
    sums = n.add(sums, row_of(n, votes.base, n.dtype_of_tensor(sums)));
  }
  if (labels.size() == 1) {
    Expr is_positive = n.op("greater", {n.reshape(sums, {n.dim_of(sums, 0)}), n.scalar_like(0, sums)});
    return outputs(labels.binary(is_positive), transform == "PROBIT" ? post_transform(n, sums, transform) : sums);
  }
  Expr compared = sums;  // a class without weights does not win
  if (std::vector<double> absent; votes.base.empty() && std::ranges::count(votes.used, false) > 0) {
    for (bool used : votes.used) absent.push_back(used ? 0 : -std::numeric_limits<double>::infinity());
    compared = n.add(sums, row_of(n, absent, n.dtype_of_tensor(sums)));
  }
  return outputs(labels.of_highest(compared), post_transform(n, sums, transform));
}

// ---- Version 5 of ai.onnx.ml: TreeEnsemble, whose leaves are lists of their own

// Returns the sets of the member tests, which NaN ends.
std::vector<std::vector<double>> member_sets(Node& n) {
  std::vector<std::vector<double>> sets(1);
  auto values = n.attr_tensor("membership_values");
  for (int64_t i = 0; values && i < values->size(); ++i) {
    double value = values->as_double(i);
    if (std::isnan(value)) sets.emplace_back();
    if (!std::isnan(value)) sets.back().push_back(value);
  }
  return sets;
}

Tensor required_tensor(Node& n, const char* name) {
  auto tensor = n.attr_tensor(name);
  if (!tensor) n.fail("attribute '{}' is missing", name);
  return *tensor;
}

void read_nodes(Node& n, Forest& forest) {
  std::vector<int64_t> features = n.required_ints("nodes_featureids"), holds = n.required_ints("nodes_truenodeids"),
                       fails = n.required_ints("nodes_falsenodeids"), true_leafs = n.required_ints("nodes_trueleafs"),
                       false_leafs = n.required_ints("nodes_falseleafs");
  std::vector<int64_t> missing = n.attr_ints("nodes_missing_value_tracks_true").value_or(std::vector<int64_t>());
  Tensor splits = required_tensor(n, "nodes_splits"), modes = required_tensor(n, "nodes_modes");
  size_t count = features.size();
  require_length(n, "nodes_splits", static_cast<size_t>(splits.size()), count);
  require_length(n, "nodes_modes", static_cast<size_t>(modes.size()), count);
  for (const auto& [name, list] : {std::pair("nodes_truenodeids", &holds),
                                   {"nodes_falsenodeids", &fails},
                                   {"nodes_trueleafs", &true_leafs},
                                   {"nodes_falseleafs", &false_leafs}})
    require_length(n, name, list->size(), count);
  if (!missing.empty()) require_length(n, "nodes_missing_value_tracks_true", missing.size(), count);
  std::vector<std::vector<double>> sets = member_sets(n);
  size_t next_set = 0;
  for (size_t i = 0; i < count; ++i) {
    auto child = [&](int64_t index, bool is_leaf) {
      int64_t end = is_leaf ? std::ssize(forest.leaves) : static_cast<int64_t>(count);
      if (index < 0 || index >= end)
        n.fail("node {} has the {} {}, expected 0 to {}", i, is_leaf ? "leaf" : "child", index, end - 1);
      return is_leaf ? ~index : index;
    };
    auto at = static_cast<int64_t>(i);
    int64_t mode = modes.as_int(at);
    if (mode < 0 || mode > 6) n.fail("nodes_modes has {}, expected 0 to 6", mode);
    forest.nodes.push_back({static_cast<TreeMode>(mode), !missing.empty() && missing[i] != 0, features[i],
                            splits.as_double(at), child(holds[i], true_leafs[i] != 0),
                            child(fails[i], false_leafs[i] != 0)});
    if (forest.nodes.back().mode != TreeMode::kMember) continue;
    if (next_set >= sets.size())
      n.fail("membership_values has {} sets, fewer than there are BRANCH_MEMBER nodes", sets.size());
    forest.nodes.back().members = sets[next_set++];
  }
}

Expr tree_ensemble(Node& n) {
  Forest forest;
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  auto choice = [&](const char* name, const auto& names, int64_t otherwise) -> std::string {
    int64_t value = n.attr_int(name, otherwise);
    if (value < 0 || value >= std::ssize(names))
      n.fail("{} is {}, expected 0 to {}", name, value, std::ssize(names) - 1);
    return names[value];
  };
  std::string aggregate = choice("aggregate_function", kAggregates, 1);
  forest.aggregate = aggregate_of(n, aggregate);
  DType dtype = n.dtype(0);
  forest.is_double = dtype == kFloat64;
  std::vector<int64_t> targets = n.required_ints("leaf_targetids");
  Tensor weights = required_tensor(n, "leaf_weights");
  require_length(n, "leaf_weights", static_cast<size_t>(weights.size()), targets.size());
  forest.targets = n.has_attr("n_targets") ? n.attr_int("n_targets", 1) : 1;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= forest.targets)
      n.fail("leaf_targetids has {}, expected 0 to {}", targets[i], forest.targets - 1);
    forest.leaves.push_back({{targets[i], weights.as_double(static_cast<int64_t>(i))}});
  }
  read_nodes(n, forest);
  forest.roots = n.required_ints("tree_roots");
  for (int64_t root : forest.roots) {
    if (root < 0 || root >= std::ssize(forest.nodes))
      n.fail("tree_roots has {}, expected 0 to {}", root, std::ssize(forest.nodes) - 1);
  }
  Expr scores = regressed(n, forest, aggregate == "AVERAGE");
  auto* transformed = forest.targets == 1 ? post_transform_of_one : post_transform;
  return n.cast(transformed(n, scores, choice("post_transform", kTransforms, 0)), dtype);
}

#define RELAXC_NODES                                                                                              \
  "nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes nodes_nodeids " \
  "nodes_treeids nodes_truenodeids nodes_values base_values post_transform "
#define RELAXC_TENSORS "nodes_hitrates_as_tensor nodes_values_as_tensor base_values_as_tensor "
#define RELAXC_CLASSES "class_ids class_nodeids class_treeids class_weights classlabels_int64s classlabels_strings "
#define RELAXC_TARGETS "aggregate_function n_targets target_ids target_nodeids target_treeids target_weights "
constexpr const char* kMl = "ai.onnx.ml";

}  // namespace

std::vector<ConverterRow> trees_converters() {
  return {
      {"TreeEnsembleClassifier", 1, 1, 1, tree_classifier, RELAXC_NODES RELAXC_CLASSES, kMl},
      {"TreeEnsembleClassifier", 3, 1, 1, tree_classifier,
       RELAXC_NODES RELAXC_CLASSES RELAXC_TENSORS "class_weights_as_tensor", kMl},
      {"TreeEnsembleRegressor", 1, 1, 1, tree_regressor, RELAXC_NODES RELAXC_TARGETS, kMl},
      {"TreeEnsembleRegressor", 3, 1, 1, tree_regressor,
       RELAXC_NODES RELAXC_TARGETS RELAXC_TENSORS "target_weights_as_tensor", kMl},
      {"TreeEnsemble", 5, 1, 1, tree_ensemble,
       "aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs nodes_falsenodeids "
       "nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes nodes_splits nodes_trueleafs "
       "nodes_truenodeids post_transform tree_roots",
       kMl},
  };
}

}  // namespace relaxc::onnx_import
