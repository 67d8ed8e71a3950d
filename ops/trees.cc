// Ensembles of decision trees, in two forms that the compiler makes of any other (frontend/onnx/trees.cc). A node tests
// `column <= threshold` and goes left where that holds; NaN goes right. The columns are a copy of the features that the
// trees use: it stays in the L1 cache, and has a feature twice where NaN goes left in some nodes.
//
//   complete: shallow trees, padded to one depth. All tests of a tree run for a vector of rows at once, and selects
//   from
//             the bottom to the top choose the leaf, without a branch or a gather.
//   walk:     trees of any shape. A node is a pair (child << column_bits | column, bits of the threshold); the right
//             child follows the left one, and a leaf leads to itself. Some rows descend side by side, so that they wait
//             for memory together. (Asadi, Lin and de Vries, "Runtime Optimizations for Tree-based Machine Learning
//             Models", 2014)
//
// The result [n, chunks, targets] has the aggregate of each chunk of trees: tasks for threads even with one row, and
// the same bits for any number of threads.
#include "ops/trees.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/op_names.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

constexpr int64_t kSideBySide = 16;      // rows or trees whose descents are interleaved
constexpr int64_t kVectorBytes = 64;     // of a column, that complete trees test at once
constexpr int64_t kMostDepth = 10;       // of complete trees
constexpr int64_t kMostBits = 24;        // of a column's number
constexpr int64_t kLeastBlocks = 16;     // of many rows, for threads to share
constexpr int64_t kCopyBytes = 1 << 15;  // of the columns of a block of rows, about

// ---- What both forms share: tasks, the copy of the columns, and accumulators for a block of rows.

using RowsOfTrees = std::function<Stmt(const Expr& first, const Expr& end)>;  // for trees [first, end)

struct Forest {
  Forest(const OpCall& op, DType dtype, int64_t trees, int64_t rows, bool has_row_columns)
      : attrs(op.attrs<TreesAttrs>()),
        program(op),
        x(program.inputs),
        dtype(dtype),
        trees(trees),
        rows(rows),
        has_row_columns(has_row_columns),
        n(op.shape(0)[0]),
        number_of_columns(*as_int(op.shape(1)[0])) {
    bool has_nan = op.dtype(0).is_float();
    const Constant* given = op.arg(1).as<Constant>();
    for (int64_t c = 0; c < number_of_columns; ++c)
      has_nan_left = has_nan_left || (has_nan && given->data.as_int(c) < 0);
    Expr width = int_imm(has_row_columns ? int64_t{1} << attrs.column_bits : number_of_columns);
    std::vector<Expr> copied = {width, int_imm(rows)}, kept = {int_imm(attrs.targets), int_imm(rows)};
    if (has_row_columns) std::swap(copied[0], copied[1]);
    if (has_many()) std::swap(kept[0], kept[1]);
    columns = make_buffer("columns", dtype, copied);
    kept_values = make_buffer("values", dtype, kept);
    result = program.builder.buffer("T_trees", dtype, {n, int_imm(attrs.chunks), int_imm(attrs.targets)});
  }
  bool has_many() const { return buffer_type(leaves()).dtype.is_float() && buffer_type(leaves()).shape.size() > 1; }
  const Buffer& leaves() const { return x.back(); }

  Expr column(const Expr& c, const Expr& row) const {
    return has_row_columns ? load(columns, {row, c}) : load(columns, {c, row});
  }
  Expr combined(const Expr& a, const Expr& b) const {
    return attrs.aggregate == "sum" ? a + b : attrs.aggregate == "min" ? min(a, b) : max(a, b);
  }
  Expr neutral() const {
    return attrs.aggregate == "sum" ? zero(dtype) : attrs.aggregate == "min" ? highest(dtype) : lowest(dtype);
  }
  Stmt keep(std::vector<Expr> place, const Expr& value) const {
    return store(kept_values, combined(load(kept_values, place), value), place);
  }
  // Adds the value of a tree's leaf to its target.
  Stmt keep_value(const Expr& tree, const Expr& row, const Expr& value) const {
    Expr target = attrs.targets == 1 ? int_imm(0) : cast_to(load(leaves(), {tree}), kInt64);
    return keep({target, row}, value);
  }
  // Adds the weights of a leaf, which has one for each target.
  Stmt keep_weights(const Expr& row, const std::function<Expr(const Expr& target)>& weight) const {
    VarRef k = make_dim("k");
    return loop(k, int_imm(attrs.targets), keep({row, k}, weight(k)));
  }

