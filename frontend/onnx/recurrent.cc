// RNN, GRU and LSTM, unrolled over a sequence of known length.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

constexpr int64_t kMostSteps = 512, kManySteps = 32;

class Recurrent {
 public:
  explicit Recurrent(Node& n) : n_(n) {
    kind_ = n.op_type();
    gates_ = kind_ == "RNN" ? 1 : kind_ == "GRU" ? 3 : 4;
    batch_first_ = n.attr_int("layout", 0) != 0;
    direction_ = n.attr_string("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      n.fail("direction is '{}'", direction_);
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    x_ = n.tensor(0);
    if (n.shape_of(x_).size() != 3) n.fail("input has rank {}, expected 3", n.shape_of(x_).size());
    if (batch_first_) x_ = n.transpose(x_, {1, 0, 2});
    auto steps = as_int(n.shape_of(x_)[0]);
    if (!steps || *steps < 1 || *steps > kMostSteps)
      n.unsupported("a sequence of symbolic length or more than {} steps; make it constant with --dim", kMostSteps);
    steps_ = *steps;
    if (steps_ > kManySteps) {
      n.graph().context().diagnostics.warning(n.span(),
                                              "{} steps are unrolled: time and size of the compiled model grow with "
                                              "their number; a shorter sequence, called several times with the states "
                                              "carried on, compiles faster",
                                              steps_);
    }
    batch_ = n.shape_of(x_)[1];
    auto hidden = as_int(n.dim(2, std::max<size_t>(n.shape(2).size(), 1) - 1));
    if (!hidden) n.unsupported("recurrent weights with symbolic dims");
    hidden_ = n.attr_int("hidden_size", *hidden);
    if (hidden_ != *hidden) n.fail("hidden_size is {}, but the weights have {}", hidden_, *hidden);
    dtype_ = n.dtype(0);
    activations_ = n.attr_strings("activations");
    if (!n.attr_floats("activation_alpha").empty() || !n.attr_floats("activation_beta").empty())
      n.unsupported("attributes 'activation_alpha' and 'activation_beta'");
    const std::vector<std::string> defaults = {"Sigmoid", "Tanh", "Tanh"};
    auto first = defaults.begin() + (kind_ == "RNN" ? 1 : 0), last = first + activations_per_direction();
    for (int64_t d = 0; d < directions_ && n.attr_strings("activations").empty(); ++d)
      activations_.insert(activations_.end(), first, last);
    clip_ = n.has_attr("clip") ? std::optional(n.attr_float("clip", 0)) : std::nullopt;
    if (kind_ == "GRU") linear_before_reset_ = n.attr_int("linear_before_reset", 0) != 0;
    if (kind_ == "LSTM" && n.attr_int("input_forget", 0)) n.unsupported("attribute 'input_forget'");
    if (n.has(4)) lengths_ = n.cast(n.tensor(4), kInt64);
  }

  Outputs convert() {
    std::vector<Expr> rows, last_hidden, last_cell;
    std::vector<std::vector<Expr>> states(static_cast<size_t>(steps_));  // by time, of each direction
    for (int64_t d = 0; d < directions_; ++d) {
      bool reverse = direction_ == "reverse" || d == 1;
      run(d, reverse, states, last_hidden, last_cell);
    }
    for (std::vector<Expr>& sides : states) {
      for (Expr& side : sides) side = n_.reshape(side, {int_imm(1), int_imm(1), batch_, int_imm(hidden_)});
      rows.push_back(join(n_, sides, 1));
    }
    Expr y = join(n_, rows, 0);  // [steps, directions, batch, hidden]
    Outputs outputs = {n_.of(batch_first_ ? n_.transpose(y, {2, 0, 1, 3}) : y), n_.of(final_state(last_hidden))};
    if (kind_ == "LSTM") outputs.push_back(n_.of(final_state(last_cell)));
    return outputs;
  }

 private:
  int64_t activations_per_direction() const { return kind_ == "RNN" ? 1 : kind_ == "GRU" ? 2 : 3; }
  Expr final_state(const std::vector<Expr>& sides) {
    auto row = [&](const Expr& side) { return n_.reshape(side, {int_imm(1), batch_, int_imm(hidden_)}); };
    Expr all = join(n_, map_each(sides, row), 0);
    return batch_first_ ? n_.transpose(all, {1, 0, 2}) : all;
  }
  Expr gate(const Expr& x, int64_t g, int64_t axis) {
    return n_.slice(x, axis, int_imm(g * hidden_), int_imm((g + 1) * hidden_));
  }
  Expr activate(int64_t d, int64_t which, Expr x) {
    const std::string& name = activations_.at(static_cast<size_t>(d * activations_per_direction() + which));
    if (clip_) x = n_.clip(x, -*clip_, *clip_);
    if (name == "Tanh") return n_.op("tanh", {x});
    if (name == "Sigmoid") return n_.op("sigmoid", {x});
    if (name == "Relu") return n_.op("nn.relu", {x});
    n_.unsupported("activation '{}'", name);
  }
  Expr initial(size_t input, int64_t d) {
    if (!n_.has(input)) return n_.broadcast_to(n_.scalar(0, dtype_), {batch_, int_imm(hidden_)});
    Expr state = n_.tensor(input);
    if (batch_first_) state = n_.transpose(state, {1, 0, 2});
    return n_.pick(state, 0, d);
  }

  void run(int64_t d, bool reverse, std::vector<std::vector<Expr>>& states, std::vector<Expr>& last_hidden,
           std::vector<Expr>& last_cell) {
    Expr w = n_.transpose(n_.pick(n_.tensor(1), 0, d), {1, 0}), r = n_.transpose(n_.pick(n_.tensor(2), 0, d), {1, 0});
    std::optional<Expr> w_bias, r_bias, peepholes, cell;
    if (n_.has(3)) {
      Expr bias = n_.pick(n_.tensor(3), 0, d);
      w_bias = n_.slice(bias, 0, int_imm(0), int_imm(gates_ * hidden_));
      r_bias = n_.slice(bias, 0, int_imm(gates_ * hidden_), int_imm(2 * gates_ * hidden_));
    }
    if (kind_ == "LSTM" && n_.has(7)) peepholes = n_.pick(n_.tensor(7), 0, d);
    Expr hidden = initial(5, d);
    if (kind_ == "LSTM") cell = initial(6, d);
    for (int64_t i = 0; i < steps_; ++i) {
      int64_t t = reverse ? steps_ - 1 - i : i;
      Expr from_input = n_.op("matmul", {n_.pick(x_, 0, t), w});
      if (w_bias) from_input = n_.add(from_input, *w_bias);
      Expr next = hidden;
      std::optional<Expr> next_cell = cell;
      if (kind_ == "GRU") {
        next = gru_step(d, from_input, hidden, r, r_bias);
      } else {
        Expr sum = n_.add(from_input, n_.op("matmul", {hidden, r}));
        if (r_bias) sum = n_.add(sum, *r_bias);
        if (kind_ == "RNN") next = activate(d, 0, sum);
        if (kind_ == "LSTM") next = lstm_step(d, sum, next_cell, peepholes);
      }
      Expr output = next;
      if (lengths_) {  // beyond a sequence's length the state stays and the output is 0
        Expr column = n_.reshape(*lengths_, {batch_, int_imm(1)});
        Expr active = n_.op("greater", {column, n_.scalar(static_cast<double>(t), kInt64)});
        output = n_.op("where", {active, next, n_.scalar(0, dtype_)});
        next = n_.op("where", {active, next, hidden});
        if (cell) next_cell = n_.op("where", {active, *next_cell, *cell});
      }
      states[t].push_back(output);
      hidden = next;
      cell = next_cell;
    }
    last_hidden.push_back(hidden);
    if (cell) last_cell.push_back(*cell);
  }

  // The gates are in the order z, r, h.
  Expr gru_step(int64_t d, const Expr& from_input, const Expr& hidden, const Expr& r, const std::optional<Expr>& bias) {
    auto from_hidden = [&](int64_t g, const Expr& state) {
      Expr sum = n_.op("matmul", {state, gate(r, g, 1)});
      return bias ? n_.add(sum, gate(*bias, g, 0)) : sum;
    };
    Expr z = activate(d, 0, n_.add(gate(from_input, 0, 1), from_hidden(0, hidden)));
    Expr reset = activate(d, 0, n_.add(gate(from_input, 1, 1), from_hidden(1, hidden)));
    Expr recurrent =
        linear_before_reset_ ? n_.mul(reset, from_hidden(2, hidden)) : from_hidden(2, n_.mul(reset, hidden));
    Expr candidate = activate(d, 1, n_.add(gate(from_input, 2, 1), recurrent));
    return n_.add(n_.mul(n_.sub(n_.scalar_like(1, z), z), candidate), n_.mul(z, hidden));
  }
  // The gates are in the order i, o, f, c, and the peepholes in the order i, o, f.
  Expr lstm_step(int64_t d, const Expr& sum, std::optional<Expr>& cell, const std::optional<Expr>& peepholes) {
    auto with_peephole = [&](int64_t g, const Expr& state) {
      Expr x = gate(sum, g, 1);
      return peepholes ? n_.add(x, n_.mul(gate(*peepholes, g, 0), state)) : x;
    };
    Expr in = activate(d, 0, with_peephole(0, *cell)), forget = activate(d, 0, with_peephole(2, *cell));
    Expr candidate = activate(d, 1, gate(sum, 3, 1));
    cell = n_.add(n_.mul(forget, *cell), n_.mul(in, candidate));
    Expr out = activate(d, 0, with_peephole(1, *cell));
    return n_.mul(out, activate(d, 2, *cell));
  }

  Node& n_;
  std::string kind_, direction_;
  int64_t gates_ = 1, directions_ = 1, steps_ = 0, hidden_ = 0;
  bool batch_first_ = false, linear_before_reset_ = false;
  DType dtype_;
  Expr x_ = int_imm(0), batch_ = int_imm(0);
  std::vector<std::string> activations_;
  std::optional<double> clip_;
  std::optional<Expr> lengths_;
};

Outputs recurrent(Node& n) {
  if (n.opset() < 7) n.unsupported("recurrent operators before opset 7");
  return Recurrent(n).convert();
}

}  // namespace

std::vector<ConverterRow> recurrent_converters() {
  return {{"RNN", 1, 3, 6, recurrent, "activation_alpha activation_beta activations clip direction hidden_size layout"},
          {"GRU", 1, 3, 6, recurrent,
           "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset"},
          {"LSTM", 1, 3, 8, recurrent,
           "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"}};
}

}  // namespace relaxc::onnx_import
