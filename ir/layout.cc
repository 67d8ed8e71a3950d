#include "ir/layout.h"

#include <algorithm>
#include <cctype>

#include "support/check.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

constexpr char kNoAxis = '_';
constexpr int64_t kMostElements = 1 << 20;  // of all inner parts of an axis

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::vector<VarRef> variables(const std::vector<std::string>& names) {
  std::vector<VarRef> result;
  for (const std::string& name : names) result.push_back(make_dim(name));
  return result;
}
Ref<Lambda> lambda(std::vector<VarRef> params, std::vector<Expr> results) {
  return make(Lambda{std::move(params), std::move(results)}, object_type());
}
std::vector<Expr> exprs(const std::vector<VarRef>& vars) { return {vars.begin(), vars.end()}; }

std::string letters(size_t rank) {
  std::string result;
  for (size_t d = 0; d < rank; ++d) result += static_cast<char>('A' + d % 26);
  return result;
}
// Returns whether each axis has one outer part, as a layout must.
bool are_complete(const std::vector<Layout::Dim>& dims, size_t rank) {
  for (size_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::count(dims, Layout::Dim{axis, 0}) != 1) return false;
  }
  return true;
}

bool equal_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b,
                            [](const Expr& x, const Expr& y) { return structural_equal(simplify(x), simplify(y)); });
}

std::optional<size_t> position_of(const std::vector<VarRef>& params, const Expr& var) {
  auto found = std::ranges::find_if(params, [&](const VarRef& param) { return same_node(param, var); });
  return found == params.end() ? std::nullopt : std::optional(static_cast<size_t>(found - params.begin()));
}

}  // namespace

Layout::Layout(std::string axes) : axes_(std::move(axes)) {
  for (size_t d = 0; d < axes_.size(); ++d) dims_.push_back({d, 0});
}
Layout::Layout(std::string axes, std::vector<Dim> dims) : axes_(std::move(axes)), dims_(std::move(dims)) {
  RELAXC_CHECK(are_complete(dims_, axes_.size()), "one outer part of each of {} in {}", axes_, text());
}
Layout Layout::of_rank(size_t rank) { return Layout(letters(rank)); }

std::optional<Layout> Layout::parse(std::string_view text, std::string axes) {
  if (axes.empty()) std::ranges::copy_if(text, std::back_inserter(axes), is_upper);  // a repeated one is refused below
  std::vector<Dim> dims;
  std::vector<int64_t> blocks(axes.size(), 1);
  int64_t number = 0;
  for (char c : text) {
    if (is_digit(c)) {
      number = number * 10 + (c - '0');
      if (number > kMostElements) return std::nullopt;
      continue;
    }
    const size_t axis = axes.find(upper(c));
    const bool is_inner = is_lower(c),
               is_known = c == kNoAxis || (axis != std::string::npos && (is_inner || is_upper(c)));
    if (!is_known || is_inner != (number > 0)) return std::nullopt;
    dims.push_back({c == kNoAxis ? std::nullopt : std::optional(axis), number});
    if (is_inner && (blocks[axis] *= number) > kMostElements) return std::nullopt;
    number = 0;
  }
  if (number > 0 || !are_complete(dims, axes.size())) return std::nullopt;
  return Layout(std::move(axes), std::move(dims));
}

std::string Layout::text() const {
  std::string result;
  for (const Dim& dim : dims_) {
    if (dim.block > 0) result += std::to_string(dim.block);
    result += !dim.axis ? kNoAxis : dim.block > 0 ? lower(axes_[*dim.axis]) : axes_[*dim.axis];
  }
  return result;
}

bool Layout::is_plain() const { return *this == Layout(axes_); }