  // Copies the columns of the block's rows, and of the last one again where a vector needs more.
  Stmt copy_columns(const Expr& base, const Expr& padded) const {
    VarRef c = make_dim("c"), r = make_dim("r"), last = make_dim("r");
    VarRef feature = make_var("feature", prim_type(kInt32)), value = make_var("value", prim_type(dtype));
    Expr place = cast_to(select(feature < int_imm(0, kInt32), int_imm(-1, kInt32) - feature, feature), kInt64);
    Expr element = cast_to(load(x[0], {min(base + r, n - 1), place}), dtype), copied = value;
    if (has_nan_left)
      copied =
          select(feature < int_imm(0, kInt32) && intrinsic(ops::kScalarIsNan, {value}, kBool), lowest(dtype), value);
    std::vector<Expr> to = {c, r};
    if (has_row_columns) std::swap(to[0], to[1]);
    Stmt copy = seq({make(Bind{feature, load(x[1], {c})}), make(Bind{value, element}), store(columns, copied, to)});
    Expr count = int_imm(number_of_columns);
    if (!has_row_columns) return loop(c, count, loop(r, padded, copy));
    Stmt leaf_column = store(columns, lowest(dtype), {last, count});
    return seq({loop(r, padded, loop(c, count, copy)), loop(last, padded, leaf_column)});
  }

  // Returns the program whose blocks of at least `few` rows run `together`, and those of fewer rows `alone`, row by
  // row.
  PrimFuncRef finish(int64_t vector, int64_t few, const RowsOfTrees& together,
                     const std::function<Stmt(const Expr& row, const Expr& first, const Expr& end)>& alone) {
    VarRef task = make_dim("task"), block = make_dim("block"), count = make_dim("rows"), row = make_dim("row");
    VarRef first = make_dim("first"), end = make_dim("end"), k = make_dim("k"), r = make_dim("r");
    VarRef stride = make_dim("stride");
    Expr blocks = floor_div(n + stride - 1, stride), chunk = attrs.chunks == 1 ? int_imm(0) : floor_div(task, blocks);
    block_rows = count;
    Expr base = block * Expr(stride), chunk_count = int_imm(attrs.chunks), tree_count = int_imm(trees);
    auto place = [&](const Expr& i, const Expr& target) {
      return has_many() ? std::vector<Expr>{i, target} : std::vector<Expr>{target, i};
    };
    VarRef i = make_dim("i"), j = make_dim("j");
    Stmt start = loop(i, buffer_type(kept_values).shape[0],
                      loop(j, buffer_type(kept_values).shape[1], store(kept_values, neutral(), {i, j})));
    Stmt write = loop(
        r, count, loop(k, int_imm(attrs.targets), store(result, load(kept_values, place(r, k)), {base + r, chunk, k})));
    Stmt body =
        seq({make(Bind{block, attrs.chunks == 1 ? Expr(task) : floor_mod(task, blocks)}),
             make(Bind{count, min(stride, n - base)}), make(Bind{first, floor_div(chunk * tree_count, chunk_count)}),
             make(Bind{end, floor_div((chunk + 1) * tree_count, chunk_count)}), make(AllocBuffer{columns, {}}),
             make(AllocBuffer{kept_values, {}}), copy_columns(base, ceil_div(count, vector) * vector), start,
             make(IfThenElse{count < int_imm(few), loop(row, count, alone(row, first, end)), together(first, end)}),
             write});
    Expr fair = ceil_div(ceil_div(n, kLeastBlocks), vector) * vector;
    program.builder.extern_block("trees", seq({make(Bind{stride, max(int_imm(vector), min(int_imm(rows), fair))}),
                                               loop(task, blocks * attrs.chunks, body, ForKind::kParallel)}));
    return program.builder.finish({result});
  }

