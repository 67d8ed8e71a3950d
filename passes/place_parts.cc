// Expects: explicit allocations (destination_passing), and R.memory.join of results of kernels (find_views).
// Guarantees: no join is left. A joined tensor is allocated before the first of its parts, and each part is a view of
// it, so that the kernels write in place.
//
//   a = R.builtin.alloc_tensor(...)           c = R.builtin.alloc_tensor(...)
//   conv(x, a)                                a = R.memory.view(c, ..., 0)
//   b = R.builtin.alloc_tensor(...)           conv(x, a)
//   pool(x, b)                            ->  b = R.memory.view(c, ..., 200704)
//   c = R.memory.join((a, b), shape)          pool(x, b)
#include <algorithm>

#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/graph_rewriter.h"
#include "passes/parts.h"
#include "support/lists.h"

namespace relaxc {

namespace {

class PartPlacer {
 public:
  // `outer` are the variables that are bound before the block.
  PartPlacer(std::vector<Binding> bindings, const std::vector<VarRef>& outer) : bindings_(std::move(bindings)) {
    VarSet known;
    for (const VarRef& var : outer) known.insert(var.get());
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Binding& binding = bindings_[i];
      number_of_.emplace(binding.var.get(), i);
      if (binding.cast) {
        for (const VarRef& dim : free_vars(*binding.cast)) {
          if (!known.contains(dim.get())) number_of_.emplace(dim.get(), i);
        }
      }
      // A cast to what is used before tests a dim instead of binding it.
      add_free_vars(binding.value, known);
      add_free_vars(binding.var.type(), known);
    }
  }

  std::vector<Binding> run() {
    for (size_t i = bindings_.size(); i-- > 0;) {
      if (const Call* join = as_call(bindings_[i].value, ops::kMemoryJoin)) place(bindings_[i], *join);
    }
    std::vector<Binding> result;
    std::unordered_set<const NodeHeader*> allocated;
    for (const Binding& binding : bindings_) {
      const MemoryPlace* place = places_.of(binding.var);
      const bool is_join = as_call(binding.value, ops::kMemoryJoin) != nullptr;
      if (place && allocated.insert(place->memory.get()).second) result.push_back(allocation(place->memory));
      if (place) {
        Expr view = memory_view(place->memory, binding.var.type(), place->offset, binding.value.span());
        result.push_back({view, std::nullopt, binding.var});
      } else if (!is_join) {
        result.push_back(binding);
      }
    }
    return result;
  }

 private:
  void place(const Binding& binding, const Call& join) {
    const Tuple* tensors = join.args[0].as<Tuple>();
    const Span& span = span_of(binding);
    if (!tensors) fail(span, "R.memory.join takes a written tuple of tensors, got a value that is a tuple");
    const auto owners = map_each(tensors->items, [&](const Expr& tensor) { return owner_of(tensor); });
    const MemoryPlaces::Plan plan = places_.plan(binding.var, tensors->items, owners);
    if (!plan.elsewhere.empty())
      fail(span,
           "tensor {} of R.memory.join is not the result of a kernel of this block that may be written there: it is an "
           "argument or a constant, or has a place already; join a copy of it",
           plan.elsewhere[0]);
    places_.add(binding.var, plan);
    for (const auto& [part, place] : plan.parts) expect_dims_before(part, binding);
  }

  // The joined tensor is allocated before its first part.
  void expect_dims_before(const VarRef& part, const Binding& join) const {
    for (const VarRef& dim : free_vars(join.var.type())) {
      const size_t* bound_at = find_value(number_of_, dim.get());
      if (bound_at && *bound_at > number_of_.at(part.get()))
        fail(span_of(join), "R.memory.join has the dim '{}', which is bound behind the tensor '{}'; bind it before",
             dim->name, part->name);
    }
  }

  // Returns the allocation, or the join, of which the tensor is the whole.
  std::optional<VarRef> owner_of(const Expr& tensor) const {
    const size_t* number = find_value(number_of_, tensor.get());
    if (!number) return std::nullopt;
    const Binding& binding = bindings_[*number];
    if (const Call* reshape = as_call(binding.value, ops::kReshape)) return owner_of(reshape->args[0]);
    const bool is_owner = as_call(binding.value, ops::kBuiltinAllocTensor) || as_call(binding.value, ops::kMemoryJoin);
    return is_owner ? std::optional(binding.var) : std::nullopt;
  }

  static Binding allocation(const VarRef& memory) {
    const Type& type = memory.type();
    std::vector<Expr> args = {shape_expr(*known_shape(type)), make(DTypeImm{*tensor_dtype(type)}, object_type())};
    return {call(op_ref(ops::kBuiltinAllocTensor), std::move(args), {}, type, memory.span()), std::nullopt, memory};
  }

  std::vector<Binding> bindings_;
  std::unordered_map<const NodeHeader*, size_t> number_of_;
  MemoryPlaces places_;
};

Expr place_in(const Expr& sequence) {
  std::vector<Binding> bindings = bindings_of(sequence);
  bool changes = false;
  for (Binding& binding : bindings) {
    Expr value = map_sequences(binding.value, place_in);
    changes = changes || !same_node(value, binding.value) || as_call(value, ops::kMemoryJoin);
    binding.value = std::move(value);
  }
  if (!changes) return sequence;
  PartPlacer placer(std::move(bindings), free_vars(sequence));
  return seq_expr({{false, placer.run(), {}}}, cast<SeqExpr>(sequence)->body, sequence.span());
}

}  // namespace

IRModule place_parts(IRModule module, PassContext&) {
  return map_functions(std::move(module),
                       [](const FunctionRef& function) { return cast<Function>(map_sequences(function, place_in)); });
}

}  // namespace relaxc
