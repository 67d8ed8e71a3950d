#include "tools/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "vm/dlpack.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/shipped_libraries.h"

namespace relaxc::tools {

namespace {

// Rows of pixels, whose channels lie beside each other.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<double> values = {};
  double at(int64_t y, int64_t x, int64_t c) const {
    return values[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

Pixels decode(const std::string& path, int64_t channels) {
  const auto file = with_compile_errors({}, [&] { return vm::MappedFile::open(path); });
  const auto library = vm::open_shipped_library(vm::kImages);
  const std::string name = channels == 1 ? "relaxc.image.decode_grayscale" : "relaxc.image.decode_rgb";
  const auto row = std::ranges::find_if(library->rows(), [&](const relaxc_kernel_row& r) { return name == r.name; });
  if (row == library->rows().end()) fail({}, "'{}' has no function {}", library->path(), name);
  int64_t size = std::ssize(file->bytes());
  DLTensor bytes{};
  bytes.data = const_cast<std::byte*>(file->bytes().data());
  bytes.device = {kDLCPU, 0};
  bytes.ndim = 1;
  bytes.dtype = {kDLUInt, 8, 1};
  bytes.shape = &size;
  const DLTensor* arguments[] = {&bytes};
  DLManagedTensor* result = nullptr;
  relaxc_kernel_context context{};
  if (row->packed(arguments, 1, &result, &context) != 0) fail({}, "{}: {}", path, context.error);
  const DLTensor& image = result->dl_tensor;
  Pixels pixels{image.shape[0], image.shape[1], image.shape[2]};
  const auto* from = static_cast<const uint8_t*>(image.data);
  pixels.values.assign(from, from + pixels.height * pixels.width * pixels.channels);
  result->deleter(result);
  if (pixels.values.empty()) fail({}, "{}: not an image, or a damaged one", path);
  return pixels;
}

// The pixels of a row or column that a new one is made of, and their weights: a triangle as wide as the new pixel, or
// as an old one where it is enlarged.
struct Sample {
  int64_t first;
  std::vector<double> weights;
};
std::vector<Sample> samples(int64_t from, int64_t to) {
  std::vector<Sample> result;
  const double ratio = static_cast<double>(from) / static_cast<double>(to), reach = std::max(ratio, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * ratio;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - reach)));
    const auto last = std::min<int64_t>(from - 1, static_cast<int64_t>(std::ceil(center + reach)));
    Sample sample{first, {}};
    double sum = 0;
    for (int64_t k = first; k <= last; ++k) {
      sample.weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - center) / reach));
      sum += sample.weights.back();
    }
    for (double& weight : sample.weights) weight /= sum;
    result.push_back(std::move(sample));
  }
  return result;
}

Pixels resized(const Pixels& image, int64_t height, int64_t width) {
  auto sum = [](const Sample& sample, const auto& value) {
    double total = 0;
    for (size_t k = 0; k < sample.weights.size(); ++k)
      total += sample.weights[k] * value(sample.first + static_cast<int64_t>(k));
    return total;
  };
  Pixels narrow{image.height, width, image.channels}, result{height, width, image.channels};
  const std::vector<Sample> columns = samples(image.width, width), rows = samples(image.height, height);
  for (int64_t y = 0; y < image.height; ++y) {
    for (const Sample& column : columns) {
      for (int64_t c = 0; c < image.channels; ++c)
        narrow.values.push_back(sum(column, [&](int64_t x) { return image.at(y, x, c); }));
    }
  }
  for (const Sample& row : rows) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c)
        result.values.push_back(sum(row, [&](int64_t y) { return narrow.at(y, x, c); }));
    }
  }
  return result;
}

// Where the dims of an image are among those of the input. `wanted` is that of the options.
struct Layout {
  size_t channel, height, width;
  int64_t channels;
};
std::optional<Layout> layout_of(const vm::ValueInfo& info, const std::string& wanted) {
  const bool fits =
      info.kind == vm::ValueKind::kTensor && info.dims && (info.dims->size() == 3 || info.dims->size() == 4);
  if (!fits || (info.dtype && !info.dtype->is_float() && !info.dtype->is_integral())) return std::nullopt;
  const size_t first = info.dims->size() - 3;
  if (first == 1 && info.dims->at(0).text.empty() && info.dims->at(0).value != 1) return std::nullopt;
  auto is_channel = [&](size_t d) {
    const vm::DimInfo& dim = info.dims->at(d);
    return dim.text.empty() && (dim.value == 1 || dim.value == 3);
  };
  if (is_channel(first) && wanted != "nhwc") return Layout{first, first + 1, first + 2, info.dims->at(first).value};
  if (is_channel(first + 2) && wanted != "nchw")
    return Layout{first + 2, first, first + 1, info.dims->at(first + 2).value};
  return std::nullopt;
}