  TreesAttrs attrs;
  OpProgram program;
  Inputs x;
  DType dtype;
  int64_t trees, rows;  // rows of a block
  bool has_row_columns, has_nan_left = false;
  Expr n;
  int64_t number_of_columns;
  Buffer columns = make_buffer("columns", kFloat32, {}), kept_values = columns, result = columns;
  Expr block_rows = int_imm(0);
};

// ---- Checks. The programs trust trees, so that these must be constants.

const Tensor& constant_of(const OpCall& op, size_t i) {
  const Constant* constant = op.arg(i).as<Constant>();
  if (!constant) op.fail("argument {} must be a constant: trees are checked when they are compiled", i);
  return constant->data;
}
void require_range(const OpCall& op, size_t i, int64_t low, int64_t high, const char* what) {
  const Tensor& values = constant_of(op, i);
  for (int64_t k = 0; k < values.size(); ++k) {
    if (int64_t value = values.as_int(k); value < low || value >= high)
      op.fail("{} {} is {}, expected {} to {}", what, k, value, low, high - 1);
  }
}
int64_t known_dim(const OpCall& op, size_t i, size_t d) {
  auto dim = as_int(op.shape(i).at(d));
  if (!dim || *dim < 1) op.fail("dim {} of argument {} must be a positive constant", d, i);
  return *dim;
}
void check_columns(const OpCall& op) {
  Expr most = op.shape(0)[1];
  auto features = as_int(most);
  if (!features) op.fail("the number of features is not a constant; give the input's last dim a value");
  require_range(op, 1, -*features, *features, "column");
}
void check_targets(const OpCall& op, size_t i) { require_range(op, i, 0, op.attrs<TreesAttrs>().targets, "target"); }

// Returns a node's parts.
struct WalkNode {
  int64_t child, column;
  double threshold;
  int64_t bits;
};
WalkNode walk_node(const Tensor& nodes, int64_t i, int64_t column_bits) {
  int64_t word = nodes.as_int(2 * i), bits = nodes.as_int(2 * i + 1);
  double threshold =
      nodes.dtype() == kInt32 ? std::bit_cast<float>(static_cast<int32_t>(bits)) : std::bit_cast<double>(bits);
  return {word >> column_bits, word & ((int64_t{1} << column_bits) - 1), threshold, bits};
}
// Children follow their parents, so that every descent ends.
void check_walk(const OpCall& op) {
  check_columns(op);
  TreesAttrs attrs = op.attrs<TreesAttrs>();
  const Tensor& nodes = constant_of(op, 2);
  int64_t count = known_dim(op, 2, 0), columns = known_dim(op, 1, 0);
  bool has_many = op.rank(4) == 2;
  if (columns >= int64_t{1} << attrs.column_bits) op.fail("{} columns do not fit {} bits", columns, attrs.column_bits);
  for (int64_t i = 0; i < count; ++i) {
    WalkNode node = walk_node(nodes, i, attrs.column_bits);
    bool is_leaf = node.child == i && node.column == columns && !std::isnan(node.threshold) &&
                   (!has_many || (node.bits >= 0 && node.bits < known_dim(op, 4, 0)));
    bool is_inner = node.child > i && node.child < count - 1 && node.column < columns;
    if (!is_leaf && !is_inner)
      op.fail("node {} has child {} and column {}, expected children behind it, or a leaf", i, node.child, node.column);
  }
  require_range(op, 3, 0, count, "root");
  if (!has_many) check_targets(op, 4);
}

// ---- The two forms

// Rows of a block whose columns take about as many bytes as stay in the L1 cache, a multiple of `vector`.
int64_t rows_of_block(int64_t bytes_of_row, int64_t vector, int64_t most) {
  return std::clamp(kCopyBytes / bytes_of_row, vector, most) / vector * vector;
}

