// Compiles decision trees: every test becomes `column <= threshold`, and the trees become the constants of
// trees.complete (shallow ones) and trees.walk.
#include "frontend/onnx/forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "ops/trees.h"

namespace relaxc::onnx_import {

namespace {

constexpr int kMostCompleteDepth = 6;     // 2^depth tests take as long as a descent of that depth
constexpr size_t kFewTrees = 16;          // which join deeper ones
constexpr int64_t kChunkBytes = 1 << 18;  // of nodes of trees.walk, which stay in the L2 cache
constexpr int64_t kChunkTests = 10000;    // of one row in trees.complete: about as long as a thread takes to wake
constexpr int64_t kMostWeights = int64_t{1} << 28;
constexpr double kInf = std::numeric_limits<double>::infinity();

// A test whose left child, where it holds, is the first of a pair; or a leaf.
struct Record {
  int32_t column = 0;
  int depth = 0;
  double threshold = 0;
  int64_t pair = -1, leaf = -1;
};
using Pair = std::array<Record, 2>;

// The values up to each cut, and behind the last one, have an outcome each: whether the test holds.
struct Cuts {
  std::vector<double> at = {};
  std::vector<bool> outcomes = {};
};

double before(double value, bool is_double) {
  return is_double ? std::nextafter(value, -kInf)
                   : std::nextafter(static_cast<float>(value), -std::numeric_limits<float>::infinity());
}

// Returns the cuts around each of the values, which are sorted.
Cuts cuts_of_set(const std::vector<double>& members, bool is_double) {
  Cuts cuts{{}, {false}};
  for (double member : members) {
    if (!cuts.at.empty() && cuts.at.back() == before(member, is_double)) {  // no value is between it and the last one
      cuts.at.back() = member;
      continue;
    }
    if (member == -kInf) {
      cuts.outcomes.back() = true;
    } else {
      cuts.at.push_back(before(member, is_double));
      cuts.outcomes.push_back(true);
    }
    cuts.at.push_back(member);
    cuts.outcomes.push_back(false);
  }
  return cuts;
}

Cuts cuts_of(const TreeNode& node, bool is_double) {
  using enum TreeMode;
  TreeMode mode = node.mode;
  if (mode == kMember) {
    std::vector<double> members = node.members;
    std::erase_if(members, [](double m) { return std::isnan(m); });
    for (double& m : members) m += 0.0;  // -0 is 0
    std::ranges::sort(members);
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return cuts_of_set(members, is_double);
  }
  bool inverts = mode == kGte || mode == kGt || mode == kNeq;
  if (std::isnan(node.value)) return {{}, {mode == kNeq}};
  if (mode == kEq || mode == kNeq) {
    Cuts cuts = cuts_of_set({node.value + 0.0}, is_double);
    if (inverts) cuts.outcomes.flip();
    return cuts;
  }
  bool is_strict = mode == kLt || mode == kGte;
  if (is_strict && node.value == -kInf) return {{}, {inverts}};
  return {{is_strict ? before(node.value, is_double) : node.value}, {!inverts, inverts}};
}

class Compiler {
 public:
  Compiler(Node& n, const Forest& forest, int64_t features) : n_(n), forest_(forest), features_(features) {}

  // Returns the root of a tree, and appends the pairs of its nodes, children first. A node that several tests lead to,
  // of one tree or of several, has its pairs once.
  Record compile(size_t tree) {
    int64_t root = forest_.roots[tree];
    std::vector<int64_t> open;
    if (root >= 0) open.push_back(root);
    states_.resize(forest_.nodes.size());
    records_.resize(forest_.nodes.size());
    while (!open.empty()) {
      int64_t at = open.back();
      if (states_[at] != State::kNew) {
        open.pop_back();
        if (std::exchange(states_[at], State::kDone) == State::kOpen) records_[at] = compile_node(forest_.nodes[at]);
        continue;
      }
      states_[at] = State::kOpen;
      for (int64_t child : {forest_.nodes[at].holds, forest_.nodes[at].fails}) {
        if (child < 0) continue;
        if (states_[child] == State::kOpen) n_.fail("node {} of the trees is its own descendant", child);
        if (states_[child] == State::kNew) open.push_back(child);
      }
    }
    return record_of(root);
  }

