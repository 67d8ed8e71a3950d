#include <algorithm>
#include <cstring>
#include <map>

#include "ir/layout.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "passes/fold_constants.h"
#include "passes/graph_rewriter.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/index_map.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

struct StridedDim {
  int64_t size, stride;  // stride in elements
  friend bool operator==(const StridedDim&, const StridedDim&) = default;
};

// The elements of a constant in another order: element i of the view is data[offset + sum of i[d] * dims[d].stride].
struct View {
  Tensor data;
  std::vector<StridedDim> dims;
  int64_t offset = 0;
  bool is_same(const View& other) const {
    return data.raw() == other.data.raw() && data.dtype() == other.data.dtype() && dims == other.dims &&
           offset == other.offset;
  }
};

std::vector<int64_t> sizes_of(const std::vector<StridedDim>& dims) {
  return map_each(dims, [&](const StridedDim& dim) { return dim.size; });
}

std::vector<StridedDim> dense(const std::vector<int64_t>& shape) {
  std::vector<StridedDim> dims(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    dims[d] = {shape[d], stride};
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return dims;
}

// Returns the dims without those of 1, and with neighbours joined that are one dim in memory.
std::vector<StridedDim> merged(const std::vector<StridedDim>& dims) {
  std::vector<StridedDim> result;
  for (const StridedDim& dim : dims) {
    if (dim.size == 1) continue;
    if (!result.empty() && result.back().stride == dim.size * dim.stride) {
      result.back() = {result.back().size * dim.size, dim.stride};
    } else {
      result.push_back(dim);
    }
  }
  return result;
}

// Returns the dims of a reshape that needs no copy: each joined dim is a product of dims of the new shape.
std::optional<std::vector<StridedDim>> reshaped(const View& view, const std::vector<int64_t>& shape) {
  std::vector<StridedDim> result(shape.size(), StridedDim{1, 1}), old = merged(view.dims);
  size_t next = shape.size();
  for (size_t d = old.size(); d-- > 0;) {
    int64_t left = old[d].size, stride = old[d].stride;
    while (left > 1) {
      if (next == 0 || shape[next - 1] == 0 || left % shape[next - 1] != 0) return std::nullopt;
      --next;
      result[next] = {shape[next], stride};
      left /= shape[next];
      stride *= shape[next];
    }
  }
  bool rest_is_ones = std::all_of(shape.begin(), shape.begin() + next, [](int64_t size) { return size == 1; });
  return rest_is_ones ? std::optional(result) : std::nullopt;
}

// Copies views of elements of type T, densely, to a position in a tensor. The two innermost dims, and the dim that the
// source has innermost, are walked in tiles that both sides find in the cache.
template <class T>
class Copy {
 public:
  Copy(const View& view, const Tensor& to, int64_t position)
      : view_(view),
        to_(to),
        dims_(merged(view.dims)),
        from_(static_cast<const T*>(view.data.raw()) + view.offset),
        out_(static_cast<T*>(to.raw()) + position) {
    if (dims_.empty()) dims_ = {{1, 1}};
    for (const StridedDim& dim : dense(sizes_of(dims_))) steps_.push_back(dim.stride);
    // The dim that the source has innermost, if that is not the last one.
    for (size_t d = 0; d + 1 < dims_.size(); ++d) {
      if (dims_[d].stride < dims_.back().stride && (!fast_ || dims_[d].stride < dims_[*fast_].stride)) fast_ = d;
    }
  }
  void run() { walk(0, 0, 0); }

 private:
  static constexpr int64_t kTile = 32;                                // elements
  static constexpr int64_t kPiece = (int64_t{32} << 20) / sizeof(T);  // elements between two releases of memory

  void walk(size_t d, int64_t from, int64_t to) {
    if (d + 1 == dims_.size()) return tile(from, to);
    if (fast_ == d) return walk(d + 1, from, to);
    for (int64_t i = 0; i < dims_[d].size; ++i) walk(d + 1, from + i * dims_[d].stride, to + i * steps_[d]);
  }
  // Copies the last dim and the source's innermost one.
  void tile(int64_t from, int64_t to) {
    const StridedDim& last = dims_.back();
    StridedDim fast = fast_ ? dims_[*fast_] : StridedDim{1, 0};
    int64_t fast_step = fast_ ? steps_[*fast_] : 0;
    if (last.stride == 1 && !fast_) {
      std::memcpy(out_ + to, from_ + from, static_cast<size_t>(last.size) * sizeof(T));
      return written(last.size);
    }
    for (int64_t j = 0; j < fast.size; j += kTile) {
      for (int64_t i = 0; i < last.size; i += kTile) {
        for (int64_t y = j; y < std::min(j + kTile, fast.size); ++y) {
          T* out = out_ + to + y * fast_step;
          const T* in = from_ + from + y * fast.stride;
          for (int64_t x = i; x < std::min(i + kTile, last.size); ++x) out[x] = in[x * last.stride];
        }
      }
      written(std::min(kTile, fast.size - j) * last.size);
    }
  }
  void written(int64_t elements) {
    pending_ += elements;
    if (pending_ < kPiece) return;
    pending_ = 0;
    vm::release_pages(view_.data);
    vm::release_pages(to_);
  }

  const View& view_;
  const Tensor& to_;
  std::vector<StridedDim> dims_;
  const T* from_;
  T* out_;
  std::vector<int64_t> steps_;  // of the dims in the result
  std::optional<size_t> fast_;
  int64_t pending_ = 0;
};

void copy(const View& view, const Tensor& to, int64_t position) {
  int64_t bytes = view.data.dtype().bytes();
  if (bytes == 1) Copy<uint8_t>(view, to, position).run();
  if (bytes == 2) Copy<uint16_t>(view, to, position).run();
  if (bytes == 4) Copy<uint32_t>(view, to, position).run();
  if (bytes == 8) Copy<uint64_t>(view, to, position).run();
}

Tensor copied(const View& view) {
  std::vector<int64_t> shape = sizes_of(view.dims);
  if (view.dims == dense(view.data.shape())) return view.data;
  if (merged(view.dims) == merged(dense(view.data.shape()))) return view.data.reshaped(shape);
  Tensor result = vm::tensor_in_file(shape, view.data.dtype());
  if (result.size() == 0) return result;
  copy(view, result, 0);
  vm::release_pages(view.data);
  vm::release_pages(result);
  return result;
}

// Returns a dense copy with so many zeros before and behind each element's place along an axis.
View padded(const View& view, size_t axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return view;
  std::vector<int64_t> shape = sizes_of(view.dims);
  View part = view;  // of one place in the outer axes
  part.dims.erase(part.dims.begin(), part.dims.begin() + static_cast<ptrdiff_t>(axis));
  int64_t inner = 1, outer = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t d = 0; d < axis; ++d) outer *= shape[d];
  shape[axis] += before + after;
  Tensor result = vm::tensor_in_file(shape, view.data.dtype());
  std::memset(result.raw(), 0, static_cast<size_t>(result.bytes()));
  for (int64_t at = 0; at < outer && part.data.size() > 0; ++at) {
    part.offset = view.offset;
    int64_t rest = at;
    for (size_t d = axis; d-- > 0; rest /= shape[d]) part.offset += rest % shape[d] * view.dims[d].stride;
    copy(part, result, (at * shape[axis] + before) * inner);
  }
  vm::release_pages(view.data);
  vm::release_pages(result);
  return {result, dense(shape)};
}

