// RNN, GRU and LSTM: one product for the inputs of all steps, then a loop over the steps.
#include <algorithm>

#include "frontend/onnx/attention.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/loop.h"
#include "frontend/onnx/recurrent.h"
#include "support/checked_math.h"

namespace relaxc::onnx_import {

namespace {

constexpr int64_t kStateLanes = 16;  // float32s of the widest vectors; shorter ones divide it

// The activation functions of recurrent operators, by ONNX's names in lower case. Absent parameters have ONNX's values.
struct Activation {
  std::string name;
  std::optional<double> alpha, beta;
};

class Recurrent {
 public:
  // With `quantizes` the node is an LSTM whose products quantize their first operand when the model runs.
  Recurrent(Node& n, const Expr& w, const Expr& r, bool quantizes = false) : n_(n), quantizes_(quantizes) {
    kind_ = quantizes ? "LSTM" : n.op_type();
    gates_ = kind_ == "RNN" ? 1 : kind_ == "GRU" ? 3 : 4;
    batch_first_ = !quantizes && n.attr_int("layout", 0) != 0;
    direction_ = n.attr_string("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      n.fail("direction is '{}'", direction_);
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    x_ = n.tensor(0);
    if (n.shape_of(x_).size() != 3) n.fail("input has rank {}, expected 3", n.shape_of(x_).size());
    if (batch_first_) x_ = n.transpose(x_, {1, 0, 2});
    steps_ = n.dim_of(x_, 0);
    batch_ = n.dim_of(x_, 1);
    if (n.shape_of(r).size() != 3) n.fail("the recurrent weights have rank {}, expected 3", n.shape_of(r).size());
    hidden_ = n.dim_of(r, 2);
    if (n.has_attr("hidden_size")) {
      const int64_t given = n.required_int("hidden_size");
      if (auto known = as_int(hidden_); known && *known != given)
        n.fail("hidden_size is {}, but the weights have {}", given, *known);
      hidden_ = int_imm(given);
    }
    dtype_ = n.dtype(0);
    read_activations();
    clip_ = n.has_attr("clip") ? std::optional(n.attr_float("clip", 0)) : std::nullopt;
    if (kind_ == "GRU") linear_before_reset_ = n.attr_int("linear_before_reset", 0) != 0;
    if (kind_ == "LSTM") input_forget_ = n.attr_int("input_forget", 0) != 0;
    const Expr all = int_imm(directions_);
    w_ = weights(w, {all, states(gates_), n.dim_of(w, 2)});
    r_ = weights(r, {all, states(gates_), hidden_});
    if (n.has(3)) bias_ = weights(n.tensor(3), {all, states(2 * gates_)});
    if (n.has(7)) peepholes_ = weights(n.tensor(7), {all, states(3)});
    if (n.has(4)) lengths_ = lengths(n.cast(n.tensor(4), kInt64));
    pad_states();
  }

  Outputs convert() {
    std::vector<std::vector<Expr>> results;  // by direction: hidden state, cell, rows
    for (int64_t d = 0; d < directions_; ++d) results.push_back(run(d));
    auto of_all = [&](size_t k, int64_t axis) {
      return join(n_, map_each(results, [&](const auto& list) { return n_.with_new_axis(list[k], axis); }), axis);
    };
    Expr rows = without_padding(of_all(results[0].size() - 1, 1));  // [steps, directions, batch, hidden]
    auto final_state = [&](size_t k) {
      Expr all = without_padding(of_all(k, 0));
      return n_.of(batch_first_ ? n_.transpose(all, {1, 0, 2}) : all);
    };
    Outputs outputs = {n_.of(batch_first_ ? n_.transpose(rows, {2, 0, 1, 3}) : rows), final_state(0)};
    if (kind_ == "LSTM") outputs.push_back(final_state(1));
    return outputs;
  }

 private:
  // Returns the length of so many hidden states.
  Expr states(int64_t count) const { return n_.simplify(hidden_ * count); }
  // Returns weights with these dims, which symbolic ones must be when the model runs.
  Expr weights(const Expr& x, const std::vector<Expr>& dims) {
    const std::vector<Expr>& given = n_.shape_of(x);
    const bool is_known = std::ranges::all_of(given, [](const Expr& dim) { return as_int(dim).has_value(); });
    return is_known || given.size() != dims.size() ? x : n_.match_cast(x, tensor_type(dims, dtype_));
  }
  // Lets states have the length of whole vectors, so that the kernels of a step have no rest. The weights of what is
  // added are zeros, by which neither the states nor what they add to the product with R become anything but zeros.
  void pad_states() {
    const auto size = as_int(hidden_);
    if (!size || *size <= 0 || quantizes_ || dtype_ != kFloat32 || !can_be_padded()) return;
    const int64_t lanes = *size <= 4 ? 4 : *size <= 8 ? 8 : kStateLanes;
    padding_ = round_up(*size, lanes) - *size;
    if (padding_ == 0) return;
    w_ = with_padded_states(w_, gates_, *size);
    r_ = pad(with_padded_states(r_, gates_, *size), 2);
    if (bias_) bias_ = with_padded_states(*bias_, 2 * gates_, *size);
    if (peepholes_) peepholes_ = with_padded_states(*peepholes_, 3, *size);
    hidden_ = int_imm(*size + padding_);
  }
  // Returns whether zeros for weights are added when the model is compiled, and keep the states zero.
  bool can_be_padded() const {
    auto is_constant = [](const std::optional<Expr>& x) { return !x || x->is<Constant>(); };
    auto keeps_zero = [](const Activation& row) {
      constexpr std::string_view kNames[] = {"tanh", "relu", "scaledtanh", "softsign", "leakyrelu", "elu"};
      return std::ranges::count(kNames, row.name) > 0;
    };
    bool all = true;  // activations of what a state adds up or is, for each direction
    const size_t each = activations_per_direction(), candidate = each > 1 ? 1 : 0;
    for (size_t at = candidate; at < activations_.size(); at += each) all = all && keeps_zero(activations_[at]);
    return all && is_constant(w_) && is_constant(r_) && is_constant(bias_) && is_constant(peepholes_);
  }
  // Returns weights of so many states of `size` side by side in axis 1, each with zeros behind it.
  Expr with_padded_states(const Expr& x, int64_t count, int64_t size) {
    std::vector<Expr> dims = n_.shape_of(x);
    std::vector<Expr> apart = dims;
    apart[1] = int_imm(count);
    apart.insert(apart.begin() + 2, int_imm(size));
    dims[1] = int_imm(count * (size + padding_));
    return n_.reshape(pad(n_.reshape(x, apart), 2), dims);
  }
  Expr pad(const Expr& x, size_t axis) {
    std::vector<int64_t> widths(2 * n_.shape_of(x).size());
    widths[2 * axis + 1] = padding_;
    return n_.op("nn.pad", {x}, PadAttrs{.pad_width = widths});
  }
  Expr without_padding(const Expr& x) {
    const int64_t axis = std::ssize(n_.shape_of(x)) - 1;
    return padding_ == 0 ? x : n_.slice(x, axis, int_imm(0), n_.simplify(hidden_ - padding_));
  }

  size_t activations_per_direction() const { return kind_ == "RNN" ? 1 : kind_ == "GRU" ? 2 : 3; }

  // Returns the lengths of the sequences as [batch, 1]. The run refuses those that no sequence of these steps has, as
  // ONNX Runtime does.
  Expr lengths(const Expr& given) {
    const Expr steps = n_.simplify(steps_);
    const auto known = n_.constant(4);
    for (int64_t i = 0; known && i < known->size(); ++i) {
      const int64_t length = known->as_int(i);
      if (length < 0 || length > as_int(steps).value_or(length))
        n_.fail("length {} of sequence_lens is {}, expected 0 to {}, the steps of X", i, length, print_expr(steps));
    }
    const Expr left = n_.sub(n_.op("scalar_to_tensor", {steps_}), given);
    require_each_at_least(n_, n_.op("minimum", {given, left}), 0, "sequence_lens below 0 or above the steps of X");
    return n_.reshape(given, {batch_, int_imm(1)});
  }

  void read_activations() {
    const std::vector<std::string> defaults = {"Sigmoid", "Tanh", "Tanh"};
    std::vector<std::string> names = n_.attr_strings("activations");
    std::vector<double> alphas = n_.attr_floats("activation_alpha"), betas = n_.attr_floats("activation_beta");
    size_t count = activations_per_direction() * static_cast<size_t>(directions_);
    for (size_t i = 0; names.size() < count; ++i)
      names.push_back(defaults[(kind_ == "RNN" ? 1 : 0) + i % activations_per_direction()]);
    // Parameters are listed for the functions that take them.
    size_t alpha = 0, beta = 0;
    for (size_t i = 0; i < count; ++i) {
      std::string name = lower_case(names[i]);
      bool has_beta = name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
      bool has_alpha = has_beta || name == "leakyrelu" || name == "thresholdedrelu" || name == "elu";
      Activation& row = activations_.emplace_back(Activation{name, {}, {}});
      if (has_alpha && alpha < alphas.size()) row.alpha = alphas[alpha++];
      if (has_beta && beta < betas.size()) row.beta = betas[beta++];
    }
  }
  static std::string lower_case(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  }

  // One direction. Returns the last hidden state, the last cell of an LSTM, and the states of all steps.
  std::vector<Expr> run(int64_t d) {
    bool reverse = direction_ == "reverse" || d == 1;
    Expr w = n_.transpose(n_.pick(w_, 0, d), {1, 0});
    Expr flat = as_operand(n_, n_.reshape(x_, {n_.simplify(steps_ * batch_), n_.dim_of(x_, 2)}));
    Expr from_inputs = n_.op("matmul", {flat, w});
    if (bias_) from_inputs = n_.add(from_inputs, bias_of_inputs(d));
    from_inputs = n_.reshape(from_inputs, {steps_, batch_, states(gates_)});
    std::vector<Expr> first = {initial(5, d)};
    if (kind_ == "LSTM") first.push_back(initial(6, d));
    auto body = [&](Node& step, const Expr& i, const std::vector<Expr>& state) {
      Expr t = reverse ? step.simplify(steps_ - 1 - i) : i;
      std::vector<Expr> next = next_state(step, d, step.pick(from_inputs, 0, t), state);
      Expr row = next[0];
      if (lengths_) {  // beyond a sequence's length the state stays and the output is 0
        Expr at = step.tensor(step.of(KnownTensor{kInt64, {}, {t}}));
        Expr active = step.op("greater", {*lengths_, at});
        row = step.op("where", {active, row, step.scalar(0, dtype_)});
        for (size_t k = 0; k < next.size(); ++k) next[k] = step.op("where", {active, next[k], state[k]});
      }
      return LoopStep{.carried = next, .rows = {row}};
    };
    if (is_int(steps_, 1)) {  // a step of a model that is called once for each
      LoopStep only = body(n_, int_imm(0), first);
      only.carried.push_back(n_.with_new_axis(only.rows[0], 0));
      return only.carried;
    }
    std::vector<Expr> results = emit_loop(n_, steps_, first, body);
    if (reverse) results.back() = n_.op("flip", {results.back()}, AxisAttrs{.axis = 0});
    return results;
  }

  // Returns what the products get for inputs or hidden states.
  Expr as_operand(Node& n, const Expr& x) {
    if (!quantizes_) return x;
    Outputs q = n.standard_outputs("DynamicQuantizeLinear", {x});
    return n.standard("DequantizeLinear", {n.tensor(q[0]), n.tensor(q[1]), n.tensor(q[2])});
  }

  // Returns the bias of the inputs (0) or of the hidden state (1).
  Expr bias(Node& n, int64_t d, int64_t part) {
    Expr all = n.pick(*bias_, 0, d);
    return n.slice(all, 0, states(part * gates_), states((part + 1) * gates_));
  }
  // A GRU may multiply the bias of the hidden state by a gate. Elsewhere it is added, for all steps at once.
  bool has_bias_of_state() const { return bias_ && kind_ == "GRU" && linear_before_reset_; }
  Expr bias_of_inputs(int64_t d) {
    return has_bias_of_state() ? bias(n_, d, 0) : n_.add(bias(n_, d, 0), bias(n_, d, 1));
  }
  Expr initial(size_t input, int64_t d) {
    if (!n_.has(input)) return n_.broadcast_to(n_.scalar(0, dtype_), {batch_, hidden_});
    Expr state = n_.tensor(input);
    if (batch_first_) state = n_.transpose(state, {1, 0, 2});
    state = n_.pick(state, 0, d);
    return padding_ == 0 ? state : pad(state, 1);
  }

  std::vector<Expr> next_state(Node& step, int64_t d, const Expr& from_input, const std::vector<Expr>& state) {
    // Weights are read inside of the loop, where they are constants.
    Expr r = step.transpose(step.pick(r_, 0, d), {1, 0});
    std::optional<Expr> r_bias;
    if (has_bias_of_state()) r_bias = bias(step, d, 1);
    if (kind_ == "GRU") return {gru_step(step, d, from_input, state[0], r, r_bias)};
    Expr from_state = step.op("matmul", {as_operand(step, state[0]), r});
    if (kind_ == "RNN") return {activate(step, d, 0, step.add(from_input, from_state))};
    return lstm_step(step, d, from_input, from_state, state[1]);
  }

  Expr gate(Node& step, const Expr& x, int64_t g, int64_t axis) {
    return step.slice(x, axis, states(g), states(g + 1));
  }
  Expr activate(Node& n, int64_t d, size_t which, Expr x) {
    const auto& [name, alpha, beta] = activations_.at(static_cast<size_t>(d) * activations_per_direction() + which);
    if (clip_) x = n.clip(x, -*clip_, *clip_);
    auto apply = [&](const char* op, const Expr& e) { return n.op(op, {e}); };
    auto scaled = [&](double factor, const Expr& e) { return n.scaled(e, factor); };
    auto plus = [&](const Expr& e, double number) { return n.add(e, n.scalar_like(number, e)); };
    if (name == "tanh") return apply("tanh", x);
    if (name == "sigmoid") return apply("sigmoid", x);
    if (name == "relu") return apply("nn.relu", x);
    if (name == "affine") return plus(scaled(alpha.value_or(1), x), beta.value_or(0));
    if (name == "scaledtanh") return scaled(alpha.value_or(1), apply("tanh", scaled(beta.value_or(1), x)));
    if (name == "hardsigmoid") return n.clip(plus(scaled(alpha.value_or(0.2), x), beta.value_or(0.5)), 0, 1);
    if (name == "softsign") return n.div(x, plus(apply("abs", x), 1));
    if (name == "softplus") return n.op("log_add_exp", {x, n.scalar_like(0, x)});
    Expr zero = n.scalar_like(0, x), is_positive = n.op("greater", {x, zero});
    if (name == "leakyrelu") return n.op("where", {is_positive, x, scaled(alpha.value_or(0.01), x)});
    if (name == "thresholdedrelu")
      return n.op("where", {n.op("greater_equal", {x, n.scalar_like(alpha.value_or(1), x)}), x, zero});
    if (name == "elu") return n.op("where", {is_positive, x, scaled(alpha.value_or(1), plus(apply("exp", x), -1))});
    n.unsupported("activation '{}'", name);
  }

  // The gates are in the order z, r, h. Those that need the same product of the hidden state share it.
  Expr gru_step(Node& n, int64_t d, const Expr& from_input, const Expr& hidden, const Expr& r,
                const std::optional<Expr>& bias) {
    auto gates = [&](const Expr& x, int64_t first, int64_t last) { return n.slice(x, 1, states(first), states(last)); };
    Expr all = n.op("matmul", {hidden, gates(r, 0, linear_before_reset_ ? 3 : 2)});
    auto of_hidden = [&](int64_t g) {
      Expr part = gate(n, all, g, 1);
      return bias ? n.add(part, gate(n, *bias, g, 0)) : part;
    };
    auto activated = [&](int64_t g) { return activate(n, d, 0, n.add(gate(n, from_input, g, 1), of_hidden(g))); };
    Expr z = activated(0), reset = activated(1);
    Expr recurrent =
        linear_before_reset_ ? n.mul(reset, of_hidden(2)) : n.op("matmul", {n.mul(reset, hidden), gates(r, 2, 3)});
    Expr candidate = activate(n, d, 1, n.add(gate(n, from_input, 2, 1), recurrent));
    return n.add(n.mul(n.sub(n.scalar_like(1, z), z), candidate), n.mul(z, hidden));
  }
  // The gates are in the order i, o, f, c, and the peepholes in the order i, o, f. Returns the hidden state and the
  // cell.
  std::vector<Expr> lstm_step(Node& n, int64_t d, const Expr& from_input, const Expr& from_state, const Expr& cell) {
    std::optional<Expr> peepholes;
    if (peepholes_) peepholes = n.pick(*peepholes_, 0, d);
    auto sum = [&](int64_t g) { return n.add(gate(n, from_input, g, 1), gate(n, from_state, g, 1)); };
    auto with_peephole = [&](int64_t g, const Expr& state) {
      Expr x = sum(g);
      return peepholes ? n.add(x, n.mul(gate(n, *peepholes, g, 0), state)) : x;
    };
    Expr in = activate(n, d, 0, with_peephole(0, cell));
    Expr forget = input_forget_ ? n.sub(n.scalar_like(1, in), in) : activate(n, d, 0, with_peephole(2, cell));
    Expr candidate = activate(n, d, 1, sum(3));
    Expr next = n.add(n.mul(forget, cell), n.mul(in, candidate));
    Expr out = activate(n, d, 0, with_peephole(1, next));
    return {n.mul(out, activate(n, d, 2, next)), next};
  }

  Node& n_;
  std::string kind_, direction_;
  int64_t gates_ = 1, directions_ = 1;
  bool quantizes_ = false, batch_first_ = false, linear_before_reset_ = false, input_forget_ = false;
  DType dtype_;
  Expr w_ = int_imm(0), r_ = int_imm(0);  // [directions, gates * hidden, ...]
  std::optional<Expr> bias_, peepholes_;
  Expr x_ = int_imm(0), steps_ = int_imm(0), batch_ = int_imm(0), hidden_ = int_imm(0);
  std::vector<Activation> activations_;
  std::optional<double> clip_;
  std::optional<Expr> lengths_;  // [batch, 1]
  int64_t padding_ = 0;          // of a hidden state, which is in hidden_
};

Outputs recurrent(Node& n) { return Recurrent(n, n.tensor(1), n.tensor(2)).convert(); }

}  // namespace

Outputs dynamically_quantized_lstm(Node& n, const Expr& weights, const Expr& recurrent_weights) {
  return Recurrent(n, weights, recurrent_weights, true).convert();
}

std::vector<ConverterRow> recurrent_converters() {
  return {
      {"RNN", 1, 3, 6, recurrent,
       "activation_alpha activation_beta activations clip direction hidden_size layout output_sequence"},
      {"GRU", 1, 3, 6, recurrent,
       "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset "
       "output_sequence"},
      {"LSTM", 1, 3, 8, recurrent,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget layout output_sequence"}};
}

}  // namespace relaxc::onnx_import
