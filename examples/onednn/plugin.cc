// oneDNN as a compiler for parts of a graph in float32: convolutions, products, pools and softmax, with the biases,
// sums and ReLUs behind them. This file says which calls it takes, and makes the program that runtime.cc reads.
#include <relaxc/plugin.h>

#include <algorithm>
#include <cstring>

#include "program.h"

using namespace relaxc;

namespace {

using onednn::Kind;
using onednn::Step;

std::vector<int64_t> ints(const Attrs& attrs, const char* name) {
  std::vector<int64_t> result;
  if (const AttrValue* value = attrs.find(name)) from_attr(*value, result);
  return result;
}

// Returns the constant in float32; null for anything else.
const Constant* constant_of(const Expr& value) {
  const Constant* constant = value.as<Constant>();
  return constant && constant->data.dtype() == kFloat32 ? constant : nullptr;
}

std::optional<Kind> kind_of(const std::string& op) {
  const std::pair<const char*, Kind> kKinds[] = {{"relax.nn.conv2d", Kind::kConv},
                                                 {"relax.matmul", Kind::kMatmul},
                                                 {"relax.nn.max_pool2d", Kind::kMaxPool},
                                                 {"relax.nn.avg_pool2d", Kind::kAvgPool},
                                                 {"relax.nn.softmax", Kind::kSoftmax},
                                                 {"relax.nn.relu", Kind::kRelu},
                                                 {"relax.add", Kind::kAdd},
                                                 {"relax.multiply", Kind::kMultiply}};
  for (const auto& [name, kind] : kKinds) {
    if (op == name) return kind;
  }
  return std::nullopt;
}

bool has_layout(const Attrs& attrs, const char* name, const char* layout) {
  const AttrValue* value = attrs.find(name);
  return !value || !value->as<std::string>() || *value->as<std::string>() == layout;
}

bool same_shape(const Expr& a, const Expr& b) {
  return std::ranges::equal(*known_shape(a.type()), *known_shape(b.type()),
                            [](const Expr& x, const Expr& y) { return Analyzer().can_prove_equal(x, y); });
}

// Returns whether the constant has one element per channel (axis 1 of an image, the last axis of a matrix).
bool is_bias(const Constant& bias, const Expr& of) {
  const std::vector<Expr>& shape = *known_shape(of.type());
  size_t axis = shape.size() == 4 ? 1 : shape.size() - 1;
  const std::vector<int64_t>& dims = bias.data.shape();
  for (size_t d = 0; d < dims.size(); ++d) {
    size_t at = shape.size() - dims.size() + d;
    if (dims.size() > shape.size() || (at != axis && dims[d] != 1)) return false;
  }
  return as_int(shape[axis]) == bias.data.size();
}

bool takes(const OpCall& op) {
  std::optional<Kind> kind = kind_of(op.name());
  for (const Expr& arg : op.call.args) {
    if (kind && tensor_dtype(arg.type()) != kFloat32) return false;
  }
  if (!kind || !op.arg(0).is<Var>()) return false;
  const Attrs& attrs = op.call.attrs;
  bool is_image = has_layout(attrs, "data_layout", "NCHW") && has_layout(attrs, "layout", "NCHW") &&
                  has_layout(attrs, "out_layout", "NCHW") && has_layout(attrs, "kernel_layout", "OIHW");
  switch (*kind) {
    case Kind::kConv:
      return is_image && constant_of(op.arg(1)) && op.rank(1) == 4;
    case Kind::kMatmul:
      return (op.rank(0) == 2 || op.rank(0) == 3) && op.rank(1) == 2 && constant_of(op.arg(1));
    case Kind::kMaxPool:
    case Kind::kAvgPool:
      return is_image && !attrs.get_bool("ceil_mode", false);
    case Kind::kSoftmax:
    case Kind::kRelu:
      return op.rank(0) >= 1 && op.rank(0) <= 5;
    case Kind::kAdd:
    case Kind::kMultiply:
      if (op.rank(0) < 1 || op.rank(0) > 5) return false;
      if (const Constant* bias = constant_of(op.arg(1))) return *kind == Kind::kAdd && is_bias(*bias, op.arg(0));
      return op.arg(1).is<Var>() && op.rank(0) == op.rank(1) && same_shape(op.arg(0), op.arg(1));
  }
  return false;
}

class Compilation {
 public:
  explicit Compilation(const ExternalPart& part) : part_(part) {
    for (const VarRef& input : part.inputs) number_of(input) = next_++;
  }