PrimFuncRef lower_walk(const OpCall& op) {
  check_walk(op);
  const TreesAttrs attrs = op.attrs<TreesAttrs>();
  DType words = op.dtype(2), dtype = DType::float_(words.bits);
  int64_t trees = known_dim(op, 3, 0);
  Forest f(op, dtype, trees, rows_of_block(dtype.bytes() << attrs.column_bits, kSideBySide, 16 * kSideBySide), true);
  const Buffer &nodes = f.x[2], &roots = f.x[3];
  using Place = std::function<Expr(const Expr& k)>;
  // Sends kSideBySide rows or trees down, until none of them moves.
  auto descend = [&](const Place& root, const Place& row,
                     const std::function<Stmt(const Expr& k, const Expr& node)>& take) {
    Buffer at_node = make_buffer("node", words, {int_imm(kSideBySide)}, "local");
    LocalScalar moved("moved", words);
    VarRef k = make_dim("k"), each = make_dim("k"), last = make_dim("k");
    VarRef word = make_var("word", prim_type(words)), next = make_var("next", prim_type(words));
    auto node = [&](const Expr& i) { return cast_to(load(at_node, {i}), kInt64); };
    Expr mask = int_imm((int64_t{1} << attrs.column_bits) - 1, words);
    Expr threshold = intrinsic(ops::kReinterpret, {load(nodes, {node(each), int_imm(1)})}, dtype);
    Expr column = f.column(cast_to(binary(BinaryOp::kBitAnd, word, mask), kInt64), row(each));
    Expr child = binary(BinaryOp::kShiftRight, word, int_imm(attrs.column_bits, words));
    Expr change = binary(BinaryOp::kBitXor, next, load(at_node, {each}));
    Stmt step = seq({make(Bind{word, load(nodes, {node(each), int_imm(0)})}),
                     make(Bind{next, child + cast_to(!(column <= threshold), words)}),
                     moved.set(binary(BinaryOp::kBitOr, moved.get(), change)), store(at_node, next, {each})});
    auto lanes = [](const VarRef& var, const Stmt& body) {
      return loop(var, int_imm(kSideBySide), body, ForKind::kUnrolled);
    };
    return seq(
        {make(AllocBuffer{at_node, {}}), moved.declared(),
         lanes(k, store(at_node, cast_to(load(roots, {root(k)}), words), {k})), moved.set(int_imm(1, words)),
         make(While{not_equal(moved.get(), int_imm(0, words)), seq({moved.set(int_imm(0, words)), lanes(each, step)})}),
         lanes(last, take(last, node(last)))});
  };
  auto keep = [&](const Expr& tree, const Expr& row, const Expr& node) {
    Expr value = load(nodes, {node, int_imm(1)});
    if (!f.has_many()) return f.keep_value(tree, row, intrinsic(ops::kReinterpret, {value}, dtype));
    return f.keep_weights(row, [&](const Expr& k) { return load(f.leaves(), {cast_to(value, kInt64), k}); });
  };
  auto together = [&](const Expr& first, const Expr& end) {
    VarRef t = make_dim("t"), g = make_dim("g");
    auto row = [&](const Expr& k) { return g * kSideBySide + k; };
    Stmt body = descend([&](const Expr&) { return first + t; }, row,
                        [&](const Expr& k, const Expr& node) { return keep(first + t, row(k), node); });
    return loop(t, end - first, loop(g, ceil_div(f.block_rows, kSideBySide), body));
  };
  auto alone = [&](const Expr& row, const Expr& first, const Expr& end) {
    VarRef g = make_dim("g");
    auto tree = [&](const Expr& k) { return first + g * kSideBySide + k; };
    Stmt body = descend([&](const Expr& k) { return min(tree(k), end - 1); }, [&](const Expr&) { return row; },
                        [&](const Expr& k, const Expr& node) { return when(tree(k) < end, keep(tree(k), row, node)); });
    return loop(g, ceil_div(end - first, kSideBySide), body);
  };
  return f.finish(kSideBySide, kSideBySide / 2, together, alone);
}