// Returns the view of a tensor in the layout. Its blocks divide the dims.
View in_layout(const View& view, const Layout& layout) {
  View result{view.data, std::vector<StridedDim>(layout.dims().size(), {1, 1}), view.offset};
  for (size_t axis = 0; axis < layout.axes().size(); ++axis) {
    const std::vector<size_t> parts = layout.parts_of(axis);
    StridedDim left = view.dims[axis];
    for (size_t i = parts.size(); i-- > 0;) {
      const int64_t block = i > 0 ? layout.dims()[parts[i]].block : left.size;
      result.dims[parts[i]] = {block, left.stride};
      left = {left.size / block, left.stride * block};
    }
  }
  return result;
}
// Returns the inverse: the view of a tensor in the layout, in the plain order.
View out_of_layout(const View& view, const Layout& layout) {
  View result{view.data, {}, view.offset};
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < layout.axes().size(); ++axis) {
    shape.push_back(1);
    for (size_t part : layout.parts_of(axis)) {
      result.dims.push_back(view.dims[part]);
      shape.back() *= view.dims[part].size;
    }
  }
  auto dims = reshaped(result, shape);
  return dims ? View{view.data, *dims, view.offset} : View{copied(result), dense(shape)};
}

// Returns the numbers of a tuple or shape of scalars.
std::optional<std::vector<int64_t>> numbers_of(const Expr& list) {
  const Tuple* items = list.as<Tuple>();
  const ShapeExpr* values = list.as<ShapeExpr>();
  return items ? as_ints(items->items) : values ? as_ints(values->values) : std::nullopt;
}

