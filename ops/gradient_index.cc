// Gradients of gathers, which scatter and add, and of scatters, which gather.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using G = const GradientCall&;

// Returns the places that take reads by its mode; those of "fast" may count from the end.
Term places_of_take(G g, const Expr& dim) {
  Term given = g.op.arg(1).type().is<PrimType>()
                   ? g.term(g.builder.op("scalar_to_tensor", {cast_to(g.op.arg(1), kInt64)}))
                   : g.x(1).as(kInt64);
  const std::string mode = g.attrs<TakeAttrs>().mode;
  if (mode == "clip") return given.op("maximum", int_imm(0)).op("minimum", simplify(dim - 1));
  if (mode == "wrap") return given.op("floor_mod", dim);
  if (mode != "fast") g.unsupported("is not known for mode '{}'", mode);
  return given;
}
Expr take(G g) {
  const auto axis = g.attrs<TakeAttrs>().axis;
  std::vector<Expr> dims = g.x().shape();
  if (!axis) dims = {simplify(product(dims))};
  const int64_t along = axis ? normalize_axis(g.op, *axis, g.x().rank()) : 0;
  Term sum = scattered(g.dy(), dims, along, places_of_take(g, dims[along]));
  return axis ? sum.expr : sum.reshaped(g.x().shape()).expr;
}
Expr gather_elements(G g) {
  return g.builder.op("scatter_elements", {g.x().zeros().expr, g.op.arg(1), g.dy().expr},
                      ScatterElementsAttrs{g.attrs<AxisAttrs>().axis, "add"});
}
// Batch dims become axes that the index tuples name, too.
Expr gather_nd(G g) {
  const int64_t batch = g.attrs<GatherNdAttrs>().batch_dims;
  Term indices = g.x(1).as(kInt64);
  std::vector<Expr> column = with_item(indices.shape(), indices.rank() - 1, int_imm(1)), columns;
  for (int64_t d = 0; d < batch; ++d) {
    std::vector<Expr> dims(column.size(), int_imm(1));
    dims[d] = indices.dim(d);
    Term all = g.term(g.builder.op("arange", {int_imm(0), dims[d], int_imm(1)}, DTypeAttrs{kInt64}));
    columns.push_back(all.reshaped(dims).broadcast_to(column).expr);
  }
  columns.push_back(indices.expr);
  Expr tuples = batch == 0 ? indices.expr : g.builder.op("concat", {tuple(columns)}, ConcatAttrs{indices.rank() - 1});
  return g.builder.op("scatter_nd", {g.x().zeros().expr, tuples, g.dy().expr}, ScatterNdAttrs{"add"});
}

// Returns whether updates are added to the elements; else they replace them.
template <class A>
bool adds(G g) {
  const std::string reduction = g.attrs<A>().reduction;
  bool is_known = reduction == "add" || reduction == "update" || reduction == "none";
  if (!is_known) g.unsupported("is not known for reduction '{}'", reduction);
  return reduction == "add";
}
// Elements that are replaced have no part in the result.
template <class A>
Expr scatter(G g) {
  if (adds<A>(g)) return g.dy().expr;
  return g.builder.op(g.op.name(), {g.dy().expr, g.op.arg(1), g.x(2).zeros().expr}, g.op.call.attrs);
}
Expr elements_of_updates(G g) {
  adds<ScatterElementsAttrs>(g);
  return g.builder.op("gather_elements", {g.dy().expr, g.op.arg(1)}, AxisAttrs{g.attrs<ScatterElementsAttrs>().axis});
}
Expr slices_of_updates(G g) {
  adds<ScatterNdAttrs>(g);
  return g.builder.op("gather_nd", {g.dy().expr, g.op.arg(1)}, GatherNdAttrs{0});
}

Expr reverse_sequence(G g) { return g.builder.op("reverse_sequence", {g.dy().expr, g.op.arg(1)}, g.op.call.attrs); }

Expr at_positions(G g, const Term& positions, int64_t axis) {
  return g.builder.op("scatter_elements", {g.x().zeros().expr, positions.expr, g.dy().expr},
                      ScatterElementsAttrs{normalize_axis(g.op, axis, g.x().rank()), "add"});
}
Expr topk(G g) {
  TopKAttrs attrs = g.attrs<TopKAttrs>();
  if (attrs.ret_type != "both") g.unsupported("is known for ret_type 'both' only");
  return at_positions(g, g.y(1), attrs.axis);
}
Expr dynamic_topk(G g) { return at_positions(g, g.y(1), g.attrs<DynamicTopKAttrs>().axis); }
Expr sort(G g) {
  SortAttrs attrs = g.attrs<SortAttrs>();
  return at_positions(g, g.x().op("argsort", ArgsortAttrs{attrs.axis, attrs.descending, kInt64}), attrs.axis);
}

}  // namespace

std::vector<GradientRow> index_gradients() {
  return {
      {"take", {{take}}},
      {"gather_elements", {{gather_elements}}},
      {"gather_nd", {{gather_nd}}},
      {"scatter_elements", {{scatter<ScatterElementsAttrs>, nullptr, elements_of_updates}}},
      {"scatter_nd", {{scatter<ScatterNdAttrs>, nullptr, slices_of_updates}}},
      {"reverse_sequence", {{reverse_sequence}}},
      {"topk", {{topk}}},
      {"dyn.topk", {{dynamic_topk}}},
      {"sort", {{sort}}},
  };
}

}  // namespace relaxc::gradients
