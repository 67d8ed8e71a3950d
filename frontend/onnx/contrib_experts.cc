// Mixtures of experts of com.microsoft (Shazeer et al., "Outrageously large neural networks", 2017): each row of the
// input goes through the few experts that the router prefers. Where the weights are constants, each expert gathers its
// rows, whose number the run decides, and adds what it makes of them to the result. Weights that are not constants, or
// of very many experts, would be copied or be very many nodes: there all experts compute all rows, and those that the
// router leaves out get the weight 0, which costs experts / k times the work.
#include <optional>

#include "frontend/onnx/contrib.h"
#include "ir/text/printer.h"

namespace relaxc::onnx_import {

namespace {

// A layer of all experts: weight [experts, out, in] and bias [experts, out].
struct ExpertLayer {
  Expr weight;
  std::optional<Expr> bias = {};

  // Returns the layer of one expert.
  ExpertLayer of(Node& n, int64_t expert) const {
    auto part = [&](const Expr& x) { return n.slice(x, 0, int_imm(expert), int_imm(expert + 1)); };
    return {part(weight), bias ? std::optional(part(*bias)) : std::nullopt};
  }
};

// Returns x [experts or 1, rows, in] through the layer: [experts, rows, out].
Expr through(Node& n, const ExpertLayer& layer, const Expr& x) {
  Expr y = n.op("matmul", {x, n.transpose(layer.weight, {0, 2, 1})});
  return layer.bias ? n.add(y, n.with_new_axis(*layer.bias, 1)) : y;
}

// Returns gate * sigmoid(alpha * gate) * (linear + beta), both within the limit.
Expr swiglu_of_experts(Node& n, Expr gate, Expr linear) {
  if (n.has_attr("swiglu_limit")) {
    const double limit = n.attr_float("swiglu_limit", 0);
    gate = n.binary("minimum", gate, n.scalar_like(limit, gate));
    linear = n.clip(linear, -limit, limit);
  }
  Expr turned = n.mul(gate, n.op("sigmoid", {n.scaled(gate, n.attr_float("activation_alpha", 1))}));
  return n.mul(turned, n.add(linear, n.scalar_like(n.attr_float("activation_beta", 0), linear)));
}
// The first layer holds gate and linear part of SwiGLU by turns (swiglu_fusion 1) or one behind the other (2); else
// the third layer has the linear part.
Expr hidden_of_experts(Node& n, const Expr& x, const ExpertLayer& first, const std::optional<ExpertLayer>& third) {
  const std::string activation = n.attr_string("activation_type", "relu");
  const int64_t fusion = n.attr_int("swiglu_fusion", 0);
  Expr y = through(n, first, x);
  if (activation == "swiglu") {
    if (fusion < 0 || fusion > 2) n.fail("swiglu_fusion is {}, expected 0 to 2", fusion);
    if (fusion == 0) {
      if (!third) n.fail("activation 'swiglu' without swiglu_fusion needs the weights of fc3");
      return swiglu_of_experts(n, y, through(n, *third, x));
    }
    std::vector<Expr> dims = n.shape_of(y);
    const Expr size = n.simplify(floor_div(dims[2], 2));
    const int64_t axis = fusion == 1 ? 3 : 2;
    dims[2] = fusion == 1 ? size : int_imm(2);
    dims.push_back(fusion == 1 ? int_imm(2) : size);
    Expr pairs = n.reshape(y, dims);
    return swiglu_of_experts(n, n.pick(pairs, axis, 0), n.pick(pairs, axis, 1));
  }
  if (activation == "silu") {
    y = n.op("nn.silu", {y});
  } else if (activation == "relu") {
    y = n.op("nn.relu", {y});
  } else if (activation == "gelu") {
    y = n.op("nn.gelu", {y});
  } else if (activation != "identity") {
    n.fail("activation_type is '{}', expected relu, gelu, silu, swiglu or identity", activation);
  }
  return third ? n.mul(y, through(n, *third, x)) : y;
}

// Returns the weight of each expert for each row: [rows, experts], in float32. It is 0 for all but the k that have the
// largest of `scores`.
Expr routing(Node& n, const Expr& scores, const std::optional<Expr>& weights) {
  const int64_t k = n.attr_int("k", 1);
  if (n.attr_int("use_sparse_mixer", 0) != 0) n.unsupported("attribute 'use_sparse_mixer'");
  if (k < 1) n.fail("k is {}, expected at least 1", k);
  Expr logits = n.cast(scores, kFloat32);
  Expr probabilities = n.op("nn.softmax", {logits}, LastAxisAttrs{-1});
  Expr count = n.reshape(n.scalar(static_cast<double>(k), kInt64), {int_imm(1)});
  Outputs best = n.standard_outputs("TopK", {logits, count}, {{"axis", int64_t{-1}}});
  Expr experts = n.op("arange", {int_imm(0), n.dim_of(scores, 1), int_imm(1)}, DTypeAttrs{kInt64});
  Expr is_chosen = n.op("equal", {n.with_new_axis(n.tensor(best[1]), 2), experts});  // [rows, k, experts]
  Expr chosen = n.reduce("sum", n.cast(is_chosen, kFloat32), {1}, false);
  Expr result = n.mul(chosen, weights ? n.cast(*weights, kFloat32) : probabilities);
  if (n.attr_int("normalize_routing_weights", 0) == 0) return result;
  return n.div(result, n.reduce("sum", result, {1}, true));
}

// Returns the sum of what each expert makes of the rows [rows, size] for which it has a weight.
Expr sum_of_chosen(Node& n, const Expr& rows, const Expr& weights, const std::vector<ExpertLayer>& layers) {
  const std::vector<Expr> shape = n.shape_of(rows);
  Expr sum = n.broadcast_to(n.scalar_like(0, rows), shape);
  const int64_t experts = *as_int(n.dim_of(weights, 1));
  for (int64_t expert = 0; expert < experts; ++expert) {
    Expr weight = n.pick(weights, 1, int_imm(expert));
    Expr is_chosen = n.op("not_equal", {weight, n.scalar_like(0, weight)});
    Expr found = n.standard("NonZero", {is_chosen});
    const Expr count = n.dim_of(found, 1);
    Expr positions = n.reshape(found, {count});
    Expr x = n.with_new_axis(n.op("take", {rows, positions}, TakeAttrs{.axis = 0}), 0);
    std::optional<ExpertLayer> third = layers.size() > 2 ? std::optional(layers[2].of(n, expert)) : std::nullopt;
    Expr y = through(n, layers[1].of(n, expert), hidden_of_experts(n, x, layers[0].of(n, expert), third));
    y = n.mul(n.reshape(y, {count, shape[1]}),
              n.with_new_axis(n.op("take", {weight, positions}, TakeAttrs{.axis = 0}), 1));
    sum = n.standard("ScatterND", {sum, n.with_new_axis(positions, 1), y}, {{"reduction", std::string("add")}});
  }
  return sum;
}

Expr mix(Node& n, const Expr& router, const std::optional<Expr>& router_weights, const ExpertLayer& first,
         const ExpertLayer& second, const std::optional<ExpertLayer>& third) {
  constexpr int64_t kMostExperts = 256;
  const DType dtype = n.dtype(0);
  const Expr size = n.dim_of(n.tensor(0), -1);
  Expr rows = n.reshape(n.tensor(0), {n.simplify(floor_div(product(n.shape(0)), size)), size});
  if (n.shape_of(router).size() != 2) n.fail("router_probs has rank {}, expected 2", n.shape_of(router).size());
  Expr weights = n.cast(routing(n, router, router_weights), dtype);
  const bool is_constant = n.tensor(2).is<Constant>();
  if (is_constant && as_int(n.dim_of(router, 1)).value_or(INT64_MAX) <= kMostExperts) {
    std::vector<ExpertLayer> layers = {first, second};
    if (third) layers.push_back(*third);
    return n.reshape(sum_of_chosen(n, rows, weights, layers), n.shape(0));
  }
  Expr y = through(n, second, hidden_of_experts(n, n.with_new_axis(rows, 0), first, third));
  Expr sum = n.reduce("sum", n.mul(y, n.with_new_axis(n.transpose(weights, {1, 0}), 2)), {0}, false);
  return n.reshape(sum, n.shape(0));
}

// Weights are [experts, out, in]; before ONNX Runtime 1.22 they were [experts, in, out].
Expr moe(Node& n) {
  const Expr size = n.dim_of(n.tensor(0), -1);
  if (n.rank(2) != 3) n.fail("fc1_experts_weights has rank {}, expected 3", n.rank(2));
  const bool is_turned = !n.provably_equal(n.dim(2, 2), size) && n.provably_equal(n.dim(2, 1), size);
  auto layer = [&](size_t i) {
    Expr weight = n.tensor(i);
    return ExpertLayer{is_turned ? n.transpose(weight, {0, 2, 1}) : weight, n.optional_tensor(i + 1)};
  };
  return mix(n, n.tensor(1), std::nullopt, layer(2), layer(4), n.has(6) ? std::optional(layer(6)) : std::nullopt);
}

// Returns numbers of few bits times the scale of their row, or of their block in it.
Expr weights_of_qmoe(Node& n, size_t weight, size_t scale, size_t zero_points) {
  const int64_t bits = n.attr_int("expert_weight_bits", 4), block = n.attr_int("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    n.unsupported("attribute 'expert_weight_bits' is {}, expected 2, 4 or 8", bits);
  const DType dtype = n.dtype(scale);
  Expr numbers = n.cast(unpacked(n, n.tensor(weight), bits), dtype);
  const Expr rows = n.dim_of(numbers, 1), columns = n.dim_of(numbers, 2);
  const bool has_blocks = n.rank(scale) == 3;
  if (has_blocks && block < 1) n.fail("scales in blocks, and block_size is {}", block);
  // Gives the parameters of rows or blocks the shape of the weights.
  auto spread = [&](const Expr& x) {
    if (!has_blocks) return n.with_new_axis(x, 2);
    Expr wide = n.op("repeat", {x}, RepeatAttrs{.repeats = block, .axis = 2});
    return n.slice(wide, 2, int_imm(0), columns);
  };
  Expr zero = n.scalar(static_cast<double>(int64_t{1} << (bits - 1)), dtype);
  if (n.has(zero_points)) {
    Expr points = unpacked(n, n.tensor(zero_points), bits);
    const int64_t last = has_blocks ? 2 : 1;
    points = n.slice(points, last, int_imm(0), has_blocks ? n.dim(scale, 2) : rows);
    zero = spread(n.cast(points, dtype));
  }
  return n.cast(n.mul(n.sub(numbers, zero), spread(n.tensor(scale))), n.dtype(0));
}
Expr qmoe(Node& n) {
  if (n.attr_string("quant_type", "int") != "int") n.unsupported("attribute 'quant_type' other than 'int'");
  if (n.attr_int("weights_prepacked", 0) == 1) n.unsupported("attribute 'weights_prepacked'");
  auto layer = [&](size_t i, size_t zero_points) {
    std::optional<Expr> bias = n.optional_tensor(i + 2);
    if (bias) bias = n.cast(*bias, n.dtype(0));
    return ExpertLayer{weights_of_qmoe(n, i, i + 1, zero_points), bias};
  };
  return mix(n, n.tensor(1), n.optional_tensor(14), layer(2, 11), layer(5, 12),
             n.has(8) ? std::optional(layer(8, 13)) : std::nullopt);
}

}  // namespace

std::vector<ConverterRow> contrib_experts_converters() {
  return in_domain(
      "com.microsoft",
      {
          {"MoE", 1, 5, 8, moe,
           "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion swiglu_limit "
           "use_sparse_mixer",
           "", 0b1000},
          {"QMoE", 1, 7, 15, qmoe,
           "accuracy_level activation_alpha activation_beta activation_type block_size expert_weight_bits k "
           "normalize_routing_weights quant_type swiglu_fusion swiglu_limit use_sparse_mixer weights_prepacked",
           "", 0b10000},
      });
}

}  // namespace relaxc::onnx_import
