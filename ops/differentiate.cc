// The reverse sweep (Linnainmaa, 1970; Griewank and Walther, Evaluating Derivatives, chapter 3): each binding, from the
// last to the first, hands the gradient of its variable to what it was computed from.
#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ops/attributes.h"
#include "ops/gradient.h"
#include "support/lists.h"
#include "support/temporarily.h"

namespace relaxc {

namespace {

using gradients::GradientCall, gradients::Term;

// The gradients of a value: one, or one for each item of a tuple. None yet: nothing that was met depends on it.
using Gradients = std::vector<std::optional<Expr>>;

// Returns whether a value of the type can change a little: a float, or something that may hold floats.
bool is_continuous(const Type& type) {
  if (const TupleType* items = type.as<TupleType>()) return std::ranges::any_of(items->items, is_continuous);
  if (const PrimType* scalar = type.as<PrimType>()) return scalar->dtype.is_float();
  if (!type.is<TensorType>()) return !type.is<ShapeType>();
  std::optional<DType> dtype = tensor_dtype(type);
  return !dtype || dtype->is_float();
}

class Sweep {
 public:
  Sweep(Builder& builder, const std::vector<VarRef>& xs) : b_(builder) {
    for (const VarRef& x : xs) active_.insert(x.get());
  }

  void run(const std::vector<Binding>& bindings, const Expr& y, const Gradients& seed) {
    for (const Binding& binding : bindings) {
      if (is_continuous(binding.var.type()) && uses_var(binding.value, active_)) active_.insert(binding.var.get());
    }
    add(y, seed);
    for (const Binding& binding : std::views::reverse(bindings)) {
      auto found = gradients_.find(binding.var.get());
      if (found == gradients_.end()) continue;
      const Gradients given = found->second;  // handing it on adds to the table
      if (binding.var.span()) b_.set_span(binding.var.span());
      hand_on(binding, given);
    }
  }
  std::optional<Expr> gradient_of(const VarRef& x) const {
    auto found = gradients_.find(x.get());
    return found == gradients_.end() ? std::nullopt : found->second.at(0);
  }

 private:
  bool is_active(const Expr& leaf) const { return uses_var(leaf, active_); }

  void hand_on(const Binding& binding, const Gradients& given) {
    const Expr& value = binding.value;
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      const TupleType* tuple = item->tuple.type().as<TupleType>();
      Gradients items(tuple->items.size());
      items[static_cast<size_t>(item->index)] = given[0];
      return add(item->tuple, items);
    }
    if (is_leaf(value)) return add(value, given);
    const OpRow* row = b_.ops().find(op_name(value));
    if (!row) fail_without_rule(value.is<If>() ? "a branch" : value.is<Call>() ? "a call of a function" : "this value");
    const OpCall op{*value.as<Call>(), b_.span()};
    const bool is_open = std::ranges::find(opened_, row) == opened_.end();
    if (row->gradient && !row->gradient->written) return apply(*row->gradient, op, binding.var, given);
    const auto& written = row->gradient ? row->gradient->written : row->decompose;
    if (!written || !is_open || !row->why.empty()) fail_without_rule(row->name);
    Temporarily opened(opened_, opened_);
    opened_.push_back(row);
    const size_t first = b_.size();
    const Expr result = b_.leaf(written(op, b_));
    run(b_.since(first), result, given);
  }
  // Names the operator of the graph, whichever it was written with.
  [[noreturn]] void fail_without_rule(const std::string& what) const {
    fail_unsupported(b_.span(), "the gradient of {} is not known; {}", opened_.empty() ? what : opened_[0]->name,
                     GradientCall::kRemedy);
  }

  void apply(const GradientRule& rule, const OpCall& op, const VarRef& result, const Gradients& given) {
    const GradientCall call{op, b_, result, given};
    for (size_t i = 0; i < std::min(rule.arguments.size(), op.size()); ++i) {
      if (!rule.arguments[i] || !is_active(op.arg(i))) continue;
      const Expr gradient = rule.arguments[i](call);
      const Tuple* items = gradient.as<Tuple>();
      add(op.arg(i),
          items ? map_each(items->items, [](const Expr& e) { return std::optional(e); }) : Gradients{gradient});
    }
  }