double of_channel(const std::vector<double>& numbers, int64_t channel, double otherwise) {
  if (numbers.empty()) return otherwise;
  return numbers.size() == 1 ? numbers[0] : numbers.at(static_cast<size_t>(channel));
}

void check_count(const char* flag, const std::vector<double>& numbers, int64_t channels) {
  if (numbers.size() > 1 && std::ssize(numbers) != channels)
    fail({}, "{} has {} numbers, and the image {} channels; give one for each, or one for all", flag, numbers.size(),
         channels);
}

// Sets an element to the nearest value of its dtype; false where that is out of range.
bool set_rounded(Tensor& tensor, int64_t i, double value) {
  if (tensor.dtype().is_float()) {
    tensor.set_double(i, value);
    return std::isfinite(tensor.as_double(i));
  }
  constexpr double kMost = 9.2e18;  // so that the conversion to an integer is defined
  const double rounded = std::round(value);
  if (!(std::abs(rounded) <= kMost)) return false;
  tensor.set_int(i, static_cast<int64_t>(rounded));
  return tensor.as_double(i) == rounded;
}

constexpr const char* kColors[] = {"red", "green", "blue"};

}  // namespace

Tensor read_picture(const std::string& path, const vm::ValueInfo& info, const PictureOptions& options,
                    std::vector<std::string>& notes) {
  const std::optional<Layout> layout = layout_of(info, options.layout);
  if (!layout)
    fail({}, "{}: an image does not fit '{}'{}; expected one image with 1 or 3 channels, such as float32[1, 3, h, w]",
         path, printable(to_string(info)), options.layout.empty() ? "" : " by --layout " + options.layout);
  if (options.layout.empty() && layout->channel < layout->height && layout_of(info, "nhwc"))
    notes.push_back(
        fmt::format("{}: the channels are those before height and width; --layout nhwc reads '{}' the "
                    "other way",
                    path, printable(to_string(info))));
  check_count("--mean", options.mean, layout->channels);
  check_count("--scale", options.scale, layout->channels);
  Pixels image = decode(path, layout->channels);
  auto wanted = [&](size_t d, int64_t otherwise) {
    const vm::DimInfo& dim = info.dims->at(d);
    return dim.text.empty() ? dim.value : otherwise;
  };
  const int64_t height = wanted(layout->height, image.height), width = wanted(layout->width, image.width);
  if (height < 1 || width < 1) fail({}, "{}: '{}' has no pixels", path, printable(to_string(info)));
  if (height != image.height || width != image.width) {
    notes.push_back(
        fmt::format("{}: {} x {} pixels are scaled to {} x {}", path, image.width, image.height, width, height));
    image = resized(image, height, width);
  }
  const DType dtype = info.dtype.value_or(kFloat32);
  std::vector<int64_t> shape(info.dims->size(), 1), strides(shape.size(), 1);
  shape[layout->channel] = image.channels, shape[layout->height] = height, shape[layout->width] = width;
  for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        const double scale = of_channel(options.scale, c, dtype.is_float() ? 1.0 / 255 : 1);
        const double value = (image.at(y, x, c) - of_channel(options.mean, c, 0)) * scale;
        const int64_t i = y * strides[layout->height] + x * strides[layout->width] + c * strides[layout->channel];
        if (set_rounded(tensor, i, value)) continue;
        fail({}, "{}: the {} of {:.0f} in row {}, column {} becomes {:g} by --mean and --scale, which is {} {}{}", path,
             image.channels == 1 ? "gray" : kColors[c], image.at(y, x, c), y, x, value,
             dtype.is_float() ? "beyond the range of" : "not a value of", to_string(dtype),
             dtype == DType::int_(8) && options.mean.empty() ? "; give --mean 128" : "");
      }
    }
  }
  return tensor;
}

}  // namespace relaxc::tools
