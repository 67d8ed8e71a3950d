// Shared by the files of the plug-in: steps, and the constants that they point to.
#pragma once
#include <relaxc/plugin.h>

#include <cstring>

#include "program.h"

namespace onednn {

using namespace relaxc;

// The constants of a program.
struct Data {
  std::vector<std::byte> bytes;
  template <class T>
  int64_t add(const std::vector<T>& items) {
    int64_t position = std::ssize(bytes);
    bytes.resize((bytes.size() + items.size() * sizeof(T) + 63) / 64 * 64);
    if (!items.empty()) std::memcpy(bytes.data() + position, items.data(), items.size() * sizeof(T));
    return position;
  }
};

inline std::optional<Type> type_of(const Expr& value) {
  std::optional<DType> dtype = tensor_dtype(value.type());
  if (dtype == kFloat32) return Type::kF32;
  if (dtype == kInt32) return Type::kS32;
  if (dtype == DType::int_(8)) return Type::kS8;
  if (dtype == DType::uint(8)) return Type::kU8;
  return std::nullopt;
}

bool same_shape(const Expr& a, const Expr& b);
// Returns the elements of a constant that has one, or one per element of this axis of a tensor of this rank; nullopt
// for others.
std::optional<std::vector<float>> along(const Expr& value, size_t rank, size_t axis);

// Sets window, strides, padding and dilation; the weight's dims of a convolution of those that `weight_dims` gives.
void set_window(const Attrs& attrs, Step& step);
void set_weight_dims(const Attrs& attrs, Kind kind, std::vector<int64_t> dims, Step& step);
// Returns why the layouts are not those of images in oneDNN's plain order.
std::optional<std::string> unknown_layout(const Attrs& attrs);

// Products of integers (int8.cc): the patterns, why a match does not fit, and the step.
std::vector<ExternalPattern> int8_patterns();
bool is_int8_pattern(const std::string& name);
// `number_of` returns the number of a value.
Step int8_step(const PatternMatch& match, Data& data, const std::function<int64_t(const Expr&)>& number_of);

}  // namespace onednn