PrimFuncRef lower_complete(const OpCall& op) {
  check_columns(op);
  int64_t trees = known_dim(op, 2, 0), tests = known_dim(op, 2, 1);
  require_range(op, 2, 0, known_dim(op, 1, 0), "the column of test");
  constant_of(op, 3);
  constant_of(op, 4);
  if (op.size() > 5) check_targets(op, 5);
  DType dtype = op.dtype(3);
  const int64_t lanes = kVectorBytes / dtype.bytes();
  const bool is_shallow = tests < 31;  // the constants of deeper trees do not stay in registers for several vectors
  int64_t rows = is_shallow ? rows_of_block(dtype.bytes() * known_dim(op, 1, 0), lanes, 4 * lanes) : lanes;
  Forest f(op, dtype, trees, rows, false);
  const Buffer &columns = f.x[2], &thresholds = f.x[3], &leaves = f.x[4];
  auto holds = [&](const Expr& tree, const Expr& test, const Expr& row) {
    return f.column(cast_to(load(columns, {tree, test}), kInt64), row) <= load(thresholds, {tree, test});
  };
  // Returns what the tree below a position gives: the leaf's value, or its number.
  std::function<Expr(const Expr&, int64_t, const Expr&)> chosen = [&](const Expr& tree, int64_t at, const Expr& row) {
    if (at >= tests) return f.has_many() ? int_imm(at - tests, kInt32) : load(leaves, {tree, int_imm(at - tests)});
    return select(holds(tree, int_imm(at), row), chosen(tree, 2 * at + 1, row), chosen(tree, 2 * at + 2, row));
  };
  auto weights = [&](const Expr& tree, const Expr& leaf, const Expr& row) {
    return f.keep_weights(row, [&](const Expr& k) { return load(leaves, {tree, leaf, k}); });
  };
  auto together = [&](const Expr& first, const Expr& end) {
    VarRef t = make_dim("t"), g = make_dim("g"), v = make_dim("v"), r = make_dim("r");
    Buffer leaf = make_buffer("leaf", kInt32, {int_imm(rows)});
    Expr tree = first + t, row = g * lanes + v, value = chosen(tree, 0, row);
    Stmt choose = f.has_many() ? store(leaf, value, {row}) : f.keep_value(tree, row, value);
    Stmt test = loop(g, ceil_div(f.block_rows, lanes), loop(v, int_imm(lanes), choose, ForKind::kVectorized));
    if (!f.has_many()) return loop(t, end - first, test);
    Stmt take = loop(r, f.block_rows, weights(tree, cast_to(load(leaf, {r}), kInt64), r));
    return seq({make(AllocBuffer{leaf, {}}), loop(t, end - first, seq({test, take}))});
  };
  auto alone = [&](const Expr& row, const Expr& first, const Expr& end) {
    VarRef t = make_dim("t");
    LocalScalar at("at", kInt64);
    Expr tree = first + t, leaf = at.get() - tests;
    std::vector<Stmt> steps = {at.declared(), at.set(int_imm(0))};
    for (int64_t below = tests; below > 0; below /= 2)
      steps.push_back(at.set(at.get() * 2 + 1 + cast_to(!holds(tree, at.get(), row), kInt64)));
    steps.push_back(f.has_many() ? weights(tree, leaf, row) : f.keep_value(tree, row, load(leaves, {tree, leaf})));
    return loop(t, end - first, seq(steps));
  };
  return f.finish(lanes, 3, together, alone);
}

// ---- Types