  std::optional<std::vector<std::byte>> run() {
    bool is_worthwhile = false;
    for (const Binding& binding : part_.bindings) {
      const Call& call = *binding.value.as<Call>();
      Kind kind = *kind_of(op_name(binding.value));
      is_worthwhile = is_worthwhile || kind <= Kind::kSoftmax;
      if (fused(kind, call, binding.var)) continue;
      Step step = step_of(kind, call);
      // oneDNN has no sum with a constant alone.
      if (step.b < 0 && (kind == Kind::kAdd || kind == Kind::kMultiply)) return std::nullopt;
      steps_.push_back(step);
      number_of(binding.var) = next_++;
    }
    bool ends_with_step = number_of(part_.bindings.back().var) == next_ - 1;
    if (!is_worthwhile || !ends_with_step) return std::nullopt;
    return bytes();
  }

 private:
  int64_t& number_of(const Expr& value) { return numbers_.try_emplace(value.get(), -1).first->second; }

  // Puts a bias, sum or ReLU into the step before, if that is the last one: then all that is added is there already.
  bool fused(Kind kind, const Call& call, const VarRef& result) {
    if (steps_.empty() || steps_.back().relu || steps_.back().kind > Kind::kMatmul) return false;
    Step& last = steps_.back();
    bool is_first = number_of(call.args[0]) == next_ - 1;
    bool is_second = call.args.size() > 1 && call.args[1].is<Var>() && number_of(call.args[1]) == next_ - 1;
    if (kind == Kind::kRelu && is_first) {
      last.relu = 1;
    } else if (kind == Kind::kAdd && is_first && constant_of(call.args[1])) {
      if (last.bias >= 0 || last.added >= 0) return false;
      last.bias = floats(constant_of(call.args[1])->data);
    } else if (kind == Kind::kAdd && is_first != is_second && last.added < 0) {
      last.added = number_of(call.args[is_first ? 1 : 0]);
    } else {
      return false;
    }
    number_of(result) = next_ - 1;
    return true;
  }

  Step step_of(Kind kind, const Call& call) {
    Step step{kind, number_of(call.args[0])};
    if (kind == Kind::kConv || kind == Kind::kMatmul) {
      const Tensor& weight = constant_of(call.args[1])->data;
      std::vector<int64_t> dims = weight.shape();
      int64_t groups = call.attrs.get_int("groups", 1);
      if (groups > 1) dims[0] /= groups, dims.insert(dims.begin(), groups);
      step.weight = floats(weight), step.weight_rank = std::ssize(dims);
      std::ranges::copy(dims, step.weight_dims);
      if (kind == Kind::kConv) std::ranges::copy(dims.end() - 2, dims.end(), step.window);
    } else if (call.args.size() > 1 && call.args[1].is<Var>()) {
      step.b = number_of(call.args[1]);
    }
    auto copy = [&](const char* name, int64_t* to) { std::ranges::copy(ints(call.attrs, name), to); };
    if (kind == Kind::kConv || kind == Kind::kMaxPool || kind == Kind::kAvgPool) {
      copy("pool_size", step.window), copy("strides", step.strides), copy("padding", step.padding);
      copy("dilation", step.dilation);
    }
    step.axis = call.attrs.get_int("axis", -1);
    step.counts_pads = call.attrs.get_bool("count_include_pad", false);
    return step;
  }

  int64_t floats(const Tensor& tensor) {
    int64_t position = std::ssize(floats_);
    floats_.insert(floats_.end(), tensor.data<float>(), tensor.data<float>() + tensor.size());
    floats_.resize((floats_.size() + 15) / 16 * 16);
    return position;
  }

  std::vector<std::byte> bytes() const {
    onednn::Header header{{}, 0, std::ssize(part_.inputs), std::ssize(steps_), {}};
    for (size_t i = 0; i < part_.inputs.size(); ++i) header.ranks[i] = std::ssize(*known_shape(part_.inputs[i].type()));
    header.ranks[part_.inputs.size()] = std::ssize(*known_shape(part_.bindings.back().var.type()));
    size_t steps = steps_.size() * sizeof(Step), floats = floats_.size() * sizeof(float);
    std::vector<std::byte> result(sizeof header + steps + floats);
    header.num_bytes = std::ssize(result);
    std::memcpy(result.data() + sizeof header, steps_.data(), steps);
    if (floats) std::memcpy(result.data() + sizeof header + steps, floats_.data(), floats);
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
  std::vector<float> floats_;
  int64_t next_ = 0;
  std::unordered_map<const NodeHeader*, int64_t> numbers_;  // of values
};

}  // namespace

RELAXC_PLUGIN(tables) {
  tables.add(ExternalCompiler{.name = "onednn",
                              .doc = "convolutions, products, pools and softmax in float32 by oneDNN",
                              .takes = takes,
                              .compile = [](const ExternalPart& part) { return Compilation(part).run(); },
                              .function = "relaxc_onednn_run"});
  tables.add_library(ONEDNN_RUNTIME);
}
