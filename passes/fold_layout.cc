#include <algorithm>
#include <cstring>
#include <map>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

struct StridedDim {
  int64_t size, stride;  // stride in elements
  friend bool operator==(const StridedDim&, const StridedDim&) = default;
};

// The elements of a constant in another order: element i of the view is data[sum of i[d] * dims[d].stride].
struct View {
  Tensor data;
  std::vector<StridedDim> dims;
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

// Copies views of elements of type T, densely. The two innermost dims, and the dim that the source has innermost, are
// walked in tiles that both sides find in the cache.
template <class T>
class Copy {
 public:
  Copy(const View& view, const Tensor& to)
      : view_(view),
        to_(to),
        dims_(merged(view.dims)),
        from_(static_cast<const T*>(view.data.raw())),
        out_(static_cast<T*>(to.raw())) {
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

Tensor copied(const View& view) {
  std::vector<int64_t> shape = sizes_of(view.dims);
  if (view.dims == dense(view.data.shape())) return view.data;
  if (merged(view.dims) == merged(dense(view.data.shape()))) return view.data.reshaped(shape);
  Tensor result = vm::tensor_in_file(shape, view.data.dtype());
  if (result.size() == 0) return result;
  int64_t bytes = view.data.dtype().bytes();
  if (bytes == 1) Copy<uint8_t>(view, result).run();
  if (bytes == 2) Copy<uint16_t>(view, result).run();
  if (bytes == 4) Copy<uint32_t>(view, result).run();
  if (bytes == 8) Copy<uint64_t>(view, result).run();
  vm::release_pages(view.data);
  vm::release_pages(result);
  return result;
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
      if (known.dims == view->dims && known.data.dtype() == view->data.dtype()) return expr;
    }
    Expr result = constant(copied(*view), binding.var.span());
    made.emplace_back(*view, result);
    return result;
  }

 private:
  std::optional<View> view_of(const Expr& value) const {
    const Call* reshape = as_call(value, ops::kReshape);
    const Call* call = reshape ? reshape : as_call(value, ops::kPermuteDims);
    std::optional<View> from = call ? operand(call->args[0]) : std::nullopt;
    std::optional<std::vector<int64_t>> shape = constant_shape(value.type());
    if (!from || !shape || !is_plain(from->data.dtype())) return std::nullopt;
    if (!reshape) {
      View result{from->data, {}};
      for (int64_t axis : read_attrs<AxesAttrs>(call->attrs).permutation(from->dims.size()))
        result.dims.push_back(from->dims.at(static_cast<size_t>(axis)));
      return result;
    }
    if (auto dims = reshaped(*from, *shape)) return View{from->data, *dims};
    return View{copied(*from), dense(*shape)};
  }
  std::optional<View> operand(const Expr& arg) const {
    if (const Constant* node = arg.as<Constant>()) return View{node->data, dense(node->data.shape())};
    return copy_value(views_, arg.get());
  }

  std::unordered_map<const NodeHeader*, View> views_;
  VarSet wanted_;
  std::map<const void*, std::vector<std::pair<View, Expr>>> made_;
};

}  // namespace

FunctionRef fold_layout(const FunctionRef& function, const OpTable& ops) {
  LayoutFolder folder(function, ops);
  return folder.has_views() ? folder.run(function) : function;
}

}  // namespace relaxc
