// Gradients of reductions, scans, and the softmax family. `dyn.sum` and the like reduce to a shape, argument 1.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;
using G = const GradientCall&;

bool is_to_shape(G g) { return g.op.size() > 1; }
std::vector<int64_t> axes_of(const OpCall& op) {
  auto axes = op.attrs<ReduceAttrs>().axis;
  return axes ? normalize_axes(op, *axes, op.rank(0)) : int_range(0, op.rank(0));
}
// Returns a tensor of the result's shape repeated to that of the argument.
Term spread(G g, T t) {
  std::vector<Expr> kept = g.x().shape();
  if (is_to_shape(g)) return t.broadcast_to(kept);
  for (int64_t axis : axes_of(g.op)) kept[axis] = int_imm(1);
  return t.reshaped(kept).broadcast_to(g.x().shape());
}
// Returns the sum over what the call reduces, repeated to the shape of the argument.
Term spread_sum(G g, T t) {
  if (!is_to_shape(g)) return t.over("sum", axes_of(g.op)).broadcast_to(t.shape());
  return t.op("dyn.sum", g.op.arg(1)).broadcast_to(t.shape());
}
// Returns the number of elements in all dims, as a tensor of rank 0.
Term count(G g, const std::vector<Expr>& dims) {
  Expr number = simplify(product(dims));
  if (auto known = as_int(number)) return g.dy().number(static_cast<double>(*known));
  return g.term(g.builder.op("scalar_to_tensor", {number})).as(g.dy().dtype());
}

Expr sum(G g) { return spread(g, g.dy()).expr; }
Expr mean(G g) {
  if (is_to_shape(g)) return (spread(g, g.dy() * count(g, g.y().shape())) / count(g, g.x().shape())).expr;
  return spread(g, g.dy() / count(g, items_at(g.x().shape(), axes_of(g.op)))).expr;
}
// Equal extrema share the gradient.
Expr extremum(G g) {
  Term is_best = g.x().op("equal", spread(g, g.y())).as(g.dy().dtype());
  return (is_best * spread(g, g.dy()) / spread_sum(g, is_best)).expr;
}

// The product of all other elements of a row: of those before an element and of those behind it.
Expr prod(G g) {
  if (is_to_shape(g)) g.unsupported("is not known where the axes are those of a shape");
  const std::vector<Expr> dims = g.x().shape();
  std::vector<int64_t> reduced = axes_of(g.op), order, back(dims.size());
  for (int64_t axis = 0; axis < g.x().rank(); ++axis) {
    if (!contains(reduced, axis)) order.push_back(axis);
  }
  std::vector<Expr> rows = items_at(dims, order);
  rows.push_back(simplify(product(items_at(dims, reduced))));
  order.insert(order.end(), reduced.begin(), reduced.end());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  Term x = g.x().permuted(order).reshaped(rows);
  auto others = [&](bool reverse) {
    return x.op("cumprod", ScanAttrs{.axis = x.rank() - 1, .exclusive = true, .reverse = reverse});
  };
  Term slope = (others(false) * others(true)).reshaped(items_at(dims, order)).permuted(back);
  return (spread(g, g.dy()) * slope).expr;
}

Expr variance_of(const OpCall& op, Builder& b, bool is_root) {
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  attrs.axis = axes_of(op);
  Term x{op.arg(0), &b};
  Term variance = (x - x.over("mean", *attrs.axis)).op("square").op("mean", attrs);
  return is_root ? variance.op("sqrt").expr : variance.expr;
}
Expr variance(const OpCall& op, Builder& b) { return variance_of(op, b, false); }
Expr deviation(const OpCall& op, Builder& b) { return variance_of(op, b, true); }

Expr cumsum(G g) {
  ScanAttrs attrs = g.attrs<ScanAttrs>();
  attrs.reverse = !attrs.reverse;
  attrs.dtype.reset();
  Term result = g.dy().op("cumsum", attrs);
  return attrs.axis ? result.expr : result.reshaped(g.x().shape()).expr;
}

std::vector<int64_t> softmax_axis(G g) { return {normalize_axis(g.op, g.attrs<LastAxisAttrs>().axis, g.x().rank())}; }
Expr softmax(G g) {
  Term part = g.dy() * g.y();
  return (part - g.y() * part.over("sum", softmax_axis(g))).expr;
}
Expr log_softmax(G g) { return (g.dy() - g.y().op("exp") * g.dy().over("sum", softmax_axis(g))).expr; }

// The loss has no gradient for the targets, which are classes.
Expr nll_loss(G g) {
  std::vector<Expr> args = {g.dy().expr};
  args.insert(args.end(), g.op.call.args.begin(), g.op.call.args.end());
  return g.builder.op("grad.nll_loss_backward", args, g.op.call.attrs);
}
Expr nll_loss_of_weights(G g) { g.unsupported("is not known for the weights"); }

}  // namespace

std::vector<GradientRow> reduction_gradients() {
  return {
      {"sum", {{sum}}},
      {"mean", {{mean}}},
      {"max", {{extremum}}},
      {"min", {{extremum}}},
      {"prod", {{prod}}},
      {"dyn.sum", {{sum}}},
      {"dyn.mean", {{mean}}},
      {"dyn.max", {{extremum}}},
      {"dyn.min", {{extremum}}},
      {"variance", written(variance)},
      {"std", written(deviation)},
      {"cumsum", {{cumsum}}},
      {"nn.softmax", {{softmax}}},
      {"nn.log_softmax", {{log_softmax}}},
      {"nn.nll_loss", {{nll_loss, nullptr, nll_loss_of_weights}}},
  };
}

}  // namespace relaxc::gradients
