// Expects: a graph with folded constants. Guarantees: convolutions and products of int8 operands, the second of which
// is constant, are products on the matrix unit; what it does not take stays for the CPU.
//
// ONNX quantizes x as scale * (x8 - zero). The unit multiplies x8, and
//   sum((x8 - zero) * w) = sum(x8 * w) - zero * sum(w)
// where the padding of a convolution, 0, is the x8 whose value that is: zero. Sums are exact, so the result is the
// same.
#include <relaxc/graph_rewriter.h>

#include <algorithm>

#include "accelerator.h"

namespace mxu {

namespace {

struct Operand {
  Expr x;                            // int8
  std::optional<Expr> zero;          // is subtracted from each element: an int32 tensor of rank 0; absent: nothing is
  std::optional<int64_t> known = 0;  // its value
};

Tensor zeros(const std::vector<int64_t>& shape, DType dtype) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, 0);
  return result;
}

Expr int32_scalar(int64_t value) {
  Tensor result = Tensor::empty({}, kInt32);
  result.set_int(0, value);
  return constant(std::move(result));
}

class Claim final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    const Call* call = binding.value.as<Call>();
    const std::string& op = op_name(binding.value);
    bool is_conv = op == "relax.nn.conv2d";
    if (!call || (!is_conv && op != "relax.matmul") || tensor_dtype(binding.value.type()) != kInt32)
      return std::nullopt;
    const Constant* weight = call->args[1].as<Constant>();
    if (!weight || !is_int8(weight->data)) return std::nullopt;
    if (is_conv) return convolution(*call, weight->data, builder, binding.value.type());
    const std::vector<Expr>* shape = known_shape(call->args[0].type());
    if (!shape || shape->size() < 2 || weight->data.shape().size() != 2) return std::nullopt;
    std::optional<Operand> x = operand(call->args[0], builder);
    if (!x) return std::nullopt;
    Expr rows = int_imm(1);
    for (size_t d = 0; d + 1 < shape->size(); ++d) rows = rows * (*shape)[d];
    if (shape->size() > 2) x->x = reshape(x->x, {rows, shape->back()}, builder);
    int64_t depth = weight->data.shape()[0], columns = weight->data.shape()[1];
    auto at = [&](int64_t k, int64_t n) { return weight->data.as_int(k * columns + n); };
    return product(*x, {}, depth, columns, at, builder, binding.value.type(), false);
  }

  std::optional<Expr> convolution(const Call& call, const Tensor& weight, Builder& builder, const Type& type) {
    RowsAttrs rows;
    int64_t groups = call.attrs.get_int("groups", 1);
    bool is_plain = groups == 1 && call.attrs.get_string("data_layout", "NCHW") == "NCHW" &&
                    call.attrs.get_string("kernel_layout", "OIHW") == "OIHW" &&
                    call.attrs.get_string("out_layout", "NCHW") == "NCHW";
    bool has_numbers = from_attr(*call.attrs.find("strides"), rows.strides) &&
                       from_attr(*call.attrs.find("padding"), rows.padding) &&
                       from_attr(*call.attrs.find("dilation"), rows.dilation);
    if (!is_plain || !has_numbers) return std::nullopt;
    std::optional<Operand> x = operand(call.args[0], builder);
    bool pads = std::ranges::any_of(rows.padding, [](int64_t pixels) { return pixels != 0; });
    if (!x || (pads && !x->known)) return std::nullopt;
    rows.kernel = {weight.shape()[2], weight.shape()[3]};
    rows.outside = x->known.value_or(0);
    int64_t columns = weight.shape()[0], depth = weight.size() / std::max<int64_t>(columns, 1);
    auto at = [&](int64_t k, int64_t n) { return weight.as_int(n * depth + k); };
    return product(*x, rows, depth, columns, at, builder, type, true);
  }

  static bool is_int8(const Tensor& weight) {
    for (int64_t i = 0; i < weight.size(); ++i) {
      if (weight.as_int(i) < -128 || weight.as_int(i) > 127) return false;
    }
    return weight.size() > 0;
  }

  const Expr& value_of(const Expr& leaf) const {
    auto found = values_.find(leaf.get());
    return found == values_.end() ? leaf : found->second;
  }

  // Finds x8 - zero, in int32, for an x8 of 8 bits. Unsigned elements become signed ones, 128 below.
  std::optional<Operand> operand(const Expr& leaf, Builder& builder) const {
    Operand result{value_of(leaf), {}};
    if (const Call* minus = as_call(result.x, OpName{"relax.subtract"})) {
      result.zero = minus->args[1], result.known = std::nullopt;
      const std::vector<Expr>* dims = known_shape(result.zero->type());
      if (!dims || !std::ranges::all_of(*dims, [](const Expr& dim) { return is_int(dim, 1); })) return std::nullopt;
      if (const Constant* known = result.zero->as<Constant>()) result.known = known->data.as_int(0);
      result.x = value_of(minus->args[0]);
    }
    const Call* cast = as_call(result.x, OpName{"relax.astype"});
    std::optional<DType> dtype = cast ? tensor_dtype(cast->args[0].type()) : std::nullopt;
    int64_t below = dtype == DType::uint(8) ? 128 : 0;
    bool fits = !result.known || (*result.known >= below - 128 && *result.known <= below + 127);
    if (!fits || (dtype != kInt8 && dtype != DType::uint(8))) return std::nullopt;
    if (below == 0) {
      result.x = cast->args[0];
    } else {
      Expr lower = builder.op("subtract", {builder.leaf(result.x), int32_scalar(below)});
      result.x = builder.op("astype", {lower}, Attrs{{"dtype", kInt8}});
    }
    if (result.known) {
      *result.known -= below;
      result.zero = *result.known == 0 ? std::nullopt : std::optional(int32_scalar(*result.known));
    } else {
      Expr zero = reshape(*result.zero, {}, builder);
      result.zero = below == 0 ? zero : builder.op("subtract", {zero, int32_scalar(below)});
    }
    return result;
  }

  // Emits the product, whose weight(k, n) is padded to whole tiles, and subtracts zero * sum(weight).
  template <class Weight>
  Expr product(const Operand& x, const RowsAttrs& rows, int64_t depth, int64_t columns, const Weight& weight,
               Builder& builder, const Type& type, bool is_image) const {
    auto rounded_up = [](int64_t n) { return (n + kMxuTile - 1) / kMxuTile * kMxuTile; };
    int64_t width = rounded_up(columns);
    Tensor matrix = zeros({rounded_up(depth), width}, kInt8);
    Tensor sums = zeros(is_image ? std::vector<int64_t>{columns, 1, 1} : std::vector{columns}, kInt32);
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t n = 0; n < columns; ++n) {
        matrix.set_int(k * width + n, weight(k, n));
        sums.set_int(n, sums.as_int(n) + weight(k, n));
      }
    }
    Expr tiles = builder.op("mxu.rows", {x.x}, rows);
    Expr result = builder.op("mxu.matmul", {tiles, constant(matrix)});
    result = builder.op("mxu.result", {result, shape_expr(*known_shape(type))}, ResultAttrs{is_image});
    if (!x.zero) return result;
    return builder.op("subtract", {result, builder.op("multiply", {constant(sums), *x.zero})});
  }

  std::unordered_map<const NodeHeader*, Expr> values_;  // of variables
};

IRModule claim(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& f) { return Claim(context.ops).run(f); });
}

}  // namespace

void add_claim(Tables& tables) {
  tables.add(Pass{.name = "mxu_claim", .doc = "compute products of int8 on the matrix unit", .on_module = claim},
             {{.pipeline = "simplify", .before = "block_channels"}});
}

}  // namespace mxu
