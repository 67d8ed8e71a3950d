// Expects: operators on leaves. Guarantees: constant weights lie in the order in which kernels read them, in blocks of
// a register tile's columns:
//   ungrouped nn.conv2d whose output channels fill such blocks: the layout OIHW32o and the like;
//   matmul with a constant [k, n] right operand: a call_tir that reads [n / 32, k, 32].
#include "ops/window.h"
#include "passes/graph.h"
#include "tir/compute.h"
#include "tir/schedule/loops.h"

namespace relaxc {

namespace {

// x[..., k] times y[n / columns, k, columns].
PrimFuncRef packed_matmul(const std::vector<Expr>& x_shape, DType dtype, int64_t depth, int64_t blocks,
                          int64_t columns) {
  ComputeBuilder b;
  Buffer x = b.input("x1", dtype, x_shape);
  Buffer y = b.input("x2", dtype, {int_imm(blocks), int_imm(depth), int_imm(columns)});
  std::vector<Expr> shape(x_shape.begin(), x_shape.end() - 1);
  shape.push_back(int_imm(blocks * columns));
  DType sum = accumulation_dtype(dtype);
  Buffer product = b.reduce("matmul", sum, shape, {int_imm(depth)}, zero(sum), combine_sum, [&](Axes i, Axes r) {
    std::vector<Expr> left(i.begin(), i.end() - 1);
    left.push_back(r[0]);
    Expr right = load(y, {floor_div(i.back(), columns), r[0], floor_mod(i.back(), columns)});
    return cast_to(load(x, left), sum) * cast_to(right, sum);
  });
  return with_op_name(b.finish({as_dtype(b, product, dtype, "matmul_cast")}), "matmul");
}

class WeightPacker final : public GraphRewriter {
 public:
  WeightPacker(const OpTable& ops, const Target& target, IRModule& module)
      : GraphRewriter(ops), target_(target), module_(module) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    if (const Call* conv = as_call(binding.value, "relax.nn.conv2d")) return pack_conv2d(*conv, binding, b);
    if (const Call* matmul = as_call(binding.value, "relax.matmul")) return pack_matmul(*matmul, binding, b);
    return std::nullopt;
  }

 private:
  // The columns of a tile when they divide the extent; 0: they do not.
  int64_t columns_of(int64_t extent, DType dtype) const {
    int64_t columns = choose_column_tile(extent, target_.vector_lanes(dtype.bits)).columns();
    return extent > 0 && extent % columns == 0 ? columns : 0;
  }

  std::optional<Expr> pack_conv2d(const Call& node, const Binding& binding, Builder& b) {
    if (!node.args[1].is<Constant>()) return std::nullopt;
    if (node.attrs.get_string("kernel_layout", "OIHW") != "OIHW" || node.attrs.get_int("groups", 1) != 1)
      return std::nullopt;
    Tensor weight = node.args[1].as<Constant>()->data;
    int64_t channels = weight.shape()[0];
    int64_t columns = columns_of(channels, weight.dtype());
    if (columns == 0) return std::nullopt;
    std::vector<Expr> blocks = {int_imm(channels / columns), int_imm(columns)};
    for (size_t d = 1; d < 4; ++d) blocks.push_back(int_imm(weight.shape()[d]));
    Expr blocked = b.op("reshape", {node.args[1], shape_expr(blocks)});
    Expr packed = b.op("permute_dims", {blocked}, Attrs{{"axes", AttrValue(std::vector<int64_t>{0, 2, 3, 4, 1})}});
    return b.op("nn.conv2d", {node.args[0], packed}, node.attrs.with("kernel_layout", fmt::format("OIHW{}o", columns)),
                binding.var->name);
  }

  std::optional<Expr> pack_matmul(const Call& node, const Binding& binding, Builder& b) {
    const Constant* constant = node.args[1].as<Constant>();
    const std::vector<Expr>* shape = known_shape(node.args[0].type());
    if (!constant || constant->data.ndim() != 2 || !shape || shape->empty() || binding.cast) return std::nullopt;
    DType dtype = constant->data.dtype();
    std::optional<DType> result = tensor_dtype(binding.value.type());
    if (!dtype.is_float() || dtype.bits > 32 || tensor_dtype(node.args[0].type()) != dtype || result != dtype)
      return std::nullopt;
    int64_t depth = constant->data.shape()[0], extent = constant->data.shape()[1];
    int64_t columns = columns_of(extent, dtype);
    if (columns == 0 || depth == 0) return std::nullopt;
    Expr blocked =
        b.op("reshape", {node.args[1], shape_expr({int_imm(depth), int_imm(extent / columns), int_imm(columns)})});
    Expr packed = b.op("permute_dims", {blocked}, Attrs{{"axes", AttrValue(std::vector<int64_t>{1, 0, 2})}});
    PrimFuncRef program = packed_matmul(*shape, dtype, depth, extent / columns, columns);
    return make_call_tir(module_, "matmul", program, {node.args[0], packed}, {binding.value.type()},
                         binding.var.span());
  }

  const Target& target_;
  IRModule& module_;
};

}  // namespace

IRModule pack_weights(IRModule module, PassContext& context) {
  IRModule result = module;
  for (const auto& [name, function] : module.functions) {
    if (auto graph = try_cast<Function>(function))
      result.functions.insert_or_assign(name, WeightPacker(context.ops, context.target, result).run(*graph));
  }
  return result;
}

}  // namespace relaxc