  std::vector<Pair> pairs = {};
  std::vector<int32_t> columns = {};  // -1 - feature: NaN goes left

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };  // open: the nodes below it are being compiled

  Record record_of(int64_t child) const {
    if (child >= 0) return records_[child];
    Record leaf;
    leaf.leaf = ~child;
    return leaf;
  }
  Record compile_node(const TreeNode& node) {
    if (node.feature < 0 || node.feature >= features_)
      n_.fail("a tree tests feature {}, but the input has {}", node.feature, features_);
    Cuts cuts = cuts_of(node, forest_.is_double);
    bool nan_outcome = node.nan_holds || node.mode == TreeMode::kNeq;
    bool nan_left = cuts.outcomes.back() != nan_outcome && cuts.outcomes.front() == nan_outcome;
    if (cuts.outcomes.back() != nan_outcome && !nan_left) {
      cuts.at.push_back(kInf);
      cuts.outcomes.push_back(nan_outcome);
    }
    return test(node, cuts, nan_left, 0, cuts.at.size());
  }
  // Returns the search among the cuts [low, high).
  Record test(const TreeNode& node, const Cuts& cuts, bool nan_left, size_t low, size_t high) {
    if (low == high) return record_of(cuts.outcomes[low] ? node.holds : node.fails);
    size_t middle = (low + high) / 2;
    Record left = test(node, cuts, nan_left, low, middle), right = test(node, cuts, nan_left, middle + 1, high);
    pairs.push_back({left, right});
    return {column(node.feature, nan_left), std::max(left.depth, right.depth) + 1, cuts.at[middle],
            std::ssize(pairs) - 1, -1};
  }
  int32_t column(int64_t feature, bool nan_left) {
    auto source = static_cast<int32_t>(nan_left ? -1 - feature : feature);
    auto [it, is_new] = column_of_.emplace(source, static_cast<int32_t>(columns.size()));
    if (is_new) columns.push_back(source);
    return it->second;
  }

  Node& n_;
  const Forest& forest_;
  int64_t features_;
  std::vector<State> states_ = {};
  std::vector<Record> records_ = {};
  std::map<int32_t, int32_t> column_of_ = {};
};

template <class T>
Expr constant_of(Node& n, std::vector<int64_t> shape, DType dtype, const std::vector<T>& values) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      tensor.set_double(static_cast<int64_t>(i), values[i]);
    } else {
      tensor.set_int(static_cast<int64_t>(i), values[i]);
    }
  }
  return constant(std::move(tensor), n.span());
}

// The trees of one operator.
class Emitter {
 public:
  Emitter(Node& n, const Expr& x, const Forest& forest, Compiler& compiler, std::vector<Record> roots)
      : n_(n),
        x_(x),
        forest_(forest),
        compiler_(compiler),
        roots_(std::move(roots)),
        place_(compiler.pairs.size()),
        waiting_(compiler.pairs.size()),
        seen_in_(compiler.pairs.size()) {
    if (compiler_.columns.empty()) compiler_.columns.push_back(0);
    attrs_.targets = forest_.targets;
    attrs_.aggregate = forest_.aggregate;
    neutral_ = forest_.aggregate == "sum" ? 0 : forest_.aggregate == "min" ? kInf : -kInf;
    has_many_ = !std::ranges::all_of(roots_, [&](const Record& root) { return has_one_target(root); });
  }

  // Chooses by the depth of the first tree: all are as shallow as it is, or deep.
  Expr emit(int depth) {
    int64_t count = std::ssize(roots_);
    return depth <= kMostCompleteDepth ? complete(std::max(depth, 1), count) : walk(count);
  }

