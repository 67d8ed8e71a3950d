// Dims that meet in an operator which broadcasts: where one of them is 1, it stretches to the other.
//
// `Add` of float[n] and float[m] wants n == m, or that one of them is 1 when the model runs. Nearly always the dims are
// equal, and programs are fast because types say so: loops fuse, sums are stored in place, attention is recognized. So
// the graph function "main" takes them for equal, and tests that when it runs.
//
// Where one of the two may be 1 while the other is larger, as far as ir/arith.h can tell, the model is imported a
// second time (kOtherwise of ir/attr_names.h). In that function the two dims give way to a third, which is computed
// when the model runs: dim = T.Select(n == 1, m, n). Operands are repeated along it by broadcast_to, which fuses into
// what reads it. The graph remembers that n is 1 or dim: x + (x + y) makes no further dim. The runtime calls the second
// function when a check of dims fails in "main" (ShapeError, run_named in vm/program.cc). So equal dims cost nothing,
// and others the part of "main" before the check: dims of inputs are tested first, one that the run measures where it
// is known. Checks that leave no choice, as of inner dims of products, fail in both functions. Weights and equal
// kernels are in the artifact once. Where the second import is refused, "main" is alone, and its error says that the
// dims must be equal or given when compiling. Dims that are known to be at most 1, such as min(n, 1) of x[-1:], give
// way in both functions.
#include <algorithm>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/run_time_axes.h"
#include "ir/type_relation.h"

