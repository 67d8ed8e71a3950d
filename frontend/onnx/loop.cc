#include "frontend/onnx/loop.h"

#include <map>

#include "frontend/onnx/graph_importer.h"
#include "ir/sequence.h"
#include "ir/type_relation.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

// The types that values have at the beginning of each iteration.
class CarriedTypes {
 public:
  CarriedTypes(Node& n, const std::vector<Expr>& first) : n_(n) {
    for (const Expr& value : first) add(value.type());
  }
  const std::vector<Type>& types() const { return types_; }

  // Returns whether the values after an iteration have these types. If not, the dims that change become variables.
  bool hold_for(const std::vector<Expr>& after) {
    RELAXC_CHECK(after.size() == types_.size(), "a step has {} carried values of {}", after.size(), types_.size());
    bool hold = true;
    for (size_t i = 0; i < after.size(); ++i) hold = widen(i, after[i].type()) && hold;
    return hold;
  }

 private:
  // Dims of items are those of no iteration in particular.
  static Type closed(const Type& type) {
    return without_dims(type, [](const VarRef&) { return true; });
  }
  void add(const Type& type) {
    if (is_container(type)) return types_.push_back(closed(type));
    if (known_rank(type) < 0 || !tensor_dtype(type)) n_.unsupported("a carried value of unknown rank or dtype");
    std::vector<Expr> dims;
    const std::vector<Expr>* known = known_shape(type);
    for (int64_t d = 0; d < known_rank(type); ++d) dims.push_back(known ? (*known)[d] : own_dim(d));
    types_.push_back(tensor_type(std::move(dims), tensor_dtype(type)));
  }
  Expr own_dim(int64_t d) {
    VarRef dim = unknown_dim(n_.graph().context(), fmt::format("d{}", d));
    own_.insert(dim.get());
    return dim;
  }
  bool widen_container(size_t i, const Type& after) {
    if (fits(types_[i], closed(after)) == Verdict::kProven) return true;
    Type common = common_type(types_[i], closed(after));
    if (common.is<ObjectType>()) n_.fail("carried value {} changes its type", i);
    types_[i] = common;
    return false;
  }
  bool widen(size_t i, const Type& after) {
    if (is_container(types_[i]) || is_container(after)) return widen_container(i, after);
    std::vector<Expr> dims = *known_shape(types_[i]);
    if (tensor_dtype(after) != tensor_dtype(types_[i])) n_.fail("carried value {} changes its dtype", i);
    if (known_rank(after) != std::ssize(dims))
      throw CarriedRankChanges(i, std::ssize(dims), known_rank(after), n_.span());
    const std::vector<Expr>* known = known_shape(after);
    bool holds = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (own_.contains(dims[d].get()) || (known && n_.provably_equal(dims[d], (*known)[d]))) continue;
      dims[d] = own_dim(static_cast<int64_t>(d));
      holds = false;
    }
    if (!holds) types_[i] = tensor_type(std::move(dims), tensor_dtype(after));
    return holds;
  }

  Node& n_;
  std::vector<Type> types_;
  std::unordered_set<const NodeHeader*> own_;  // the dims that differ from one iteration to the next
};

// Returns the type without the dims that only an iteration knows.
Type seen_from_outside(const Type& type, const std::vector<VarRef>& params, const Expr& seq) {
  VarSet outside, inside;
  auto add_dims = [](const Type& of, VarSet& to) { walk(of, [&](const Ref<Var>& dim) { to.insert(dim.get()); }); };
  for (const VarRef& param : params) add_dims(param.type(), outside);
  for (const VarRef& captured : free_vars(seq)) add_dims(captured.type(), outside);
  inside.insert(params[0].get());
  for_each_binding(seq, [&](const Binding& binding) {
    inside.insert(binding.var.get());
    if (binding.cast) add_dims(*binding.cast, inside);
  });
  return without_dims(type,
                      [&](const VarRef& dim) { return inside.contains(dim.get()) && !outside.contains(dim.get()); });
}

// Builds the function of one iteration.
struct BuiltStep {
  FunctionRef function;
  LoopStep step;
};
BuiltStep build_step(Node& n, const std::vector<Type>& types, const LoopBody& body) {
  Builder builder(n.graph().context().ops);
  builder.set_span(n.span());
  builder.begin_dataflow();
  GraphImporter graph(n.graph(), builder);
  Node inner(graph, n.proto(), n.row(), n.opset(), {}, n.span());
  KnownInside known(n.graph().context().known);
  std::vector<VarRef> params = {make_var("i", prim_type(kInt64), n.span())};
  for (const Type& type : types) params.push_back(make_var(fmt::format("c{}", params.size() - 1), type, n.span()));
  LoopStep step = body(inner, params[0], {params.begin() + 1, params.end()});
  std::vector<Expr> results;
  if (step.condition) results.push_back(*step.condition);
  std::ranges::copy(step.carried, std::back_inserter(results));
  std::ranges::copy(step.rows, std::back_inserter(results));
  for (Expr& result : results) result = builder.leaf(result);
  Expr whole = tuple(results);
  Expr seq = builder.finish(whole);
  Type type = seen_from_outside(whole.type(), params, seq);
  return {make_function({std::move(params), seq, type, true, {}}, n.span()), std::move(step)};
}