 private:
  // Calls f with each record that is reachable from the root, once for each pair.
  template <class F>
  void visit(const Record& root, const F& f) {
    std::vector<Record> open = {root};
    ++visits_;
    while (!open.empty()) {
      Record record = open.back();
      open.pop_back();
      f(record);
      if (record.pair < 0 || std::exchange(seen_in_[record.pair], visits_) == visits_) continue;
      for (const Record& child : compiler_.pairs[record.pair]) open.push_back(child);
    }
  }
  bool has_one_target(const Record& root) {
    std::optional<int64_t> target;
    bool is_one = true;
    visit(root, [&](const Record& record) {
      if (record.leaf < 0) return;
      const auto& weights = forest_.leaves[record.leaf];
      if (weights.empty()) is_one = is_one && neutral_ == 0;
      if (weights.size() > 1) is_one = false;
      if (weights.empty()) return;
      is_one = is_one && !std::isnan(weights[0].second) && target.value_or(weights[0].first) == weights[0].first;
      target = weights[0].first;
    });
    targets_.push_back(target.value_or(0));
    return is_one;
  }
  double value_of(int64_t leaf) const {
    const auto& weights = forest_.leaves[leaf];
    return weights.empty() ? 0 : weights[0].second;
  }
  // Writes the weights of a leaf, one for each target.
  void write_weights(int64_t leaf, std::vector<double>& out, int64_t row) const {
    for (const auto& [target, weight] : forest_.leaves[leaf]) out[row * forest_.targets + target] = weight;
  }
  void require_room(int64_t leaves) const {
    if (leaves > kMostWeights / forest_.targets)
      n_.unsupported("{} leaves with weights of {} targets; at most {} weights fit", leaves, forest_.targets,
                     kMostWeights);
  }
  Expr columns() const { return constant_of(n_, {std::ssize(compiler_.columns)}, kInt32, compiler_.columns); }
  Expr call(const char* name, std::vector<Expr> args, int64_t chunks) {
    attrs_.chunks = chunks;
    args.insert(args.begin(), {x_, columns()});
    Expr parts = n_.builder().op(name, args, attrs_);
    if (chunks > 1) return n_.reduce(forest_.aggregate.c_str(), parts, {1}, false);
    return n_.reshape(parts, {n_.dim_of(x_, 0), int_imm(forest_.targets)});
  }

  void fill(const Record& record, int64_t at, int64_t tests, int64_t tree) {
    if (at >= tests) {
      int64_t row = tree * (tests + 1) + at - tests;
      if (has_many_) write_weights(record.leaf, leaves_, row);
      if (!has_many_) leaves_[row] = value_of(record.leaf);
      return;
    }
    bool is_leaf = record.leaf >= 0;  // a leaf is below both sides of a test
    tests_[tree * tests + at] = record.column;
    thresholds_[tree * tests + at] = is_leaf ? kInf : record.threshold;
    for (int64_t side : {0, 1})
      fill(is_leaf ? record : compiler_.pairs[record.pair][side], 2 * at + 1 + side, tests, tree);
  }
  Expr complete(int depth, int64_t count) {
    const int64_t tests = (1 << depth) - 1, targets = forest_.targets;
    const DType dtype = forest_.is_double ? kFloat64 : kFloat32;
    require_room(has_many_ ? count * (tests + 1) : 0);
    tests_.resize(count * tests);
    thresholds_.resize(count * tests);
    leaves_.resize(count * (tests + 1) * (has_many_ ? targets : 1), has_many_ ? neutral_ : 0);
    for (int64_t tree = 0; tree < count; ++tree) fill(roots_[tree], 0, tests, tree);
    std::vector<int64_t> shape = {count, tests + 1};
    if (has_many_) shape.push_back(targets);
    std::vector<Expr> args = {constant_of(n_, {count, tests}, kInt32, tests_),
                              constant_of(n_, {count, tests}, dtype, thresholds_),
                              constant_of(n_, shape, dtype, leaves_)};
    if (!has_many_) args.push_back(constant_of(n_, {count}, kInt32, targets_));
    return call("trees.complete", args, std::clamp<int64_t>(count * depth / kChunkTests, 1, count));
  }

