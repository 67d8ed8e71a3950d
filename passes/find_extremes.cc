// Expects: operators on leaves. Guarantees: where a block computes the least and the greatest of all elements of a
// float32 tensor, as dynamic quantization does, one call_tir computes both (attribute finds_extremes):
//   greatest = R.max(x)        both = R.call_tir(extremes, (x,))
//   least = R.min(x)      ->   greatest = both[1]
//                              least = both[0]
// Fusion leaves it alone, so that note_extremes finds it behind the kernel that makes the tensor.
#include "passes/extremes.h"

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "passes/compose.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

// Returns the program that combines all elements, those of `read(axes)`, twice.
PrimFuncRef program_of(ComputeBuilder& b, const std::vector<Expr>& shape,
                       const std::function<Expr(int64_t which, Axes at)>& read) {
  auto combined = [&](const char* name, int64_t which, const Expr& init, const ComputeBuilder::Combine& combine) {
    return b.reduce(name, kFloat32, {}, shape, init, combine, [&](Axes, Axes r) { return read(which, r); });
  };
  const Buffer least = combined("least", 0, highest(kFloat32), combine_min);
  const Buffer greatest = combined("greatest", 1, lowest(kFloat32), combine_max);
  return b.finish({least, greatest}, Attrs{{attr_names::kFindsExtremes, true}});
}

}  // namespace

PrimFuncRef extremes_program(const std::vector<Expr>& shape) {
  ComputeBuilder b;
  const Buffer x = b.input("x", kFloat32, shape);
  return program_of(b, shape, [&](int64_t, Axes at) { return load(x, at); });
}

PrimFuncRef noted_extremes_program(const std::vector<Expr>& shape) {
  ComputeBuilder b;
  const Buffer noted = b.input("noted", kFloat32, shape);
  return program_of(b, {shape.begin() + 1, shape.end()},
                    [&](int64_t which, Axes at) { return load(noted, followed_by({int_imm(which)}, at)); });
}

namespace {

// Returns the tensor of which the binding computes the largest or smallest element as a scalar; null for others.
const Expr* reduced_whole(const Binding& binding, OpName op) {
  const Call* call = binding.cast ? nullptr : as_call(binding.value, op);
  if (!call || !call->args[0].is<Var>() || tensor_dtype(call->args[0].type()) != kFloat32) return nullptr;
  const std::vector<Expr>*shape = known_shape(call->args[0].type()), *result = known_shape(binding.value.type());
  return shape && result && !shape->empty() && result->empty() ? &call->args[0] : nullptr;
}

std::vector<Binding> with_extremes(const std::vector<Binding>& bindings, IRModule& module) {
  struct Uses {
    std::optional<size_t> least, greatest;
  };
  std::unordered_map<const NodeHeader*, Uses> uses;  // by tensor
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (const Expr* x = reduced_whole(bindings[i], ops::kMin)) uses[x->get()].least = i;
    if (const Expr* x = reduced_whole(bindings[i], ops::kMax)) uses[x->get()].greatest = i;
  }
  std::vector<Binding> result;
  std::unordered_map<const NodeHeader*, VarRef> both_of;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const Expr* x = reduced_whole(binding, ops::kMin);
    if (!x) x = reduced_whole(binding, ops::kMax);
    const Uses* known = x ? find_value(uses, x->get()) : nullptr;
    if (!known || !known->least || !known->greatest || (*known->least != i && *known->greatest != i)) {
      result.push_back(binding);
      continue;
    }
    if (!both_of.contains(x->get())) {
      const Type scalar = binding.value.type();
      const Expr call = make_call_tir(module, "extremes", extremes_program(*known_shape(x->type())), {*x},
                                      {scalar, scalar}, span_of(binding));
      const VarRef both = make_var("extremes", call.type(), span_of(binding));
      result.push_back({call, std::nullopt, both});
      both_of.emplace(x->get(), both);
    }
    result.push_back({tuple_get(both_of.at(x->get()), *known->least == i ? 0 : 1), std::nullopt, binding.var});
  }
  return result;
}

Expr in_sequence(const Expr& seq, IRModule& module) {
  return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet&) {
    std::vector<Binding> bindings = block.bindings;
    for (Binding& binding : bindings)
      binding.value = map_sequences(binding.value, [&](const Expr& inner) { return in_sequence(inner, module); });
    return with_extremes(bindings, module);
  });
}

}  // namespace

IRModule find_extremes(IRModule module, PassContext& context) {
  return map_uncomposed(std::move(module), context, [](const FunctionRef& function, IRModule& result) {
    return cast<Function>(map_sequences(function, [&](const Expr& body) { return in_sequence(body, result); }));
  });
}

}  // namespace relaxc
