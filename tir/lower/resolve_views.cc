// A view of all of a buffer, with the same dtype, is another way to count its elements: A_1[i] is A[i // 4, i % 4].
// With one name for each memory schedules and lowering steps know what a program accesses. Views of other kinds stay.
#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

bool is_dense(const BufferType& type) {
  return type.strides.empty() && (!type.elem_offset || is_int(*type.elem_offset, 0)) && type.axis_separators.empty();
}

class ViewResolver {
 public:
  explicit ViewResolver(const PrimFuncRef& function) : function_(function) {
    walk(function->body, [&](const AllocBuffer& alloc) {
      const BufferType& type = buffer_type(alloc.buffer);
      const Call* pointer = type.data ? as_call(*type.data, ops::kBufferData) : nullptr;
      if (!pointer) return;
      Buffer source = cast<Var>(pointer->args[0]);
      source = copy_value(sources_, source.get()).value_or(source);
      const BufferType& held = buffer_type(source);
      bool fits = is_dense(type) && is_dense(held) && !held.data && held.dtype == type.dtype;
      if (fits) sources_.emplace(alloc.buffer.get(), source);
    });
    if (!sources_.empty()) drop_unsuitable();
  }

  PrimFuncRef run() {
    if (sources_.empty()) return function_;
    Stmt body = map_elements(function_->body, [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      const Buffer* source = find_value(sources_, buffer.get());
      return source ? std::optional(Element{*source, moved(buffer, *source, indices)}) : std::nullopt;
    });
    body = rewrite(body, [&](const Ref<AllocBuffer>& alloc) -> std::optional<Stmt> {
      return sources_.contains(alloc->buffer.get()) ? std::optional(no_op()) : std::nullopt;
    });
    body = rewrite(
        body,
        [&](const Ref<Call>& call) -> std::optional<Expr> {
          const Buffer* source = as_call(call, ops::kBufferData) ? find_value(sources_, call->args[0].get()) : nullptr;
          return source ? std::optional(buffer_data(*source, call.span())) : std::nullopt;
        },
        [&](const Ref<Block>& block) -> std::optional<Stmt> { return with_regions(block); });
    return with_body(function_, body);
  }

 private:
  // Keeps the views that calls or windows use, or vectors of which would be vectors of several dims.
  void drop_unsuitable() {
    VarSet kept;
    auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      const Buffer* source = find_value(sources_, buffer.get());
      bool is_vector = !indices.empty() && dtype_of(indices.back()).lanes > 1;
      if (source && is_vector && buffer_type(*source).shape.size() != 1) kept.insert(buffer.get());
    };
    walk(
        function_->body, [&](const BufferLoad& load) { access(load.buffer, load.indices); },
        [&](const BufferStore& store) { access(store.buffer, store.indices); },
        [&](const Ref<Call>& call) {
          if (as_call(call, ops::kBufferData)) return;
          for (const Expr& arg : call->args) kept.insert(arg.get());
        },
        [&](const Block& block) {
          for (const MatchBuffer& window : block.match_buffers) kept.insert(window.source.buffer.get());
        });
    std::erase_if(sources_, [&](const auto& entry) { return kept.contains(entry.first); });
    // A view of a view that stays needs it.
    std::erase_if(sources_, [&](const auto& entry) { return buffer_type(entry.second).data.has_value(); });
  }

  static std::vector<Expr> moved(const Buffer& view, const Buffer& source, const std::vector<Expr>& indices) {
    const std::vector<Expr>&from = buffer_type(view).shape, &to = buffer_type(source).shape;
    auto same = [](const Expr& a, const Expr& b) { return structural_equal(a, b); };
    if (std::ranges::equal(from, to, same)) return indices;
    int lanes = indices.empty() ? 1 : dtype_of(indices.back()).lanes;
    auto wide = [&](const Expr& e) {
      Expr result = cast_to(e, kInt64.with_lanes(dtype_of(e).lanes));
      return dtype_of(e).lanes == lanes ? result : broadcast(result, lanes);
    };
    Expr position = wide(int_imm(0));
    for (size_t d = 0; d < indices.size(); ++d)
      position = d == 0 ? wide(indices[d]) : position * wide(from[d]) + wide(indices[d]);
    if (to.size() == 1) return {simplify(position)};
    std::vector<Expr> result;
    Expr step = int_imm(1);
    for (size_t d = to.size(); d-- > 0;) {
      Expr dim = cast_to(to[d], kInt64), index = floor_div(position, step);
      result.insert(result.begin(), simplify(d == 0 ? index : floor_mod(index, dim)));
      step = step * dim;
    }
    return result;
  }

  // A block that accesses the view accesses some part of the source.
  std::optional<Stmt> with_regions(const Ref<Block>& block) const {
    Block copy = *block;
    bool changes = false;
    for (std::vector<BufferRegion>* list : {&copy.reads, &copy.writes}) {
      for (BufferRegion& region : *list) {
        const Buffer* source = find_value(sources_, region.buffer.get());
        if (!source) continue;
        region = {*source, map_each(buffer_type(*source).shape, whole_range)};
        changes = true;
      }
    }
    return changes ? std::optional<Stmt>(make(std::move(copy), block.span())) : std::nullopt;
  }

  const PrimFuncRef& function_;
  std::unordered_map<const NodeHeader*, Buffer> sources_;  // of views
};

}  // namespace

// Replaces views of whole buffers by these, where the elements have the same dtype.
PrimFuncRef resolve_views(const PrimFuncRef& function) { return ViewResolver(function).run(); }

}  // namespace relaxc
