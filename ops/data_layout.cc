#include "ops/data_layout.h"

#include <cctype>
#include <charconv>

namespace relaxc {

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

std::string blocked_layout(int64_t block) { return fmt::format("NCHW{}c", block); }
std::optional<int64_t> block_of_layout(const std::string& layout) {
  int64_t block = 0;
  if (layout.size() > 4) std::from_chars(&layout[4], &layout.back(), block);
  return block > 0 && layout == blocked_layout(block) ? std::optional(block) : std::nullopt;
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

}  // namespace relaxc
