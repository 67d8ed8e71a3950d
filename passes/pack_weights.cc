// Expects: operators on leaves. Guarantees: ungrouped nn.conv2d with constant OIHW weights whose output channels fill
// register tiles reads them in blocks of a tile's columns (layout OIHW32o and the like), each tile's weights in the
// order in which its loops read them.
#include "passes/graph.h"
#include "tir/schedule/loops.h"

namespace relaxc {

namespace {

class WeightPacker final : public GraphRewriter {
 public:
  WeightPacker(const OpTable& ops, const Target& target) : GraphRewriter(ops), target_(target) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* node = as_call(binding.value, "relax.nn.conv2d");
    if (!node || !node->args[1].is<Constant>()) return std::nullopt;
    if (node->attrs.get_string("kernel_layout", "OIHW") != "OIHW" || node->attrs.get_int("groups", 1) != 1)
      return std::nullopt;
    Tensor weight = node->args[1].as<Constant>()->data;
    int64_t channels = weight.shape()[0];
    int64_t columns = choose_column_tile(channels, target_.vector_lanes(weight.dtype().bits)).columns();
    if (channels % columns != 0) return std::nullopt;
    std::vector<Expr> blocks = {int_imm(channels / columns), int_imm(columns)};
    for (size_t d = 1; d < 4; ++d) blocks.push_back(int_imm(weight.shape()[d]));
    Expr blocked = b.op("reshape", {node->args[1], shape_expr(blocks)});
    Expr packed = b.op("permute_dims", {blocked}, Attrs{{"axes", AttrValue(std::vector<int64_t>{0, 2, 3, 4, 1})}});
    return b.op("nn.conv2d", {node->args[0], packed},
                node->attrs.with("kernel_layout", fmt::format("OIHW{}o", columns)), binding.var->name);
  }

 private:
  const Target& target_;
};

}  // namespace

IRModule pack_weights(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return WeightPacker(context.ops, context.target).run(function);
  });
}

}  // namespace relaxc
