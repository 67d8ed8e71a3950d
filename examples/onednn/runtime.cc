// The run-time side of the oneDNN plug-in: makes primitives of a program once for each set of dims, with the weights in
// the layouts that oneDNN prefers, and runs them.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "program.h"

namespace {

using dnnl::memory;
using onednn::Header;
using onednn::Kind;
using onednn::Step;
using Dims = memory::dims;
using Tag = memory::format_tag;

Tag dense(size_t rank) {
  constexpr Tag kTags[] = {Tag::a, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return kTags[rank];
}
memory::desc dense_desc(const Dims& dims) { return {dims, memory::data_type::f32, dense(dims.size())}; }

const dnnl::engine& cpu() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

int64_t windows(int64_t size, int64_t before, int64_t after, int64_t window, int64_t stride, int64_t dilation) {
  return (size + before + after - (window - 1) * dilation - 1) / stride + 1;
}

// The primitives of a program for certain dims. Values inside of it keep the layouts in which they are computed.
class Instance {
 public:
  Instance(const std::byte* bytes, const int64_t* dims) {
    std::memcpy(&header_, bytes, sizeof header_);
    const auto* steps = reinterpret_cast<const Step*>(bytes + sizeof header_);
    floats_ = reinterpret_cast<const float*>(steps + header_.num_steps);
    for (int64_t i = 0; i <= header_.num_inputs; dims += header_.ranks[i++]) {
      Dims shape(dims, dims + header_.ranks[i]);
      if (i == header_.num_inputs) {
        result_ = dense_desc(shape);
      } else {
        values_.push_back(memory(dense_desc(shape), cpu(), nullptr));
        shapes_.push_back(shape);
      }
    }
    for (int64_t i = 0; i < header_.num_steps; ++i) add(steps[i]);
    destination_ = memory(result_, cpu(), nullptr);
    if (values_.back().get_desc() != result_) {
      push(dnnl::reorder(values_.back(), destination_), {{DNNL_ARG_FROM, values_.back()}, {DNNL_ARG_TO, destination_}});
    } else {
      for (auto& [primitive, args] : calls_) {
        for (auto& [role, value] : args) value = value.get() == values_.back().get() ? destination_ : value;
      }
    }
  }

  void run(void* const* tensors) {
    std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < header_.num_inputs; ++i) values_[static_cast<size_t>(i)].set_data_handle(tensors[i]);
    destination_.set_data_handle(tensors[header_.num_inputs]);
    dnnl::stream stream(cpu());
    for (auto& [primitive, args] : calls_) primitive.execute(stream, args);
    stream.wait();
  }

 private:
  using Args = std::unordered_map<int, memory>;
  void push(dnnl::primitive primitive, Args args) { calls_.emplace_back(std::move(primitive), std::move(args)); }
  memory& value(int64_t number) { return values_.at(static_cast<size_t>(number)); }

  dnnl::primitive_attr attributes(const Step& step) {
    dnnl::primitive_attr result;
    dnnl::post_ops ops;
    if (step.added >= 0) ops.append_binary(dnnl::algorithm::binary_add, value(step.added).get_desc());
    if (step.relu) ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    result.set_post_ops(ops);
    return result;
  }

  // Returns the floats in this layout.
  memory constant(int64_t position, const Dims& dims, const memory::desc& layout) {
    memory given(dense_desc(dims), cpu(), const_cast<float*>(floats_ + position));
    memory result(layout, cpu());
    dnnl::stream stream(cpu());
    dnnl::reorder(given, result).execute(stream, given, result);
    stream.wait();
    return result;
  }

  // Returns the value in this layout, after a reorder where it has another.
  memory in_layout(int64_t number, const memory::desc& layout) {
    memory& given = value(number);
    if (given.get_desc() == layout) return given;
    memory result(layout, cpu());
    push(dnnl::reorder(given, result), {{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, result}});
    return result;
  }

  void add_result(const memory::desc& layout, const Dims& shape) {
    values_.emplace_back(layout, cpu());
    shapes_.push_back(shape);
  }

  template <class PrimitiveDesc>
  void add_product(const Step& step, const PrimitiveDesc& made, const Dims& shape, const Dims& bias_dims) {
    Dims weight(step.weight_dims, step.weight_dims + step.weight_rank);
    Args args{{DNNL_ARG_SRC, in_layout(step.a, made.src_desc())},
              {DNNL_ARG_WEIGHTS, constant(step.weight, weight_dims_, made.weights_desc())}};
    if (step.bias >= 0) args[DNNL_ARG_BIAS] = constant(step.bias, bias_dims, made.bias_desc());
    if (step.added >= 0) args[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] = value(step.added);
    add_result(made.dst_desc(), shape);
    args[DNNL_ARG_DST] = values_.back();
    push(typename ProductOf<PrimitiveDesc>::Type(made), std::move(args));
  }
  template <class PrimitiveDesc>
  struct ProductOf;

  void add(const Step& step) {
    const Dims shape = shapes_.at(static_cast<size_t>(step.a));
    const memory::desc source = value(step.a).get_desc();
    switch (step.kind) {
      case Kind::kConv:
        return add_convolution(step, shape);
      case Kind::kMatmul:
        return add_matmul(step, shape);
      case Kind::kMaxPool:
      case Kind::kAvgPool:
        return add_pool(step, shape, source);
      case Kind::kSoftmax: {
        int axis = static_cast<int>(step.axis < 0 ? step.axis + std::ssize(shape) : step.axis);
        dnnl::softmax_forward::primitive_desc made({dnnl::prop_kind::forward_inference, source, axis}, cpu());
        add_result(made.dst_desc(), shape);
        return push(dnnl::softmax_forward(made), {{DNNL_ARG_SRC, value(step.a)}, {DNNL_ARG_DST, values_.back()}});
      }
      case Kind::kRelu: {
        dnnl::eltwise_forward::primitive_desc made(
            {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_relu, source, 0.f, 0.f}, cpu());
        add_result(made.dst_desc(), shape);
        return push(dnnl::eltwise_forward(made), {{DNNL_ARG_SRC, value(step.a)}, {DNNL_ARG_DST, values_.back()}});
      }
      case Kind::kAdd:
      case Kind::kMultiply: {
        auto algorithm = step.kind == Kind::kAdd ? dnnl::algorithm::binary_add : dnnl::algorithm::binary_mul;
        dnnl::binary::primitive_desc made({algorithm, source, value(step.b).get_desc(), source}, cpu());
        add_result(made.dst_desc(), shape);
        return push(dnnl::binary(made),
                    {{DNNL_ARG_SRC_0, value(step.a)}, {DNNL_ARG_SRC_1, value(step.b)}, {DNNL_ARG_DST, values_.back()}});
      }
    }
  }

  static memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Tag::any}; }

  void add_convolution(const Step& step, const Dims& shape) {
    weight_dims_ = Dims(step.weight_dims, step.weight_dims + step.weight_rank);
    bool has_groups = weight_dims_.size() == 5;
    int64_t filters = has_groups ? weight_dims_[0] * weight_dims_[1] : weight_dims_[0];
    Dims result = {shape[0], filters, 0, 0}, strides(step.strides, step.strides + 2), dilation;
    for (size_t d = 0; d < 2; ++d) {
      result[d + 2] = windows(shape[d + 2], step.padding[d], step.padding[d + 2], step.window[d], step.strides[d],
                              step.dilation[d]);
      dilation.push_back(step.dilation[d] - 1);
    }
    Dims before(step.padding, step.padding + 2), after(step.padding + 2, step.padding + 4);
    memory::desc bias = step.bias >= 0 ? any({filters}) : memory::desc();
    dnnl::convolution_forward::desc wanted(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
                                           any(shape), any(weight_dims_), bias, any(result), strides, dilation, before,
                                           after);
    add_product(step, dnnl::convolution_forward::primitive_desc(wanted, attributes(step), cpu()), result, {filters});
  }

  void add_matmul(const Step& step, const Dims& shape) {
    Dims result = shape, weight(shape.size(), 1);
    weight[shape.size() - 2] = step.weight_dims[0], weight.back() = result.back() = step.weight_dims[1];
    weight_dims_ = weight;
    Dims bias_dims(shape.size(), 1);
    bias_dims.back() = result.back();
    memory::desc bias = step.bias >= 0 ? dense_desc(bias_dims) : memory::desc();
    dnnl::matmul::desc wanted(value(step.a).get_desc(), any(weight), bias, dense_desc(result));
    add_product(step, dnnl::matmul::primitive_desc(wanted, attributes(step), cpu()), result, bias_dims);
  }

  void add_pool(const Step& step, const Dims& shape, const memory::desc& source) {
    Dims result = {shape[0], shape[1], 0, 0}, dilation;
    for (size_t d = 0; d < 2; ++d) {
      result[d + 2] = windows(shape[d + 2], step.padding[d], step.padding[d + 2], step.window[d], step.strides[d],
                              step.dilation[d]);
      dilation.push_back(step.dilation[d] - 1);
    }
    auto algorithm = step.kind == Kind::kMaxPool ? dnnl::algorithm::pooling_max
                     : step.counts_pads          ? dnnl::algorithm::pooling_avg_include_padding
                                                 : dnnl::algorithm::pooling_avg_exclude_padding;
    dnnl::pooling_v2_forward::desc wanted(dnnl::prop_kind::forward_inference, algorithm, source, any(result),
                                          {step.strides[0], step.strides[1]}, {step.window[0], step.window[1]},
                                          dilation, {step.padding[0], step.padding[1]},
                                          {step.padding[2], step.padding[3]});
    dnnl::pooling_v2_forward::primitive_desc made(wanted, cpu());
    add_result(made.dst_desc(), result);
    push(dnnl::pooling_v2_forward(made), {{DNNL_ARG_SRC, value(step.a)}, {DNNL_ARG_DST, values_.back()}});
  }

  Header header_;
  const float* floats_;
  std::vector<memory> values_;
  std::vector<Dims> shapes_;
  Dims weight_dims_;  // of the step that is added
  memory::desc result_;
  memory destination_;
  std::vector<std::pair<dnnl::primitive, Args>> calls_;
  std::mutex mutex_;
};

