#include "ops/onnx_converter.h"

#include "support/joined.h"

namespace relaxc {

OnnxConverter direct_converter(const OpRow& row, const std::string& name) {
  OnnxConverter result{.name = name, .least_inputs = 0, .most_inputs = 0};
  for (const OpInput& input : row.inputs) {
    result.least_inputs += input.arity == OpInput::Arity::kOne;
    result.most_inputs = input.arity == OpInput::Arity::kVariadic ? 1 << 20 : result.most_inputs + 1;
  }
  result.attributes = joined(row.attrs, &OpAttr::name, " ");
  result.convert = [op = row.name](const OnnxNode& node) -> std::vector<Expr> {
    std::vector<Expr> args;
    for (const std::optional<Expr>& input : node.inputs) {
      if (!input) fail(node.builder.span(), "input {} is required, but has an empty name", args.size());
      args.push_back(*input);
    }
    Expr result = node.builder.op(op, std::move(args), node.attrs);
    const TupleType* items = result.type().as<TupleType>();
    size_t count = items ? items->items.size() : 1;
    if (node.outputs > count) fail(node.builder.span(), "{} outputs, expected at most {}", node.outputs, count);
    if (!items) return {result};
    std::vector<Expr> outputs;
    for (size_t i = 0; i < node.outputs; ++i)
      outputs.push_back(node.builder.emit(tuple_get(result, static_cast<int64_t>(i))));
    return outputs;
  };
  return result;
}

}  // namespace relaxc
