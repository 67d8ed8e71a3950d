// oneDNN as a compiler for parts of a graph: convolutions, products, pools and softmax, with the biases, sums and
// activations behind them, in float32 and in int8 (int8.cc). This file says which calls it takes, and makes the program
// that runtime.cc reads.
#include <fmt/format.h>

#include <algorithm>

#include "onednn.h"

namespace onednn {

bool same_shape(const Expr& a, const Expr& b) {
  return std::ranges::equal(*known_shape(a.type()), *known_shape(b.type()),
                            [](const Expr& x, const Expr& y) { return Analyzer().can_prove_equal(x, y); });
}

std::optional<std::vector<float>> along(const Expr& value, size_t rank, size_t axis) {
  const Constant* constant = value.as<Constant>();
  if (!constant || constant->data.size() == 0) return std::nullopt;
  const std::vector<int64_t>& dims = constant->data.shape();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims.size() > rank || (rank - dims.size() + d != axis && dims[d] != 1)) return std::nullopt;
  }
  std::vector<float> result;
  for (int64_t i = 0; i < constant->data.size(); ++i) result.push_back(static_cast<float>(constant->data.as_double(i)));
  return result;
}

static void copy_ints(const Attrs& attrs, const char* name, int64_t* to) {
  std::vector<int64_t> items;
  if (const AttrValue* value = attrs.find(name)) from_attr(*value, items);
  std::ranges::copy(items, to);
}

void set_window(const Attrs& attrs, Step& step) {
  copy_ints(attrs, "pool_size", step.window), copy_ints(attrs, "strides", step.strides);
  copy_ints(attrs, "padding", step.padding), copy_ints(attrs, "dilation", step.dilation);
}

void set_weight_dims(const Attrs& attrs, Kind kind, std::vector<int64_t> dims, Step& step) {
  if (kind == Kind::kConv) std::ranges::copy(dims.end() - 2, dims.end(), step.window);
  int64_t groups = attrs.get_int("groups", 1);
  if (groups > 1) dims[0] /= groups, dims.insert(dims.begin(), groups);
  step.weight_rank = std::ssize(dims);
  std::ranges::copy(dims, step.weight_dims);
}

std::optional<std::string> unknown_layout(const Attrs& attrs) {
  for (auto [name, layout] : {std::pair("data_layout", "NCHW"), std::pair("layout", "NCHW"),
                              std::pair("out_layout", "NCHW"), std::pair("kernel_layout", "OIHW")}) {
    std::string given = attrs.get_string(name, layout);
    if (given != layout) return fmt::format("{} is {}, expected {}", name, given, layout);
  }
  return std::nullopt;
}