int64_t Layout::block_of(size_t axis) const {
  int64_t block = 1;
  for (const Dim& dim : dims_) block *= dim.axis == axis && dim.block > 0 ? dim.block : 1;
  return block;
}
std::vector<size_t> Layout::parts_of(size_t axis) const {
  std::vector<size_t> result = {static_cast<size_t>(std::ranges::find(dims_, Dim{axis, 0}) - dims_.begin())};
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].axis == axis && dims_[d].block > 0) result.push_back(d);
  }
  return result;
}
int64_t Layout::stride_of(size_t dim) const {
  if (dims_[dim].block == 0) return block_of(*dims_[dim].axis);
  int64_t stride = 1;
  for (size_t d = dim + 1; d < dims_.size(); ++d) {
    if (dims_[d].axis == dims_[dim].axis && dims_[d].block > 0) stride *= dims_[d].block;
  }
  return stride;
}

std::vector<Expr> Layout::to_plain(const std::vector<Expr>& dims) const {
  std::vector<Expr> result(axes_.size(), int_imm(1));
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (!dims_[d].axis) continue;
    Expr& dim = result[*dims_[d].axis];
    dim = is_int(dim, 1) ? dims[d] : simplify(dim * dims[d]);
  }
  return result;
}
std::vector<Expr> Layout::from_plain(const std::vector<Expr>& plain) const {
  std::vector<Expr> result;
  for (const Dim& dim : dims_) {
    if (!dim.axis || dim.block > 0) {
      result.push_back(int_imm(dim.axis ? dim.block : 1));
      continue;
    }
    const int64_t block = block_of(*dim.axis);
    const auto known = as_int(plain[*dim.axis]);
    result.push_back(known ? int_imm(ceil_div(*known, block)) : simplify(floor_div(plain[*dim.axis], block)));
  }
  return result;
}
bool Layout::is_padded(const std::vector<Expr>& plain) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const int64_t block = block_of(axis);
    if (block > 1 && !is_int(simplify(floor_mod(plain[axis], block)), 0)) return true;
  }
  return false;
}

std::vector<Expr> Layout::to_plain_index(const std::vector<Expr>& indices) const {
  std::vector<Expr> result(axes_.size(), int_imm(0));
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (!dims_[d].axis) continue;
    Expr& index = result[*dims_[d].axis];
    const int64_t stride = stride_of(d);
    const Expr part = stride > 1 ? indices[d] * stride : indices[d];
    index = is_int(index, 0) ? part : index + part;
  }
  return result;
}
std::vector<Expr> Layout::from_plain_index(const std::vector<Expr>& plain, const Analyzer& facts) const {
  std::vector<Expr> result;
  for (size_t d = 0; d < dims_.size(); ++d) {
    const auto [axis, block] = dims_[d];
    Expr part = axis ? plain[*axis] : int_imm(0);
    if (!axis || block_of(*axis) == 1) {
      result.push_back(part);
      continue;
    }
    if (const int64_t stride = stride_of(d); stride > 1) part = floor_div(part, stride);
    if (block > 0) part = floor_mod(part, block);
    result.push_back(facts.simplify(part));
  }
  return result;
}

Ref<Lambda> Layout::index_map() const {
  std::vector<std::string> names;
  for (char axis : axes_) names.emplace_back(1, lower(axis));
  std::vector<VarRef> params = variables(names);
  return lambda(params, from_plain_index(exprs(params)));
}
Ref<Lambda> Layout::inverse_map() const {
  std::vector<std::string> names;
  for (const Dim& dim : dims_) {
    std::string name = "one";
    if (dim.axis) name = dim.block > 0 || block_of(*dim.axis) == 1 ? lower(axes_[*dim.axis]) : axes_[*dim.axis];
    const auto uses = std::ranges::count_if(names, [&](const std::string& other) { return other.starts_with(name); });
    names.push_back(uses > 0 ? name + std::to_string(uses) : name);
  }
  std::vector<VarRef> params = variables(names);
  return lambda(params, to_plain_index(exprs(params)));
}

