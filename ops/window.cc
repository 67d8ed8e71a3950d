#include "ops/window.h"

#include <algorithm>
#include <cctype>

namespace relaxc {

DType accumulation_dtype(DType dtype) { return dtype.is_float() && dtype.bits == 16 ? kFloat32 : dtype; }

Buffer as_dtype(ComputeBuilder& b, const Buffer& value, DType dtype, const std::string& name) {
  const BufferType& type = buffer_type(value);
  if (type.dtype == dtype) return value;
  return b.compute(name, dtype, type.shape, [&](Axes i) { return cast_to(at(value, i), dtype); });
}

DType product_dtype(const OpCall& op, std::optional<DType> out_dtype) {
  DType a = op.dtype(0), b = op.dtype(1);
  if (a.is_bool() || b.is_bool()) op.fail("expected numbers, got bool");
  bool widened = out_dtype && a.is_integral() && b.is_integral();
  if (a != b && !widened) op.fail("arguments have different dtypes: {} and {}", to_string(a), to_string(b));
  return out_dtype.value_or(a);
}

Expr divide_by_count(const Expr& sum, Expr count) {
  DType dtype = dtype_of(sum);
  if (!dtype.is_float()) count = max(count, int_imm(1));
  auto known = as_int(count);
  return binary(BinaryOp::kDiv, sum, known ? scalar_imm(static_cast<double>(*known), dtype) : cast_to(count, dtype));
}

std::vector<int64_t> per_dim(const OpCall& op, const std::vector<int64_t>& values, size_t rank, const char* what,
                             int64_t least) {
  if (values.size() != 1 && values.size() != rank) op.fail("{} has {} values, expected {}", what, values.size(), rank);
  for (int64_t value : values) {
    if (value < least || value > INT32_MAX) op.fail("{} is {}, expected at least {}", what, value, least);
  }
  return values.size() == rank ? values : std::vector<int64_t>(rank, values[0]);
}

bool Padding::any() const {
  auto is_positive = [](int64_t count) { return count > 0; };
  return std::ranges::any_of(before, is_positive) || std::ranges::any_of(after, is_positive);
}

Padding read_padding(const OpCall& op, const std::vector<int64_t>& values, size_t rank) {
  if (values.size() == 2 * rank) {
    auto middle = values.begin() + static_cast<int64_t>(rank);
    return {per_dim(op, {values.begin(), middle}, rank, "padding", 0),
            per_dim(op, {middle, values.end()}, rank, "padding", 0)};
  }
  if (values.size() != 1 && values.size() != rank)
    op.fail("padding has {} values, expected 1, {} or {}", values.size(), rank, 2 * rank);
  std::vector<int64_t> both = per_dim(op, values, rank, "padding", 0);
  return {both, both};
}

Layout::Layout(const OpCall& op, const std::string& text, std::string_view plain, const char* what)
    : plain_rank_(plain.size()) {
  int64_t block = 0;
  std::string seen;
  for (char c : text.empty() ? std::string(plain) : text) {
    if (c >= '0' && c <= '9' && block <= 4096) {
      block = block * 10 + (c - '0');
      continue;
    }
    size_t position = plain.find(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    bool is_inner = std::islower(static_cast<unsigned char>(c));
    if (position == std::string_view::npos || is_inner != (block > 0) || seen.find(c) != std::string::npos)
      op.fail("{} '{}' does not order the axes {}", what, text, plain);
    seen += c;
    axes_.push_back({position, block});
    block = 0;
  }
  for (char letter : plain) {
    if (seen.find(letter) == std::string::npos || block > 0)
      op.fail("{} '{}' does not order the axes {}", what, text, plain);
  }
}
Layout::Layout(size_t rank) : plain_rank_(rank) {
  for (size_t d = 0; d < rank; ++d) axes_.push_back({d, 0});
}
Layout result_layout(const OpCall& op, const std::optional<std::string>& out_layout, const std::string& data_layout,
                     std::string_view plain) {
  std::string layout = out_layout.value_or("");
  return Layout(op, layout.empty() ? data_layout : layout, plain, "out layout");
}
int64_t Layout::block_of(size_t plain) const {
  int64_t block = 1;
  for (const Axis& axis : axes_) {
    if (axis.plain == plain && axis.block > 0) block = axis.block;
  }
  return block;
}
std::vector<Expr> Layout::to_plain(const std::vector<Expr>& dims) const {
  std::vector<Expr> result(plain_rank_, int_imm(1));
  for (size_t d = 0; d < axes_.size(); ++d) {
    Expr& dim = result[axes_[d].plain];
    dim = is_int(dim, 1) ? dims[d] : simplify(dim * dims[d]);
  }
  return result;
}
std::vector<Expr> Layout::from_plain(const OpCall& op, const std::vector<Expr>& dims) const {
  std::vector<Expr> result;
  for (const Axis& axis : axes_) {
    int64_t block = block_of(axis.plain);
    if (axis.block == 0 && block > 1)
      op.require_multiple(dims[axis.plain], block, "the layout's blocks do not divide the axis");
    result.push_back(axis.block > 0 ? int_imm(block) : simplify(floor_div(dims[axis.plain], block)));
  }
  return result;
}
std::vector<Expr> Layout::to_plain_index(const std::vector<Expr>& indices) const {
  std::vector<Expr> result(plain_rank_, int_imm(0));
  for (size_t d = 0; d < axes_.size(); ++d) {
    Expr& index = result[axes_[d].plain];
    int64_t block = axes_[d].block > 0 ? 1 : block_of(axes_[d].plain);
    Expr part = block > 1 ? indices[d] * block : indices[d];
    index = is_int(index, 0) ? part : index + part;
  }
  return result;
}
std::vector<Expr> Layout::from_plain_index(const std::vector<Expr>& indices, const Analyzer& facts) const {
  std::vector<Expr> result;
  for (const Axis& axis : axes_) {
    const Expr& index = indices[axis.plain];
    int64_t block = block_of(axis.plain);
    Expr part = axis.block > 0 ? floor_mod(index, block) : floor_div(index, block);
    result.push_back(block > 1 ? facts.simplify(part) : index);
  }
  return result;
}

Analyzer facts_of_axes(Axes axes, const std::vector<Expr>& extents) {
  Analyzer facts;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].is<Var>()) facts.bind(cast<Var>(axes[d]), int_imm(0), extents[d]);
  }
  return facts;
}