namespace relaxc::onnx_import {

namespace {

// Assumes that the expression is at least the number, and what follows of the operands of min and max in it.
void assume_at_least(Analyzer& facts, const Expr& expr, int64_t least) {
  facts.assume(int_imm(least) <= expr);
  const Binary* node = expr.as<Binary>();
  if (!node) return;
  const std::optional<int64_t> constant = as_int(node->b);
  if (node->op == BinaryOp::kMin) {
    assume_at_least(facts, node->a, least);
    assume_at_least(facts, node->b, least);
  } else if (node->op == BinaryOp::kMax && constant && *constant < least) {
    assume_at_least(facts, node->a, least);
  }
}

// Returns whether one of the dims may be 1 while the other is larger, as far as is known. A slice pos[:, :n] of 512
// rows and n are equal or an error: where one is at least 2, so is the other.
bool may_stretch(const Expr& a, const Expr& b, const Analyzer& facts) {
  auto is_large_with = [&](const Expr& x, const Expr& y) {
    Analyzer large = facts;
    assume_at_least(large, y, 2);
    return large.can_prove(int_imm(2) <= x);
  };
  return !is_large_with(a, b) || !is_large_with(b, a);
}

// Returns whether an expression for a dim has fewer operations than another one. Of two dims that are equal, programs
// are simpler for this one: n, and not min(n, 512), the length of a mask that was cut out of 512 rows.
bool is_plainer(const Expr& a, const Expr& b) {
  auto operations = [](const Expr& dim) {
    int64_t count = 0;
    walk(dim, [&](const Binary&) { ++count; });
    return count;
  };
  return !as_int(b) && (as_int(a) || operations(a) < operations(b));
}

}  // namespace

bool Node::gives_way(const Expr& dim, const Expr& other) const {
  if (as_int(other) == 1 || provably_equal(dim, other)) return false;
  return graph_.gave_way(dim, other) || (!as_int(dim) && graph_.context().analyzer.can_prove(dim <= int_imm(1)));
}

Expr Node::size_of_meeting(const Expr& a, const Expr& b) {
  if (std::optional<Expr> known = graph_.size_of_meeting(a, b)) return *known;
  Expr size = as_int(a) ? a : as_int(b) ? b : bounded(*this, select(equal(a, int_imm(1)), b, a), "dim", {0, INT64_MAX});
  graph_.note_meeting(a, b, size);
  Expr is_stretched = equal(a, int_imm(1)) || equal(b, int_imm(1));
  require_equal(select(is_stretched, b, a), b, "shapes do not broadcast");
  return size;
}

std::vector<Expr> Node::broadcast(std::vector<Expr> a, std::vector<Expr> b) {
  ModelContext& context = graph_.context();
  for (size_t d = 1; d <= std::min(a.size(), b.size()); ++d) {
    Expr &x = a[a.size() - d], &y = b[b.size() - d];
    bool less_x = gives_way(x, y), less_y = gives_way(y, x);
    if (less_x != less_y) (less_x ? x : y) = less_x ? y : x;
    bool meet = !is_int(x, 1) && !is_int(y, 1) && !(as_int(x) && as_int(y)) && !provably_equal(x, y) && !less_x;
    if (meet && !may_stretch(x, y, context.analyzer) && (is_plainer(x, y) || is_plainer(y, x))) {
      // Equal or an error: what follows has the plainer dim. A mask's part [:n, :n] is as long as the scores.
      require_equal(x, y, "shapes do not broadcast");
      is_plainer(x, y) ? y = x : x = y;
    }
    if (!meet || !may_stretch(x, y, context.analyzer)) continue;
    context.dims_meet = true;
    if (context.stretches_dims) {
      x = y = size_of_meeting(x, y);
    } else {
      require_equal(x, y, "shapes do not broadcast unless one is fixed to 1 (--dim NAME=1)");
      is_plainer(y, x) ? x = y : y = x;
    }
  }
  return broadcast_shapes(a, b, [&](const Expr& x, const Expr& y) { require_equal(x, y, "shapes do not broadcast"); });
}

Expr Node::stretched(const Expr& given, const std::vector<Expr>& shape) {
  std::vector<Expr> dims = shape_of(given), named = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Expr& wanted = shape[shape.size() - dims.size() + d];
    const bool is_equal = is_plainer(wanted, dims[d]) && !as_int(wanted) && !gives_way(dims[d], wanted);
    if (is_equal || gives_way(dims[d], wanted)) dims[d] = wanted;
    if (is_equal) named[d] = wanted;
  }
  const bool is_same =
      std::ranges::equal(named, shape_of(given), [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
  const Expr x = is_same ? given : match_cast(given, tensor_type(named, dtype_of_tensor(given)));
  return broadcast_to(x, dims);
}

Expr Node::stretched_into(const Expr& x, const std::vector<Expr>& shape, const char* what) {
  ModelContext& context = graph_.context();
  const std::vector<Expr> dims = shape_of(x);
  for (size_t d = 0; d < dims.size(); ++d) {
    const Expr &dim = dims[d], &wanted = shape[shape.size() - dims.size() + d];
    if (is_int(dim, 1) || provably_equal(dim, wanted) || gives_way(dim, wanted)) continue;
    const bool may_be_one = !as_int(dim) && may_stretch(dim, wanted, context.analyzer);
    context.dims_meet = context.dims_meet || may_be_one;
    if (!may_be_one || !context.stretches_dims) {
      require_equal(dim, wanted, what);
    } else {
      graph_.note_meeting(dim, wanted, wanted);
      require_equal(select(equal(dim, int_imm(1)), wanted, dim), wanted, what);
    }
  }
  return stretched(x, shape);
}

std::optional<Expr> GraphImporter::size_of_meeting(const Expr& a, const Expr& b) const {
  for (const GraphImporter* graph = this; graph; graph = graph->parent_) {
    for (const Meeting& meeting : graph->meetings_) {
      auto are = [&](const Expr& x, const Expr& y) {
        return structural_equal(meeting.a, x) && structural_equal(meeting.b, y);
      };
      if (are(a, b) || are(b, a)) return meeting.size;
    }
  }
  return std::nullopt;
}

bool GraphImporter::gave_way(const Expr& dim, const Expr& size) const {
  for (const GraphImporter* graph = this; graph; graph = graph->parent_) {
    for (const Meeting& meeting : graph->meetings_) {
      bool is_met = structural_equal(meeting.a, dim) || structural_equal(meeting.b, dim);
      if (!is_met || structural_equal(meeting.size, dim)) continue;
      if (structural_equal(meeting.size, size) || gave_way(meeting.size, size)) return true;
    }
  }
  return false;
}

}  // namespace relaxc::onnx_import