// The shape of each result says which part it may be; the layout is right if it gives the same results.
std::optional<Layout> Layout::of_index_map(const Lambda& map) {
  std::vector<Dim> dims;
  for (const Expr& result : map.results) {
    const std::vector<VarRef> used = free_vars(result);
    if (used.empty()) dims.push_back({});
    if (used.empty()) continue;
    const auto axis = position_of(map.params, used[0]);
    const Binary* part = result.as<Binary>();
    if (!axis || used.size() != 1) return std::nullopt;
    int64_t block = 0;
    if (part && part->op == BinaryOp::kFloorMod) block = as_int(part->b).value_or(0);
    if (part && part->op == BinaryOp::kFloorDiv) {
      const Binary* inside = part->a.as<Binary>();  // p % 16 // 4
      if (inside && inside->op == BinaryOp::kFloorMod)
        block = as_int(inside->b).value_or(0) / std::max<int64_t>(1, as_int(part->b).value_or(1));
    }
    if (block < 0 || block > kMostElements) return std::nullopt;
    dims.push_back({axis, block});
  }
  if (!are_complete(dims, map.params.size())) return std::nullopt;
  Layout layout(letters(map.params.size()), std::move(dims));
  const bool is_right = equal_lists(layout.from_plain_index(exprs(map.params)), map.results);
  return is_right ? std::optional(layout) : std::nullopt;
}

std::optional<Layout> Layout::of_inverse_map(const Lambda& map) {
  struct Part {
    std::optional<size_t> axis;
    int64_t scale = 0;
  };
  std::vector<Part> parts(map.params.size());
  for (size_t axis = 0; axis < map.results.size(); ++axis) {
    for (const VarRef& var : free_vars(map.results[axis])) {
      const auto param = position_of(map.params, var);
      VarMap unit;
      for (const VarRef& other : map.params) unit.emplace(other.get(), int_imm(same_node(other, var) ? 1 : 0));
      const auto scale = as_int(simplify(substitute(map.results[axis], unit)));
      if (!param || parts[*param].axis || scale.value_or(0) < 1) return std::nullopt;
      parts[*param] = {axis, *scale};
    }
  }
  // An inner part is as large as the next larger scale says.
  std::vector<Dim> dims;
  for (const Part& part : parts) {
    int64_t next = 0;
    for (const Part& other : parts) {
      if (other.axis == part.axis && other.scale > part.scale && (next == 0 || other.scale < next)) next = other.scale;
    }
    dims.push_back({part.axis, part.axis && next > 0 ? next / part.scale : 0});
  }
  if (!are_complete(dims, map.results.size())) return std::nullopt;
  Layout layout(letters(map.results.size()), std::move(dims));
  const bool is_right = equal_lists(layout.to_plain_index(exprs(map.params)), map.results);
  return is_right ? std::optional(layout) : std::nullopt;
}

Layout Layout::without(char axis) const {
  const size_t gone = axes_.find(axis);
  std::string axes = axes_;
  axes.erase(gone, 1);
  std::vector<Dim> dims;
  for (Dim dim : dims_) {
    if (dim.axis == gone) continue;
    if (dim.axis && *dim.axis > gone) dim.axis = *dim.axis - 1;
    dims.push_back(dim);
  }
  return {std::move(axes), std::move(dims)};
}

Layout Layout::of_broadcast(const std::vector<Expr>& plain) const {
  const size_t missing = axes_.size() - plain.size();
  std::vector<Dim> dims;
  for (const Dim& dim : dims_) {
    const bool is_there = dim.axis && *dim.axis >= missing;
    const bool is_whole = is_there && is_int(plain[*dim.axis - missing], 1);
    if (!is_there || (is_whole && dim.block > 0)) {
      if (!dims.empty()) dims.emplace_back();
    } else {
      dims.push_back({*dim.axis - missing, dim.block});
    }
  }
  return {axes_.substr(missing), std::move(dims)};
}

}  // namespace relaxc