void infer_forest(const OpCall& op, DType words) {
  TreesAttrs attrs = op.attrs<TreesAttrs>();
  require_rank(op, 0, 2);
  require_rank(op, 1, 1);
  kNumbers.check(op, op.dtype(0));
  if (op.dtype(1) != kInt32) op.fail("columns have {}, expected int32", to_string(op.dtype(1)));
  if (words.bits != 32 && words.bits != 64) op.fail("nodes have {}, expected 32 or 64 bits", to_string(words));
  if (attrs.targets < 1 || attrs.chunks < 1 || attrs.column_bits < 1 || attrs.column_bits > kMostBits)
    op.fail("targets, chunks and column_bits are {}, {} and {}, expected at least 1 and 1 to {}", attrs.targets,
            attrs.chunks, attrs.column_bits, kMostBits);
}
Type forest_type(const OpCall& op, DType dtype) {
  TreesAttrs attrs = op.attrs<TreesAttrs>();
  return tensor_type({op.shape(0)[0], int_imm(attrs.chunks), int_imm(attrs.targets)}, dtype);
}
Type infer_walk(const OpCall& op) {
  infer_forest(op, op.dtype(2));
  require_rank(op, 2, 2);
  require_rank(op, 3, 1);
  DType words = op.dtype(2), dtype = DType::float_(words.bits);
  if (!words.is_int()) op.fail("nodes have {}, expected int32 or int64", to_string(words));
  if (op.dtype(3) != kInt32 && op.dtype(3) != kInt64)
    op.fail("roots have {}, expected integers", to_string(op.dtype(3)));
  op.require_equal(op.shape(2)[1], int_imm(2), "numbers of a node");
  bool has_many = op.rank(4) == 2;
  if (op.dtype(4) != (has_many ? dtype : kInt32)) op.fail("leaves have {}", to_string(op.dtype(4)));
  if (has_many) op.require_equal(op.shape(4)[1], int_imm(op.attrs<TreesAttrs>().targets), "weights and targets");
  if (!has_many) op.require_equal(op.shape(4)[0], op.shape(3)[0], "numbers of roots and targets");
  return forest_type(op, dtype);
}
Type infer_complete(const OpCall& op) {
  infer_forest(op, op.dtype(3));
  require_same_dtype(op, 3, 4);
  if (!op.dtype(3).is_float() || op.dtype(2) != kInt32) op.fail("expected columns of int32 and float thresholds");
  require_rank(op, 2, 2);
  int64_t tests = known_dim(op, 2, 1);
  if (!std::has_single_bit(static_cast<uint64_t>(tests) + 1) || tests >> kMostDepth)
    op.fail("{} tests, expected 2^depth - 1 for a depth of 1 to {}", tests, kMostDepth);
  require_same_dims(op, op.shape(2), op.shape(3), "of columns and thresholds");
  bool has_many = op.size() == 5;
  require_rank(op, 4, has_many ? 3 : 2);
  op.require_equal(op.shape(4)[0], op.shape(2)[0], "trees of tests and leaves");
  op.require_equal(op.shape(4)[1], int_imm(tests + 1), "leaves of a tree");
  if (has_many) op.require_equal(op.shape(4)[2], int_imm(op.attrs<TreesAttrs>().targets), "weights and targets");
  if (!has_many && op.dtype(5) != kInt32) op.fail("targets have {}, expected int32", to_string(op.dtype(5)));
  if (!has_many) op.require_equal(op.shape(5).at(0), op.shape(2)[0], "numbers of trees and targets");
  return forest_type(op, op.dtype(3));
}

}  // namespace

std::vector<OpRow> trees_ops() {
  const OpInput data{"data", "[n, features]"};
  const OpInput columns{"columns", "the features that trees use; -1 - f is f with NaN as -inf"};
  const std::vector<OpAttr> attrs = with_choices(op_attrs<TreesAttrs>(), "aggregate", {"sum", "min", "max"});
  return {
      {.name = "relax.trees.walk",
       .doc = "aggregates of chunks of decision trees of any shape, [n, chunks, targets]",
       .inputs = {data,
                  columns,
                  {"nodes", "[N, 2]: child << column_bits | column, bits of the threshold or of the leaf"},
                  {"roots", "the first node of each tree"},
                  {"leaves", "the target of each tree, or the weights of leaves [L, targets]"}},
       .attrs = attrs,
       .infer = infer_walk,
       .infer_partial = infer_unknown,
       .legalize = lower_walk},
      {.name = "relax.trees.complete",
       .doc = "aggregates of chunks of complete decision trees, [n, chunks, targets]",
       .inputs = {data,
                  columns,
                  {"tests", "[trees, 2^depth - 1]: the column of each test, level by level"},
                  {"thresholds", "[trees, 2^depth - 1]"},
                  {"leaves", "[trees, 2^depth], or [trees, 2^depth, targets]"},
                  {"target_of_tree", "where leaves have one value", OpInput::Arity::kOptional}},
       .attrs = attrs,
       .infer = infer_complete,
       .infer_partial = infer_unknown,
       .legalize = lower_complete},
  };
}

}  // namespace relaxc