namespace {

const std::pair<const char*, Kind> kOperators[] = {{"nn.conv2d", Kind::kConv},        {"matmul", Kind::kMatmul},
                                                   {"nn.max_pool2d", Kind::kMaxPool}, {"nn.avg_pool2d", Kind::kAvgPool},
                                                   {"nn.softmax", Kind::kSoftmax},    {"nn.relu", Kind::kActivation},
                                                   {"clip", Kind::kActivation},       {"add", Kind::kAdd},
                                                   {"multiply", Kind::kMultiply}};

const Call& call_of(const PatternMatch& match) { return *match.inside.back().value.as<Call>(); }
size_t rank_of(const Expr& value) { return known_shape(value.type())->size(); }

// Returns the constant's elements, one per channel (axis 1 of an image, the last axis of other tensors).
std::optional<std::vector<float>> per_channel(const Expr& bias, const Expr& of) {
  size_t rank = rank_of(of), axis = rank == 4 ? 1 : rank - 1;
  std::optional<int64_t> channels = as_int((*known_shape(of.type()))[axis]);
  std::optional<std::vector<float>> result = along(bias, rank, axis);
  if (!result || !channels || *channels == 0 || (result->size() != 1 && std::ssize(*result) != *channels))
    return std::nullopt;
  result->resize(static_cast<size_t>(*channels), (*result)[0]);
  return result;
}

std::optional<std::string> why_not_sum(const Call& call) {
  const Expr &a = call.args[0], &b = call.args[1];
  if (b.is<Constant>()) return per_channel(b, a) ? std::nullopt : std::optional("the constant is not one per channel");
  return rank_of(a) == rank_of(b) && same_shape(a, b) ? std::nullopt : std::optional("the shapes differ");
}

// oneDNN does not compute a window that is padding alone.
std::optional<std::string> why_not_window(const Attrs& attrs) {
  Step step{};
  set_window(attrs, step);
  const bool is_dilated = step.dilation[0] > 1 || step.dilation[1] > 1;
  if (attrs.get_bool("partial_window", false) && (is_dilated || attrs.get_bool("count_include_pad", false)))
    return "a window may be larger than the image, and the pool has a dilation or counts padding";
  for (size_t i = 0; i < 4; ++i) {
    if (step.padding[i] == 0) continue;
    if (step.dilation[i % 2] > 1) return "the pool has padding and a dilation";
    if (step.padding[i] >= step.window[i % 2]) return "the padding is not smaller than the window";
  }
  return std::nullopt;
}

std::optional<std::string> why_not(Kind kind, const PatternMatch& match) {
  const Call& call = call_of(match);
  for (const Expr& operand : match.operands) {
    if (operand.is<Constant>() && operand.as<Constant>()->data.size() == 0) return "an operand has no elements";
    std::optional<Type> type = type_of(operand);
    bool is_narrow = kind == Kind::kMaxPool && (type == Type::kS8 || type == Type::kU8);
    if (type != Type::kF32 && !is_narrow) return "an operand is " + to_string(*tensor_dtype(operand.type()));
  }
  if (!call.args[0].is<Var>()) return "the first operand is constant";
  size_t rank = rank_of(call.args[0]);
  bool is_image = kind == Kind::kConv || kind == Kind::kMaxPool || kind == Kind::kAvgPool;
  if (auto why = is_image ? unknown_layout(call.attrs) : std::nullopt) return why;
  if (rank < 1 || rank > 5) return fmt::format("the rank is {}, expected 1 to 5", rank);
  switch (kind) {
    case Kind::kConv:
      return call.args[1].is<Constant>() ? std::nullopt : std::optional("the weight is not constant");
    case Kind::kMatmul:
      if (!call.args[1].is<Constant>() || rank_of(call.args[1]) != 2)
        return "the second operand is not a constant matrix";
      return rank == 2 || rank == 3 ? std::nullopt : std::optional("the first operand's rank is not 2 or 3");
    case Kind::kMaxPool:
    case Kind::kAvgPool:
      return call.attrs.get_bool("ceil_mode", false) ? std::optional("ceil_mode is set") : why_not_window(call.attrs);
    case Kind::kActivation: {
      if (call.args.size() == 1) return std::nullopt;
      const FloatImm *low = call.args[1].as<FloatImm>(), *high = call.args[2].as<FloatImm>();
      if (!low || !high) return "the bounds are not constant";
      return low->value <= high->value ? std::nullopt : std::optional("the lower bound is above the upper one");
    }
    case Kind::kAdd:
    case Kind::kMultiply:
      return why_not_sum(call);
    case Kind::kSoftmax:
    case Kind::kQuantize:
    case Kind::kDequantize:
      return std::nullopt;
  }
  return std::nullopt;
}

class Compilation {
 public:
  explicit Compilation(const ExternalPart& part) : part_(part) {
    for (const VarRef& input : part.inputs) numbers_[input.get()] = next_++;
    for (const auto& [name, match] : part.matches) {
      for (const Expr& operand : match.operands) ++uses_[operand.get()];
    }
    for (const VarRef& output : part.outputs) ++uses_[output.get()];
  }

  std::variant<std::vector<std::byte>, std::string> run() {
    bool is_worthwhile = false;
    for (const auto& [name, match] : part_.matches) {
      const VarRef& result = match.results[0];
      if (is_int8_pattern(name)) {
        push(int8_step(match, data_, [&](const Expr& value) { return number_of(value); }), result);
        is_worthwhile = is_worthwhile || steps_.back().kind <= Kind::kMatmul;
        continue;
      }
      Kind kind = kind_of(name);
      is_worthwhile = is_worthwhile || kind <= Kind::kSoftmax;
      if (!fused(kind, match, result)) push(step_of(kind, match), result);
    }
    if (!is_worthwhile) return "sums, activations and conversions alone are not worth a call";
    return bytes();
  }

 private:
  static Kind kind_of(const std::string& name) {
    return std::ranges::find(kOperators, name, [](const auto& row) { return std::string(row.first); })->second;
  }
  int64_t number_of(const Expr& value) const { return numbers_.at(value.get()); }
  bool is_last(const Expr& value) const { return value.is<Var>() && number_of(value) == next_ - 1; }

  void push(const Step& step, const VarRef& result) {
    steps_.push_back(step);
    numbers_[result.get()] = next_++;
  }

