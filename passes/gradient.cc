// Expects: any module. Guarantees: beside each graph function f with the attribute require_grads, a list of names of
// params (none: all that are tensors of floats), there is f_adjoint, which takes the same arguments and returns
// (result of f, (gradient for each of these params, in the order of the names, ...)); f has the attribute no more. The
// outputs of the gradients are named after the params, w_grad. The gradients are those of the sum of the result's
// elements, of the first tensor where the result is a tuple: for a loss, a scalar, those of the loss. They are computed
// backward from the result (ops/gradient.h). f_adjoint is public if f is. (TVM's relax.Gradient makes the same
// function.)
#include "ops/gradient.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/attr_names.h"
#include "passes/graph_rewriter.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

bool is_float_tensor(const VarRef& param) {
  std::optional<DType> dtype = tensor_dtype(param.type());
  return dtype && dtype->is_float();
}
std::vector<VarRef> differentiated_params(const Function& function, const std::string& name, const Span& span) {
  std::vector<std::string> names;
  if (!from_attr(*function.attrs.find(attr_names::kRequireGrads), names))
    fail(span, "the attribute {} of '{}' is not a list of names of params", attr_names::kRequireGrads, name);
  std::vector<VarRef> result;
  if (names.empty()) std::ranges::copy_if(function.params, std::back_inserter(result), is_float_tensor);
  auto name_of = [](const VarRef& param) { return param->name; };
  for (const std::string& wanted : names) {
    const VarRef* param = find_item(function.params, wanted, name_of);
    if (!param)
      fail(span, "'{}' has no param '{}', which {} names; it has: {}", name, wanted, attr_names::kRequireGrads,
           joined(function.params, name_of));
    if (find_item(result, wanted, name_of)) fail(span, "{} names '{}' twice", attr_names::kRequireGrads, wanted);
    result.push_back(*param);
  }
  if (result.empty()) fail(span, "'{}' has no param that is a tensor of floats", name);
  return result;
}

// Names the results, as codegen/bytecode.cc does where the model has no names, and each gradient after its param, or
// with a number where a result has that name.
void name_outputs(Function& function, const Type& result, const std::vector<VarRef>& xs) {
  std::vector<std::string> given;
  if (const AttrValue* names = function.attrs.find(attr_names::kOutputNames)) from_attr(*names, given);
  AttrList names;
  map_items(result, [&](const Type& item) {
    const size_t i = names.size();
    names.emplace_back(i < given.size() ? given[i] : "output_" + std::to_string(i));
    return item;
  });
  for (const VarRef& x : xs) {
    const std::string usual = x->name + "_grad";
    std::string name = usual;
    for (int i = 1; std::ranges::find(names, AttrValue(name)) != names.end(); ++i)
      name = fmt::format("{}_{}", usual, i);
    names.emplace_back(std::move(name));
  }
  function.attrs.set(attr_names::kOutputNames, std::move(names));
}

FunctionRef adjoint_of(const FunctionRef& original, const std::string& name, const OpTable& ops) {
  const FunctionRef fresh = with_fresh_variables(original);
  Function function = *fresh;
  const std::vector<VarRef> xs = differentiated_params(function, name, original.span());
  Builder builder(ops);
  const SeqExpr& seq = *function.body.as<SeqExpr>();
  for (const BindingBlock& block : seq.blocks) {
    if (block.dataflow) builder.begin_dataflow();
    for (const Binding& binding : block.bindings) builder.keep(binding);
    if (block.dataflow) builder.end_dataflow({});
  }
  builder.set_span(original.span());
  builder.begin_dataflow();
  Expr target = seq.body;
  while (target.type().is<TupleType>()) {
    const Tuple* written = target.as<Tuple>();
    if (target.type().as<TupleType>()->items.empty()) fail(original.span(), "the result of '{}' has no tensor", name);
    target = written ? written->items[0] : builder.emit(tuple_get(target, 0, original.span()));
  }
  const std::vector<Expr> gradients = differentiate(builder.since(0), target, xs, builder);
  name_outputs(function, seq.body.type(), xs);
  function.body = builder.finish(tuple({seq.body, tuple(gradients)}));
  function.result = without_unbound_dims(function.body.type(), function.params);
  return make_function(std::move(function), original.span());
}

}  // namespace

IRModule gradient(IRModule module, PassContext& context) {
  const std::map<std::string, Expr> before = module.functions;
  for (const auto& [name, node] : before) {
    auto original = try_cast<Function>(node);
    if (!original || !(*original)->attrs.has(attr_names::kRequireGrads)) continue;
    const std::string adjoint = name + "_adjoint";
    if (module.find(adjoint)) fail(original->span(), "the module has a function '{}' already", adjoint);
    Function copy = **original, added = *adjoint_of(*original, name, context.ops);
    for (Function* function : {&copy, &added}) function->attrs = function->attrs.without(attr_names::kRequireGrads);
    if (added.attrs.has(attr_names::kGlobalSymbol)) added.attrs.set(attr_names::kGlobalSymbol, adjoint);
    module.functions.insert_or_assign(name, make_function(std::move(copy), original->span()));
    module.functions.emplace(adjoint, make_function(std::move(added), original->span()));
  }
  return module;
}

}  // namespace relaxc