bool is_plain(DType dtype) {
  int64_t bytes = dtype.bytes();
  return dtype.lanes == 1 && !dtype.is_packed() && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

// Replaces bindings that are views of constants by constants, where other bindings than such ones use them.
class LayoutFolder final : public GraphRewriter {
 public:
  LayoutFolder(const FunctionRef& function, const OpTable& ops) : GraphRewriter(ops) {
    wanted_ = used_outside(function, [&](const Binding& binding) {
      auto view = binding.cast ? std::nullopt : view_of(binding.value);
      if (view) views_.emplace(binding.var.get(), *view);
      return view.has_value();
    });
  }

  bool has_views() const { return !views_.empty(); }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    const View* view = find_value(views_, binding.var.get());
    if (!view || !wanted_.contains(binding.var.get())) return std::nullopt;
    auto& made = made_[view->data.raw()];
    for (const auto& [known, expr] : made) {
      if (known.is_same(*view)) return expr;
    }
    Expr result = constant(copied(*view), binding.var.span());
    made.emplace_back(*view, result);
    return result;
  }

 private:
  std::optional<View> view_of(const Expr& value) {
    const Call* call = value.as<Call>();
    std::optional<View> from = call && !call->args.empty() ? operand(call->args[0]) : std::nullopt;
    std::optional<std::vector<int64_t>> shape = constant_shape(value.type());
    if (!from || !shape || !is_plain(from->data.dtype())) return std::nullopt;
    const std::string& op = op_name(value);
    if (op == ops::kPermuteDims) {
      View result{from->data, {}, from->offset};
      for (int64_t axis : read_attrs<AxesAttrs>(call->attrs).permutation(from->dims.size()))
        result.dims.push_back(from->dims.at(static_cast<size_t>(axis)));
      return result;
    }
    if (op == ops::kReshape) {
      auto dims = reshaped(*from, *shape);
      return dims ? View{from->data, *dims, from->offset} : View{copied(*from), dense(*shape)};
    }
    if (op == ops::kLayoutTransform) return transform(*from, *call, value.span());
    if (op == ops::kPad) return pad(*from, *call);
    if (op == ops::kStridedSlice) return slice(*from, *call);
    return std::nullopt;
  }
  std::optional<View> operand(const Expr& arg) const {
    if (const Constant* node = arg.as<Constant>()) return View{node->data, dense(node->data.shape())};
    return copy_value(views_, arg.get());
  }

  static std::optional<View> transform(const View& from, const Call& call, const Span& span) {
    const auto map = read_index_map(read_attrs<LayoutTransformAttrs>(call.attrs).index_map, span);
    const std::vector<int64_t> sizes = sizes_of(from.dims);
    if (!map || (*map)->params.size() != sizes.size()) return std::nullopt;
    if (const auto layout = Layout::of_index_map(**map))
      return layout->is_padded(int_imms(sizes)) ? std::nullopt : std::optional(in_layout(from, *layout));
    const auto layout = Layout::of_inverse_map(**map);
    const bool is_made = layout && as_ints(layout->from_plain(layout->to_plain(int_imms(sizes)))) == sizes;
    return is_made ? std::optional(out_of_layout(from, *layout)) : std::nullopt;
  }
  std::optional<View> pad(View from, const Call& call) {
    const auto attrs = read_attrs<PadAttrs>(call.attrs);
    const bool is_known = call.args.size() == 1 && attrs.pad_width.size() == 2 * from.dims.size() &&
                          std::ranges::all_of(attrs.pad_width, [](int64_t width) { return width >= 0; });
    if (!is_known || attrs.pad_mode != "constant" || attrs.pad_value != 0) return std::nullopt;
    for (size_t axis = 0; axis < from.dims.size(); ++axis) {
      auto wider = with_zeros(from, axis, attrs.pad_width[2 * axis], attrs.pad_width[2 * axis + 1]);
      if (!wider) return std::nullopt;
      from = *wider;
    }
    return from;
  }
  // Zeros are added once for equal operands. Returns nullopt where they are too many for a constant.
  std::optional<View> with_zeros(const View& from, size_t axis, int64_t before, int64_t after) {
    if (before == 0 && after == 0) return from;
    for (const Zeros& known : zeros_) {
      if (known.axis == axis && known.before == before && known.after == after && known.from.is_same(from))
        return known.result;
    }
    std::vector<int64_t> shape = sizes_of(from.dims);
    const auto few = tensor_bytes(shape, from.data.dtype());
    shape[axis] = checked_add(checked_add(shape[axis], before).value_or(-1), after).value_or(-1);
    const auto many = shape[axis] < 0 ? std::nullopt : tensor_bytes(shape, from.data.dtype());
    if (!few || !many || is_much_larger(*many, *few)) return std::nullopt;
    return zeros_.emplace_back(from, axis, before, after, padded(from, axis, before, after)).result;
  }
  static std::optional<View> slice(View from, const Call& call) {
    std::vector<std::vector<int64_t>> lists;  // axes, begins, ends, steps
    for (size_t i = 1; i < call.args.size(); ++i) {
      auto numbers = numbers_of(call.args[i]);
      if (!numbers) return std::nullopt;
      lists.push_back(*numbers);
    }
    if (lists.size() < 3) return std::nullopt;
    for (size_t i = 0; i < lists[0].size(); ++i) {
      const int64_t axis = lists[0][i], begin = lists[1].at(i), end = lists[2].at(i);
      const bool is_first = axis >= 0 && axis < std::ssize(from.dims) && (lists.size() == 3 || lists[3].at(i) == 1);
      if (!is_first || begin < 0 || begin > end || end > from.dims[static_cast<size_t>(axis)].size) return std::nullopt;
      StridedDim& dim = from.dims[static_cast<size_t>(axis)];
      from.offset += begin * dim.stride;
      dim.size = end - begin;
    }
    return from;
  }

  struct Zeros {
    View from;
    size_t axis;
    int64_t before, after;
    View result;
  };
  std::unordered_map<const NodeHeader*, View> views_;
  VarSet wanted_;
  std::map<const void*, std::vector<std::pair<View, Expr>>> made_;
  std::vector<Zeros> zeros_;
};

}  // namespace

FunctionRef fold_layout(const FunctionRef& function, const OpTable& ops) {
  LayoutFolder folder(function, ops);
  return folder.has_views() ? folder.run(function) : function;
}

}  // namespace relaxc