  // Puts a bias, sum or activation into the product before, if that is the last step and nothing else uses its result:
  // then all that is added is there already.
  bool fused(Kind kind, const PatternMatch& match, const VarRef& result) {
    if (steps_.empty() || kind < Kind::kActivation) return false;
    Step& last = steps_.back();
    const Expr& first = match.operands[0];
    const Expr* second = match.operands.size() > 1 ? &match.operands[1] : nullptr;
    bool is_first = is_last(first);
    const Expr& product = is_first ? first : second ? *second : first;
    bool is_open = last.kind <= Kind::kMatmul && last.type == Type::kF32 && last.activation == Activation::kNone;
    if (!is_open || !is_last(product) || uses_[product.get()] != 1) return false;
    if (kind == Kind::kActivation) {
      set_activation(call_of(match), last);
    } else if (kind == Kind::kAdd && second->is<Constant>()) {
      if (last.bias >= 0 || last.added >= 0) return false;
      last.bias = data_.add(*per_channel(*second, result));
    } else if (kind == Kind::kAdd && last.added < 0) {
      last.added = number_of(is_first ? *second : first);
    } else {
      return false;
    }
    numbers_[result.get()] = next_ - 1;
    return true;
  }

  static void set_activation(const Call& call, Step& step) {
    step.activation = call.args.size() == 1 ? Activation::kRelu : Activation::kClip;
    if (call.args.size() == 1) return;
    step.low = static_cast<float>(call.args[1].as<FloatImm>()->value);
    step.high = static_cast<float>(call.args[2].as<FloatImm>()->value);
  }

  Step step_of(Kind kind, const PatternMatch& match) {
    const Call& call = call_of(match);
    Step step{.kind = kind, .type = *type_of(match.results[0]), .a = number_of(call.args[0])};
    if (kind == Kind::kActivation) {
      set_activation(call, step);
    } else if (kind == Kind::kConv || kind == Kind::kMatmul) {
      const Tensor& weight = call.args[1].as<Constant>()->data;
      step.weight = data_.add(std::vector(weight.data<float>(), weight.data<float>() + weight.size()));
      set_weight_dims(call.attrs, kind, weight.shape(), step);
    } else if (kind >= Kind::kAdd && call.args[1].is<Constant>()) {
      step.bias = data_.add(*per_channel(call.args[1], call.args[0]));
    } else if (kind >= Kind::kAdd) {
      step.b = number_of(call.args[1]);
    }
    if (kind == Kind::kConv || kind == Kind::kMaxPool || kind == Kind::kAvgPool) set_window(call.attrs, step);
    step.axis = call.attrs.get_int("axis", -1);
    step.counts_pads = call.attrs.get_bool("count_include_pad", false);
    return step;
  }

  std::vector<std::byte> bytes() const {
    std::vector<TensorRow> rows;
    for (const std::vector<VarRef>& vars : {part_.inputs, part_.outputs}) {
      for (const VarRef& var : vars)
        rows.push_back({static_cast<int64_t>(rank_of(var)), *type_of(var), number_of(var)});
    }
    Header header{{}, 0, std::ssize(part_.inputs), std::ssize(part_.outputs), std::ssize(steps_), 0};
    size_t rows_at = sizeof header, steps_at = rows_at + rows.size() * sizeof(TensorRow);
    size_t data_at = (steps_at + steps_.size() * sizeof(Step) + 63) / 64 * 64;
    std::vector<std::byte> result(data_at + data_.bytes.size());
    header.data = static_cast<int64_t>(data_at), header.num_bytes = std::ssize(result);
    std::memcpy(result.data() + rows_at, rows.data(), rows.size() * sizeof(TensorRow));
    std::memcpy(result.data() + steps_at, steps_.data(), steps_.size() * sizeof(Step));
    std::ranges::copy(data_.bytes, result.begin() + header.data);
    std::memcpy(result.data(), &header, sizeof header);
    header.hash[0] = 0xcbf29ce484222325, header.hash[1] = 0x9e3779b97f4a7c15;  // FNV-1a from two beginnings
    for (size_t i = sizeof header.hash; i < result.size(); ++i) {
      for (uint64_t& hash : header.hash) hash = (hash ^ static_cast<uint64_t>(result[i])) * 0x100000001b3;
    }
    std::memcpy(result.data(), &header, sizeof header);
    return result;
  }

  const ExternalPart& part_;
  std::vector<Step> steps_;
  Data data_;
  int64_t next_ = 0;
  std::unordered_map<const NodeHeader*, int64_t> numbers_;  // of values
  std::unordered_map<const NodeHeader*, int64_t> uses_;
};

}  // namespace

}  // namespace onednn

RELAXC_PLUGIN(tables) {
  using namespace onednn;
  std::vector<ExternalPattern> patterns = int8_patterns();
  for (const auto& [name, kind] : kOperators)
    patterns.push_back({name, [kind](const PatternMatch& match) { return why_not(kind, match); }});
  tables.add(ExternalCompiler{.name = "onednn",
                              .doc = "convolutions, products, pools and softmax by oneDNN",
                              .patterns = std::move(patterns),
                              .compile = [](const ExternalPart& part) { return Compilation(part).run(); },
                              .function = "relaxc_onednn_run"});
  tables.add_library(ONEDNN_RUNTIME);
}
