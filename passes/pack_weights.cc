// Expects: operators on leaves. Guarantees: ungrouped nn.conv2d with constant OIHW weights of several output channels
// reads them as IHWO, so that the vectors of a register tile (output channels) are contiguous.
#include "passes/graph.h"

namespace relaxc {

namespace {

class WeightPacker final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* node = as_call(binding.value, "relax.nn.conv2d");
    if (!node || !node->args[1].is<Constant>()) return std::nullopt;
    if (node->attrs.get_string("kernel_layout", "OIHW") != "OIHW") return std::nullopt;
    const std::vector<Expr>& weight = *known_shape(node->args[1].type());
    auto channels = as_int(weight[0]);
    int64_t groups = node->attrs.get_int("groups", 1);
    if (!channels || *channels < 4 || groups != 1) return std::nullopt;
    Expr packed = b.op("permute_dims", {node->args[1]}, Attrs{{"axes", AttrValue(std::vector<int64_t>{1, 2, 3, 0})}});
    return b.op("nn.conv2d", {node->args[0], packed}, node->attrs.with("kernel_layout", "IHWO"), binding.var->name);
  }
};

}  // namespace

IRModule pack_weights(IRModule module, PassContext& context) {
  return map_functions(std::move(module),
                       [&](const FunctionRef& function) { return WeightPacker(context.ops).run(function); });
}

}  // namespace relaxc