std::vector<Expr> emit_numeric_loop(Node& n, const Expr& trips, const std::vector<Expr>& carried, const LoopBody& body,
                                    const std::function<Expr()>& first) {
  CarriedTypes types(n, carried);
  BuiltStep built = build_step(n, types.types(), body);
  while (!types.hold_for(built.step.carried)) built = build_step(n, types.types(), body);
  Builder& b = n.builder();
  std::vector<Expr> args = {b.emit(built.function, "body"), trips, tuple(carried)};
  if (built.step.condition) args.push_back(first());
  Expr all = b.op("loop", std::move(args));
  std::vector<Expr> results;
  for (size_t i = 0; i < built.step.carried.size() + built.step.rows.size(); ++i)
    results.push_back(with_measured_dims(n, b.emit(tuple_get(all, static_cast<int64_t>(i)))));
  return results;
}

// Rows of strings are not stacked: they are carried as sequences, which are joined behind the loop. The first attempt
// to build an iteration tells which rows are strings.
class LoopWithStrings {
 public:
  LoopWithStrings(Node& n, const std::vector<Expr>& carried, const LoopBody& body)
      : n_(n), carried_(carried), body_(body) {}

  std::vector<Expr> emit(const Expr& trips, const std::function<Expr()>& first) {
    for (;;) {
      try {
        return attempt(trips, first);
      } catch (const RowOfStrings& found) {
        listed_.emplace(found.row, without_dims(found.type, [](const VarRef&) { return true; }));
      }
    }
  }

 private:
  struct RowOfStrings {
    size_t row;
    Type type;
  };
  std::vector<Expr> attempt(const Expr& trips, const std::function<Expr()>& first) {
    const size_t count = carried_.size();
    std::vector<Expr> carried = carried_;
    for (const auto& [row, type] : listed_) carried.push_back(n_.leaf(n_.sequence({}, type)));
    size_t rows = 0;
    auto body = [&](Node& inner, const Expr& i, const std::vector<Expr>& values) {
      LoopStep step = body_(inner, i, {values.begin(), values.begin() + static_cast<ptrdiff_t>(count)});
      rows = step.rows.size();
      std::vector<Expr> numbers;
      for (size_t k = 0; k < rows; ++k) {
        const Expr& row = step.rows[k];
        const bool is_text = tensor_dtype(row.type()) == DType::string();
        if (is_text && !listed_.contains(k)) throw RowOfStrings{k, row.type()};
        if (!is_text) numbers.push_back(row);
        if (is_text) step.carried.push_back(inner.builder().op("sequence.insert", {values[step.carried.size()], row}));
      }
      step.rows = std::move(numbers);
      return step;
    };
    std::vector<Expr> all = emit_numeric_loop(n_, trips, carried, body, first),
                      results(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
    size_t list = count, numbers = carried.size();
    for (size_t k = 0; k < rows; ++k) {
      if (!listed_.contains(k)) {
        results.push_back(all[numbers++]);
        continue;
      }
      const SequenceConcatAttrs attrs{0, true};
      results.push_back(with_measured_dims(n_, n_.builder().op("sequence.concat", {all[list++]}, attrs)));
    }
    return results;
  }

  Node& n_;
  const std::vector<Expr>& carried_;
  const LoopBody& body_;
  std::map<size_t, Type> listed_ = {};
};

}  // namespace

CarriedRankChanges::CarriedRankChanges(size_t which, int64_t before, int64_t after, const Span& span)
    : CompileError({{Severity::kError,
                     ErrorKind::kUnsupported,
                     span,
                     fmt::format("carried value {} has rank {} first and {} after an iteration", which, before, after),
                     {}}}),
      which(which),
      before(before),
      after(after) {}

void refuse_ranks(Node& n, const CarriedRankChanges& found, const std::string& name, int64_t most_written) {
  n.unsupported(
      "an iteration makes a tensor of rank {} of the carried value '{}', which has rank {}, so the number of "
      "iterations decides its rank; make the trip count a constant of at most {} and the condition a constant, or "
      "carry a tensor of one rank and reshape it behind the loop",
      found.after, printable(name), found.before, most_written);
}

std::vector<Expr> emit_loop(Node& n, const Expr& trips, const std::vector<Expr>& carried, const LoopBody& body,
                            const std::function<Expr()>& first) {
  return LoopWithStrings(n, carried, body).emit(trips, first);
}

VarRef unknown_dim(Node& n, std::string name) {
  VarRef dim = make_dim(std::move(name));
  n.graph().context().analyzer.bind(dim, Interval{0, std::numeric_limits<int64_t>::max()});
  return dim;
}
Expr with_measured_dims(Node& n, const Expr& x, const std::vector<std::optional<Expr>>& known, const char* name) {
  if (known_shape(x.type()) || known_rank(x.type()) < 0) return x;
  std::vector<Expr> dims;
  for (size_t d = 0; d < static_cast<size_t>(known_rank(x.type())); ++d) {
    bool is_known = d < known.size() && known[d];
    dims.push_back(is_known ? *known[d] : unknown_dim(n.graph().context(), fmt::format("{}{}", name, d)));
  }
  return n.match_cast(x, tensor_type(std::move(dims), tensor_dtype(x.type())));
}

}  // namespace relaxc::onnx_import
