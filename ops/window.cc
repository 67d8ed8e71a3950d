#include "ops/window.h"

#include <algorithm>

namespace relaxc {

Layout read_layout(const OpCall& op, const std::string& text, std::string_view plain, const char* what) {
  auto layout = Layout::parse(text.empty() ? plain : std::string_view(text), std::string(plain));
  if (!layout) op.fail("{} '{}' does not order the axes {}", what, text, plain);
  return *layout;
}
Layout result_layout(const OpCall& op, const std::optional<std::string>& out_layout, const std::string& data_layout,
                     std::string_view plain) {
  std::string layout = out_layout.value_or("");
  return read_layout(op, layout.empty() ? data_layout : layout, plain, "out layout");
}
std::vector<Expr> dims_in(const OpCall& op, const Layout& layout, const std::vector<Expr>& plain) {
  for (size_t axis = 0; axis < plain.size(); ++axis) {
    if (int64_t block = layout.block_of(axis); block > 1)
      op.require_multiple(plain[axis], block, "the layout's blocks do not divide the axis");
  }
  return layout.from_plain(plain);
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
  std::vector<Expr> dims = layout.to_plain(type.shape), padded = dims_in(op, layout, shape);
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