void require_layout(const OpCall& op, const std::string& layout, std::string_view wanted, const char* what) {
  if (!layout.empty() && layout != wanted) op.unsupported("{} '{}', expected '{}'", what, layout, wanted);
}

Expr window_count(const OpCall& op, const Expr& extent, int64_t padding, const Expr& kernel, int64_t stride,
                  int64_t dilation) {
  auto known_kernel = as_int(kernel), known_extent = as_int(extent);
  // The count is (extent + slack) / stride with the constants gathered: "same" convolutions give the extent itself.
  std::string_view too_large = "the window is larger than the padded input";
  if (!known_kernel) {
    op.require_at_most((kernel - 1) * dilation + 1, extent + padding, too_large);
    return floor_div(extent + (padding + stride - 1) - (kernel - 1) * dilation, stride);
  }
  int64_t window = dilation * (*known_kernel - 1) + 1;
  if (*known_kernel < 1) op.fail("the window has extent {}, expected at least 1", *known_kernel);
  if (known_extent && *known_extent + padding < window)
    op.fail("the window of {} is larger than the padded input of {}", window, *known_extent + padding);
  if (!known_extent && window > padding) op.require_at_most(int_imm(window - padding), extent, too_large);
  return floor_div(extent + (padding - window + stride), stride);
}

Buffer pad_stage(ComputeBuilder& b, const OpCall& op, const Buffer& data, const Layout& layout,
                 const std::vector<int64_t>& before, const std::vector<Expr>& shape, const Expr& fill) {
  const BufferType& type = buffer_type(data);
  std::vector<Expr> dims = layout.to_plain(type.shape), padded = layout.from_plain(op, shape);
  return b.compute("pad_temp", type.dtype, padded, [&](Axes axes) {
    Expr inside = bool_imm(true);
    std::vector<Expr> i = layout.to_plain_index(axes), indices = {i[0], i[1]};
    for (size_t d = 2; d < shape.size(); ++d) {
      int64_t shift = before[d - 2];
      indices.push_back(i[d] - shift);
      if (shift > 0) inside = inside && i[d] >= int_imm(shift);
      bool reaches_end = same_node(shape[d], dims[d]) && shift == 0;
      if (!reaches_end) inside = inside && i[d] < dims[d] + shift;
    }
    return if_then_else(inside, load(data, layout.from_plain_index(indices, facts_of_axes(axes, padded))), fill);
  });
}

}  // namespace relaxc