  // Gives each pair of a tree its place behind all that lead to it. (Kahn)
  void place_pairs(const Record& root) {
    visit(root, [&](const Record& record) {
      if (record.pair >= 0) ++waiting_[record.pair];
    });
    std::vector<Record> ready = {root};
    roots_at_.push_back(std::ssize(order_));
    order_.push_back(root);
    for (size_t i = 0; i < ready.size(); ++i) {
      int64_t pair = ready[i].pair;
      if (pair < 0 || --waiting_[pair] > 0) continue;
      place_[pair] = std::ssize(order_);
      for (const Record& child : compiler_.pairs[pair]) {
        order_.push_back(child);
        ready.push_back(child);
      }
    }
  }
  Expr walk(int64_t count) {
    for (const Record& root : roots_) place_pairs(root);
    const int64_t columns = std::ssize(compiler_.columns), nodes = std::ssize(order_);
    const int bits = std::bit_width(static_cast<uint64_t>(columns));
    bool is_wide = forest_.is_double || nodes >= int64_t{1} << (31 - bits);
    DType words = is_wide ? kInt64 : kInt32, dtype = is_wide ? kFloat64 : kFloat32;
    std::vector<int64_t> numbers;
    std::vector<int64_t> row_of_leaf(forest_.leaves.size(), -1);
    int64_t rows = 0;
    for (int64_t i = 0; i < nodes; ++i) {
      const Record& record = order_[i];
      int64_t child = record.leaf >= 0 ? i : place_[record.pair];
      numbers.push_back((child << bits) | (record.leaf >= 0 ? columns : record.column));
      if (record.leaf >= 0 && has_many_) {
        int64_t& row = row_of_leaf[record.leaf];
        if (row < 0) row = rows++;
        numbers.push_back(row);
      } else {
        double value = record.leaf >= 0 ? value_of(record.leaf) : record.threshold;
        numbers.push_back(is_wide ? std::bit_cast<int64_t>(value) : std::bit_cast<int32_t>(static_cast<float>(value)));
      }
    }
    require_room(rows);
    leaves_.resize(rows * forest_.targets, neutral_);
    for (size_t leaf = 0; leaf < row_of_leaf.size(); ++leaf) {
      if (row_of_leaf[leaf] >= 0) write_weights(static_cast<int64_t>(leaf), leaves_, row_of_leaf[leaf]);
    }
    attrs_.column_bits = bits;
    int64_t chunks = std::clamp<int64_t>(nodes * 2 * words.bytes() / kChunkBytes, 1, (count + 15) / 16);
    return call("trees.walk",
                {constant_of(n_, {nodes, 2}, words, numbers), constant_of(n_, {count}, kInt64, roots_at_),
                 has_many_ ? constant_of(n_, {rows, forest_.targets}, dtype, leaves_)
                           : constant_of(n_, {count}, kInt32, targets_)},
                chunks);
  }

  Node& n_;
  Expr x_;
  const Forest& forest_;
  Compiler& compiler_;
  std::vector<Record> roots_;
  TreesAttrs attrs_ = {};
  double neutral_;
  bool has_many_;
  std::vector<int64_t> targets_ = {}, roots_at_ = {}, tests_ = {};
  std::vector<double> thresholds_ = {}, leaves_ = {};
  std::vector<Record> order_ = {};
  std::vector<int64_t> place_, waiting_, seen_in_;  // of each pair
  int64_t visits_ = 0;
};

}  // namespace

void Forest::add_weight(int64_t leaf, int64_t target, double weight) {
  for (auto& [known, value] : leaves[leaf]) {
    if (known != target) continue;
    value = aggregate == "sum"   ? value + weight
            : aggregate == "min" ? std::min(value, weight)
                                 : std::max(value, weight);
    return;
  }
  leaves[leaf].emplace_back(target, weight);
}

// Returns rows of which the number of features is known: those that the trees ask for, where the model leaves it open.
static Expr rows_of_features(Node& n, const Expr& x, const Forest& forest) {
  if (n.shape_of(x).size() != 2) n.fail("the input has rank {}, expected 2: rows of features", n.shape_of(x).size());
  const Expr& width = n.dim_of(x, 1);
  if (as_int(n.simplify(width))) return x;
  int64_t most = 0;
  for (const TreeNode& node : forest.nodes) most = std::max<int64_t>(most, node.feature);
  n.require_at_most(int_imm(most + 1), width, "features that the trees ask for, and those of the input");
  return n.slice(x, 1, int_imm(0), int_imm(most + 1));
}

