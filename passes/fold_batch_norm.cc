// Expects: operators on leaves. Guarantees: no nn.batch_norm in inference form with constant statistics is left: it is
// a multiply and an add with constants, and where its input is a convolution with constant weights that nothing else
// uses, the multiply is in the weights.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"

namespace relaxc {

namespace {

class BatchNormFolder final : public GraphRewriter {
 public:
  BatchNormFolder(const OpTable& ops, const FunctionRef& function) : GraphRewriter(ops) {
    for_each_binding(function->body, [&](const Binding& binding) {
      for (const VarRef& var : free_vars(binding.value)) ++uses_[var.get()];
    });
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    // tuple_get(batch_norm(...), 0) is the tensor; the statistics pass through.
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>()) {
      const std::vector<Expr>* items = find_value(folded_, item->tuple.get());
      return items ? std::optional((*items)[static_cast<size_t>(item->index)]) : std::nullopt;
    }
    const Call* node = as_call(binding.value, ops::kBatchNorm);
    if (!node) return std::nullopt;
    BatchNormAttrs attrs = read_attrs<BatchNormAttrs>(node->attrs);
    bool constants = std::all_of(node->args.begin() + 1, node->args.end(), std::mem_fn(&Expr::is<Constant>));
    std::optional<DType> dtype = tensor_dtype(node->args[0].type());
    int64_t rank = known_rank(node->args[0].type());
    if (attrs.training || !constants || dtype != kFloat32 || rank < 2) return std::nullopt;
    Expr epsilon = constant(Tensor::of<float>({}, kFloat32, {static_cast<float>(attrs.epsilon)}));
    Expr scale = b.op("rsqrt", {b.op("add", {node->args[4], epsilon})});
    if (attrs.scale) scale = b.op("multiply", {scale, node->args[1]});
    Expr shift = b.op("multiply", {b.op("negative", {node->args[3]}), scale});
    if (attrs.center) shift = b.op("add", {shift, node->args[2]});
    int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
    Expr data = node->args[0];
    std::optional<Expr> scaled = axis == 1 ? scale_convolution(data, scale, b) : std::nullopt;
    if (!scaled) scaled = b.op("multiply", {data, channels_at(scale, axis, rank, b)});
    Expr result = b.op("add", {*scaled, channels_at(shift, axis, rank, b)});
    folded_.emplace(binding.var.get(), std::vector<Expr>{result, node->args[3], node->args[4]});
    return std::nullopt;  // the tuple becomes dead code when only its items are used
  }

 private:
  // Returns the vector as a tensor of that rank that varies along that axis.
  static Expr channels_at(const Expr& vector, int64_t axis, int64_t rank, Builder& b) {
    std::vector<Expr> dims(static_cast<size_t>(rank), int_imm(1));
    dims[static_cast<size_t>(axis)] = (*known_shape(vector.type()))[0];
    return reshape(vector, dims, b);
  }

  // Returns (conv(x, w) [+ bias]) * scale as conv(x, w * scale) [+ bias * scale].
  std::optional<Expr> scale_convolution(const Expr& data, const Expr& scale, Builder& b) {
    auto value_of = [&](const Expr& e) -> const Expr* {
      const Expr* value = find_value(values_, e.get());
      return value && uses_[e.get()] == 1 && value->is<Call>() ? value : nullptr;
    };
    const Expr* convolution = value_of(data);
    std::optional<Expr> bias;
    if (const Call* sum = convolution ? as_call(*convolution, ops::kAdd) : nullptr) {
      if (!sum->args[1].is<Constant>()) return std::nullopt;
      bias = sum->args[1];
      convolution = value_of(sum->args[0]);
      // The bias must vary over channels only.
      const std::vector<Expr>& dims = *known_shape(bias->type());
      int64_t rank = known_rank(data.type()), offset = rank - std::ssize(dims);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (static_cast<int64_t>(d) + offset != 1 && !is_int(dims[d], 1)) return std::nullopt;
      }
    }
    const Call* node = convolution ? convolution->as<Call>() : nullptr;
    const OpRef* op = node ? node->callee.as<OpRef>() : nullptr;
    bool is_convolution = op && (op->name == ops::kConv1d || op->name == ops::kConv2d || op->name == ops::kConv3d);
    if (!is_convolution || !node->args[1].is<Constant>() || tensor_dtype(node->args[1].type()) != kFloat32)
      return std::nullopt;
    // The attribute is the same for one, two and three dims, and is always written (normalize_call).
    if (!read_attrs<ConvAttrs<2>>(node->attrs).kernel_layout.starts_with("OI")) return std::nullopt;
    Expr weight = b.op("multiply", {node->args[1], channels_at(scale, 0, known_rank(node->args[1].type()), b)});
    const Span normalization = b.span();
    b.set_span(span_of_nodes(convolution->span(), {normalization}));
    Expr result = b.op(op->name, {node->args[0], weight}, node->attrs);
    b.set_span(normalization);
    if (!bias) return result;
    Expr scaled_bias = b.op("multiply", {*bias, channels_at(scale, 1, known_rank(data.type()), b)});
    return b.op("add", {result, scaled_bias});
  }

  std::unordered_map<const NodeHeader*, Expr> values_;  // as rebuilt so far
  std::unordered_map<const NodeHeader*, int> uses_;
  std::unordered_map<const NodeHeader*, std::vector<Expr>> folded_;
};

}  // namespace

IRModule fold_batch_norm(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return BatchNormFolder(context.ops, function).run(function);
  });
}

}  // namespace relaxc
