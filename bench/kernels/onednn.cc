// oneDNN with weights in the layout that it likes (format any), and for convolutions activations too, as inside of a
// network that it owns. Versions 2 and 3.
#include "bench/kernels/problem.h"

#ifdef RELAXC_HAVE_ONEDNN
#include <dlfcn.h>
#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#endif

namespace relaxc::bench {

#ifndef RELAXC_HAVE_ONEDNN

std::vector<Runner> onednn_runners(const Problem&, const Data&, int) { return {}; }
std::string describe_onednn() { return "no oneDNN"; }

#else

namespace {

using Md = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::data_type data_type(DType dtype) {
  using T = dnnl::memory::data_type;
  return dtype == kFloat32            ? T::f32
         : dtype == kInt32            ? T::s32
         : dtype == DType::bfloat16() ? T::bf16
         : dtype.is_uint()            ? T::u8
                                      : T::s8;
}
Md describe(const Tensor& tensor, Tag tag) { return {tensor.shape(), data_type(tensor.dtype()), tag}; }
Tag plain(const Tensor& tensor) {
  return tensor.ndim() == 1 ? Tag::a : tensor.ndim() == 2 ? Tag::ab : tensor.ndim() == 4 ? Tag::abcd : Tag::abcde;
}

dnnl::memory wrap(const Tensor& tensor) { return {describe(tensor, plain(tensor)), engine(), tensor.raw()}; }
void copy(dnnl::memory from, dnnl::memory to) {
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}
dnnl::memory in_layout(const Tensor& tensor, const Md& layout) {
  dnnl::memory result(layout, engine());
  copy(wrap(tensor), result);
  return result;
}

template <class P, class... Args>
typename P::primitive_desc primitive_desc(const dnnl::primitive_attr& attr, const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), args..., attr};
#else
  return {typename P::desc(args...), attr, engine()};
#endif
}

using Args = std::unordered_map<int, dnnl::memory>;

// The attributes of a convolution with relu and, when it is requantized, scales of channels; with its bias and
// arguments beyond input, weight and output.
struct Epilogue {
  dnnl::primitive_attr attr;
  Tensor bias;
  Args args = {};
};
Epilogue convolution_epilogue(const Problem& p, const Data& data) {
  Epilogue result{.attr = {}, .bias = data.bias};
  dnnl::post_ops relu;
#if DNNL_VERSION_MAJOR >= 3
  relu.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
  relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  result.attr.set_post_ops(relu);
  if (!p.is_requantized()) return result;
#if DNNL_VERSION_MAJOR >= 3
  // Scales multiply the sums of products, and the bias is added behind that.
  result.attr.set_scales_mask(DNNL_ARG_WEIGHTS, p.groups > 1 ? 3 : 1);
  result.args.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, wrap(data.scale));
  result.bias = Tensor::empty({p.filters}, kFloat32);
  for (int64_t i = 0; i < p.filters; ++i) result.bias.set_double(i, data.bias.as_double(i) * data.scale.as_double(i));
#else
  const float* scales = data.scale.data<float>();
  result.attr.set_output_scales(1 << 1, {scales, scales + p.filters});
#endif
  return result;
}

template <class P, class Desc>
Runner runner(std::string name, const Problem& p, const Desc& desc, const Tensor& input, const Tensor& weight,
              Args args) {
  auto stream = std::make_shared<dnnl::stream>(engine());
  dnnl::memory output(desc.dst_desc(), engine());
  args.insert({{DNNL_ARG_SRC, in_layout(input, desc.src_desc())},
               {DNNL_ARG_WEIGHTS, in_layout(weight, desc.weights_desc())},
               {DNNL_ARG_DST, output}});
  Runner result{std::move(name), Tensor::empty(p.output_shape(), p.output_dtype()),
                [stream, args, primitive = P(desc)] {
                  primitive.execute(*stream, args);
                  stream->wait();
                }};
  result.finish = [output, to = result.output] { copy(output, wrap(to)); };
  return result;
}

}  // namespace

std::string describe_onednn() {
  const dnnl_version_t* version = dnnl_version();
  const char* limit = getenv("ONEDNN_MAX_CPU_ISA");
  return fmt::format("oneDNN {}.{}.{} (ONEDNN_MAX_CPU_ISA={}, effective isa 0x{:x})", version->major, version->minor,
                     version->patch, limit ? limit : "", static_cast<int>(dnnl::get_effective_cpu_isa()));
}

std::vector<Runner> onednn_runners(const Problem& p, const Data& data, int threads) {
  // Debian's oneDNN runs on OpenMP and has no parameter for the number of threads.
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
  std::vector<Runner> result;
  Tensor output = Tensor::empty(p.output_shape(), p.output_dtype());
  if (p.kind == Problem::Kind::kMatmul) {
    try {
      auto desc = primitive_desc<dnnl::matmul>({}, describe(data.input, Tag::ab), describe(data.weight, Tag::any),
                                               describe(output, Tag::ab));
      result.push_back(runner<dnnl::matmul>("onednn", p, desc, data.input, data.weight, {}));
    } catch (const dnnl::error&) {  // no bfloat16 on this processor
    }
    return result;
  }
  Epilogue epilogue = convolution_epilogue(p, data);
  epilogue.args.emplace(DNNL_ARG_BIAS, wrap(epilogue.bias));
  Tensor weight = data.weight;
  if (p.groups > 1)
    weight = weight.reshaped({p.groups, p.filters / p.groups, p.channels / p.groups, p.window, p.window});
  dnnl::memory::dims strides{p.stride, p.stride}, padding{p.padding(), p.padding()};
  for (auto [name, algorithm] : {std::pair{"onednn", dnnl::algorithm::convolution_auto},
                                 std::pair{"onednn_winograd", dnnl::algorithm::convolution_winograd}}) {
    try {
      auto desc = primitive_desc<dnnl::convolution_forward>(epilogue.attr, dnnl::prop_kind::forward_inference,
                                                            algorithm, describe(data.input, Tag::any),
                                                            describe(weight, Tag::any), describe(epilogue.bias, Tag::a),
                                                            describe(output, Tag::any), strides, padding, padding);
      result.push_back(runner<dnnl::convolution_forward>(name, p, desc, data.input, weight, epilogue.args));
    } catch (const dnnl::error&) {  // no such algorithm for this shape
    }
  }
  return result;
}

#endif

}  // namespace relaxc::bench