Expr aggregate_trees(Node& n, const Expr& input, const Forest& forest) {
  const Expr x = rows_of_features(n, input, forest);
  auto features = as_int(n.simplify(n.dim_of(x, 1)));
  RELAXC_CHECK(features, "the number of features is open");
  if (*features < 1 || *features > INT32_MAX) n.fail("the input has {} features", *features);
  if (forest.roots.empty()) n.fail("there are no trees");
  Compiler compiler(n, forest, *features);
  std::map<int, std::vector<Record>> of_depth;
  for (size_t tree = 0; tree < forest.roots.size(); ++tree) {
    Record root = compiler.compile(tree);
    of_depth[std::min(std::max(root.depth, 1), kMostCompleteDepth + 1)].push_back(root);
  }
  for (auto it = of_depth.begin(); std::next(it) != of_depth.end();) {  // a few trees join the next deeper ones
    auto next = std::next(it);
    if (it->second.size() < kFewTrees) {
      next->second.insert(next->second.begin(), it->second.begin(), it->second.end());
      it = of_depth.erase(it);
    } else {
      it = next;
    }
  }
  std::optional<Expr> result;
  const char* combine = forest.aggregate == "sum" ? "add" : forest.aggregate == "min" ? "minimum" : "maximum";
  DType dtype = forest.is_double ? kFloat64 : kFloat32;
  for (auto& [depth, roots] : of_depth) {
    Expr part = n.cast(Emitter(n, x, forest, compiler, std::move(roots)).emit(depth), dtype);
    result = result ? n.binary(combine, *result, part) : part;
  }
  if (forest.aggregate == "sum") return *result;
  Expr is_absent = n.op("isinf", {*result});  // no leaf had a weight for the target
  return n.op("where", {is_absent, n.scalar(0, dtype), *result});
}

Expr row_of(Node& n, const std::vector<double>& values, DType dtype) {
  return constant_of(n, {1, std::ssize(values)}, dtype, values);
}

namespace {

// The approximation of the inverse error function that ONNX Runtime and ONNX's reference use (Winitzki, 2008).
Expr probit(Node& n, const Expr& p) {
  constexpr double kA = 0.147, kPi = 3.14159;
  auto number = [&](double value) { return n.scalar_like(value, p); };
  Expr x = n.sub(n.scaled(p, 2), number(1));
  Expr log = n.op("log", {n.mul(n.sub(number(1), x), n.add(number(1), x))});
  Expr half = n.add(number(2 / (kPi * kA)), n.scaled(log, 0.5));
  Expr root = n.op("sqrt", {n.sub(n.mul(half, half), n.scaled(log, 1 / kA))});
  Expr magnitude = n.op("sqrt", {n.sub(root, half)});
  Expr inverse = n.op("where", {n.op("less", {x, number(0)}), n.op("negative", {magnitude}), magnitude});
  return n.scaled(inverse, 1.41421356);
}
// A softmax over what is not zero.
Expr softmax_zero(Node& n, const Expr& scores) {
  Expr most = n.reduce("max", scores, {1}, true), zero = n.scalar_like(0, scores);
  Expr is_zero = n.op("less_equal", {n.op("abs", {scores}), n.scalar_like(1e-7, scores)});
  Expr power = n.op("exp", {n.sub(scores, most)});
  Expr total = n.reduce("sum", n.op("where", {is_zero, zero, power}), {1}, true);
  Expr small = n.mul(scores, n.op("exp", {n.op("negative", {most})}));
  return n.div(n.op("where", {is_zero, small, power}), total);
}

}  // namespace

std::string post_transform_name(Node& n) {
  std::string name = n.attr_string("post_transform", "NONE");
  for (std::string_view known : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"}) {
    if (name == known) return name;
  }
  n.fail("post_transform is '{}', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT", name);
}

Expr post_transform(Node& n, const Expr& scores, const std::string& name) {
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return n.op("sigmoid", {scores});
  if (name == "SOFTMAX") return n.op("nn.softmax", {scores}, LastAxisAttrs{-1});
  if (name == "SOFTMAX_ZERO") return softmax_zero(n, scores);
  return probit(n, scores);
}

Expr post_transform_of_one(Node& n, const Expr& scores, const std::string& name) {
  Expr result = post_transform(n, scores, name);
  return name == "PROBIT" ? result : scores;
}

}  // namespace relaxc::onnx_import
