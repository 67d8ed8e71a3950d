// Expects: operators with known shapes (symbolic dims included) on written tuples (spread_tuples). Guarantees: the
// only operators left are those that the VM runs (reshape, shape_of, memory, packed calls); the rest are call_tir.
#include "passes/graph_rewriter.h"
#include "tir/compute.h"
#include "tir/schedule/rule.h"

namespace relaxc {

namespace {

class Legalizer final : public GraphRewriter {
 public:
  Legalizer(const OpTable& ops, IRModule& module) : GraphRewriter(ops), module_(module) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    const std::string& name = op_name(binding.value);
    const OpRow* row = name.empty() || binding.cast ? nullptr : ops_.find(name);
    if (!row || !row->legalize) return std::nullopt;
    const Call& node = *binding.value.as<Call>();
    const Span& span = binding.var.span();
    OpCall op{node, span};
    for (const Expr& arg : node.args) {
      if (arg.type().is<DTensorType>())
        op.unsupported("an R.DTensor lies on the devices of a mesh, and this runtime is one device; write R.Tensor");
      refuse_strings(op, arg.type());
      if (arg.type().is<TupleType>() && !arg.is<Tuple>())
        op.fail("a tuple value as an argument; run spread_tuples before");
    }
    row->infer(op);  // fails with the place of operands of which too little is known
    PrimFuncRef program = with_op_name(row->legalize(op), name.substr(name.find('.') + 1));
    refuse_strings(op, binding.value.type());
    const TupleType* several = binding.value.type().as<TupleType>();
    return make_call_tir(module_, name.substr(name.rfind('.') + 1), program, tensors_of(node),
                         several ? several->items : std::vector{binding.value.type()},
                         span_of_nodes(span, {binding.value.span()}));
  }

 private:
  static void refuse_strings(const OpCall& op, const Type& whole) {
    map_items(whole, [&](const Type& type) {
      if (tensor_dtype(type) == DType::string())
        op.unsupported("no kernel takes strings; move positions in a pool of strings, and R.string.take at the end");
      return type;
    });
  }
  IRModule& module_;
};

}  // namespace

IRModule legalize(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return Legalizer(context.ops, result).run(function);
  });
}

}  // namespace relaxc