  // Adds to the gradients of a leaf.
  void add(const Expr& leaf, const Gradients& given) {
    if (const Tuple* tuple = leaf.as<Tuple>()) {
      for (size_t i = 0; i < given.size(); ++i) {
        if (given[i]) add(tuple->items[i], {given[i]});
      }
      return;
    }
    if (!leaf.is<Var>() || !active_.contains(leaf.get())) return;
    const TupleType* types = leaf.type().as<TupleType>();
    Gradients& sum = gradients_[leaf.get()];
    sum.resize(types ? types->items.size() : 1);
    for (size_t i = 0; i < given.size(); ++i) {
      const Type& type = types ? types->items[i] : leaf.type();
      if (!given[i] || !is_continuous(type)) continue;
      if (!type.is<TensorType>()) fail_without_rule("a value that is not a tensor");
      const Expr gradient = fitted(*given[i], type);
      sum[i] = sum[i] ? b_.op("add", {*sum[i], gradient}) : gradient;
    }
  }
  // Gives the gradient the type of the value: sums what the value's dims of 1 were stretched to, or repeats it.
  Expr fitted(const Expr& gradient, const Type& type) {
    Term g{gradient, &b_};
    if (!known_shape(type)) return g.expr;
    const std::vector<Expr> wanted = Term{make_var("", type), &b_}.shape();
    auto same_dims = [&] {
      return std::ranges::equal(g.shape(), wanted, [](const Expr& a, const Expr& b) {
        return structural_equal(a, b) || equal_dims(a, b) == Verdict::kProven;
      });
    };
    g = g.as(*tensor_dtype(type));
    const std::vector<Expr> dims = g.shape();
    bool is_summed = dims.size() > wanted.size(), is_repeated = dims.size() < wanted.size();
    for (size_t d = 1; d <= std::min(dims.size(), wanted.size()); ++d) {
      const Expr &from = dims[dims.size() - d], &to = wanted[wanted.size() - d];
      is_summed = is_summed || (is_int(to, 1) && !is_int(from, 1));
      is_repeated = is_repeated || (is_int(from, 1) && !is_int(to, 1));
    }
    if (is_summed) g = {b_.op("collapse_sum_to", {g.expr, shape_expr(wanted)}), &b_};
    if (is_repeated) g = g.broadcast_to(wanted);
    return same_dims() ? g.expr : Expr(b_.match_cast(g.expr, type));
  }

  Builder& b_;
  VarSet active_;  // variables that change with the xs
  std::unordered_map<const NodeHeader*, Gradients> gradients_;
  std::vector<const OpRow*> opened_;  // operators that are being differentiated as others
};

}  // namespace

std::vector<Expr> differentiate(const std::vector<Binding>& bindings, const Expr& y, const std::vector<VarRef>& xs,
                                Builder& builder) {
  std::vector<Expr> values(xs.begin(), xs.end());
  values.push_back(y);
  for (const Expr& value : values) {
    std::optional<DType> dtype = tensor_dtype(value.type());
    if (!dtype || !dtype->is_float())
      fail(builder.span(), "a gradient is of and with respect to tensors of floats; {} has dtype {}",
           value.is<Var>() ? fmt::format("'{}'", value.as<Var>()->name) : "a constant",
           dtype ? to_string(*dtype) : "none that is known");
  }
  const Span span = builder.span();
  const Term target{y, &builder};
  Sweep sweep(builder, xs);
  Expr seed = target.rank() == 0 ? target.number(1).expr
                                 : builder.op("ones", {shape_expr(target.shape())}, FillAttrs{target.dtype()});
  sweep.run(bindings, y, {seed});
  builder.set_span(span);
  return map_each(xs, [&](const VarRef& x) {
    std::optional<Expr> gradient = sweep.gradient_of(x);
    return gradient ? *gradient : Term{x, &builder}.zeros().expr;
  });
}

}  // namespace relaxc