template <>
struct Instance::ProductOf<dnnl::convolution_forward::primitive_desc> {
  using Type = dnnl::convolution_forward;
};
template <>
struct Instance::ProductOf<dnnl::matmul::primitive_desc> {
  using Type = dnnl::matmul;
};

// The instances of a process. A program is known by its contents, because another may come to be at its address.
// Returns null where the result has no elements.
std::shared_ptr<Instance> instance_of(const std::byte* bytes, const int64_t* dims) {
  static std::mutex mutex;
  static std::map<std::vector<uint64_t>, std::shared_ptr<Instance>> instances;
  Header header;
  std::memcpy(&header, bytes, sizeof header);
  int64_t num_dims = std::accumulate(header.ranks, header.ranks + header.num_inputs + 1, int64_t{0});
  std::span all(dims, static_cast<size_t>(num_dims));
  std::span result = all.last(static_cast<size_t>(header.ranks[header.num_inputs]));
  if (std::find(result.begin(), result.end(), 0) != result.end()) return nullptr;
  std::vector<uint64_t> key = {header.hash[0], header.hash[1], static_cast<uint64_t>(header.num_bytes)};
  key.insert(key.end(), all.begin(), all.end());
  std::lock_guard lock(mutex);
  std::shared_ptr<Instance>& found = instances[key];
  if (!found) found = std::make_shared<Instance>(bytes, dims);
  return found;
}

}  // namespace

extern "C" int32_t relaxc_onednn_run(const void* bytes, const int64_t* dims, void* t0, void* t1, void* t2, void* t3,
                                     void* t4, void* t5, void* t6, void* t7) {
  void* const tensors[] = {t0, t1, t2, t3, t4, t5, t6, t7};
  try {
    if (auto instance = instance_of(static_cast<const std::byte*>(bytes), dims)) instance->run(tensors);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
