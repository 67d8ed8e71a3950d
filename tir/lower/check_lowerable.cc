#include <algorithm>
#include <set>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// The builtins that the code generator knows. An address is supported only as the argument of a prefetch.
constexpr OpName kCompiledBuiltins[] = {
    ops::kAddressOf,   ops::kCallLlvmIntrin, ops::kCallLlvmPureIntrin, ops::kGetActiveLaneMask, ops::kPrefetch,
    ops::kReinterpret, ops::kVscale};

// Limits the copies that nested unrolled loops make. LLVM would take minutes for more than that.
void check_copies(const Stmt& s, int64_t copies) {
  constexpr int64_t kMostCopies = 1 << 15;
  if (const For* loop = s.as<For>(); loop && loop->kind == ForKind::kUnrolled) {
    copies *= as_int(loop->extent).value_or(1);
    if (copies > kMostCopies)
      fail(s.span(), "loop '{}' and the unrolled loops around it would make {} copies of the body; the limit is {}",
           loop->var->name, copies, kMostCopies);
  }
  visit_children(s, [&](const NodeRef& child, Slot) {
    if (is_stmt_kind(child.kind())) check_copies(cast_handle<Stmt>(child), copies);
  });
}

// Refuses an annotation whose name is not known, whose value is of the wrong kind or mentions a buffer or an access
// that is not there, or whose place is another, since it would be ignored silently.
class AnnotationCheck {
 public:
  explicit AnnotationCheck(const PrimFuncRef& function) {
    for (const VarRef& param : function->params) buffers_.insert(param->name);
    walk(function->body, [&](const Var& var) { buffers_.insert(var.name); });
  }

  void operator()(const NodeRef& node) const {
    if (const For* loop = node.as<For>()) check(node, loop->annotations, AnnotatedPlace::kLoop);
    if (const Block* block = node.as<Block>()) check(node, block->annotations, AnnotatedPlace::kBlock);
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) check(node, alloc->annotations, AnnotatedPlace::kAllocation);
  }

 private:
  void check(const NodeRef& node, const Attrs& annotations, AnnotatedPlace place) const {
    for (const auto& [name, value] : annotations) {
      const Annotation* row = find_annotation(name);
      if (!row) fail(node.span(), "{}", unknown_annotation(name));
      if (!row->takes(value))
        fail(node.span(), "annotation '{}' takes {}, not {}", name, to_string(row->value), to_string(value));
      if (!*row->reader) continue;
      if (row->place != place && row->place != AnnotatedPlace::kAnywhere)
        fail(node.span(), "annotation '{}' belongs to {}, not to {}", name, to_string(row->place), to_string(place));
      check_mentioned(node, name, value);
    }
  }
  // Prefetches mention buffers by name, annotations of blocks mention their accesses by position.
  void check_mentioned(const NodeRef& node, const std::string& name, const AttrValue& value) const {
    const Block* block = node.as<Block>();
    bool is_position = block && value.as<int64_t>();  // double_buffer_scope
    const AttrList positions = is_position ? AttrList{value} : AttrList{};
    const AttrList* items = is_position ? &positions : value.as<AttrList>();
    if (!items) return;
    size_t accesses = !block                                         ? 0
                      : name == annotation<"explicit_read_region">() ? block->reads.size()
                                                                     : block->writes.size();
    for (const AttrValue& item : *items) {
      const std::string* buffer = item.as<std::string>();
      if (buffer && !buffers_.contains(*buffer))
        fail(node.span(), "annotation '{}' mentions '{}', which is not a buffer of this program", name, *buffer);
      const AttrList* row = item.as<AttrList>();  // [buffer, axis, factor, offset]
      const int64_t* position = (row ? row->at(0) : item).as<int64_t>();
      if (block && position && (*position < 0 || static_cast<size_t>(*position) >= accesses))
        fail(node.span(), "annotation '{}' mentions access {} of a block that has {}", name, *position, accesses);
      if (!block || !row) continue;
      int64_t rank = std::ssize(buffer_type(block->writes[static_cast<size_t>(*position)].buffer).shape);
      if (int64_t axis = *row->at(1).as<int64_t>(); axis < 0 || axis >= rank)
        fail(node.span(), "annotation '{}' mentions axis {} of a buffer of rank {}", name, axis, rank);
    }
  }

  std::set<std::string> buffers_;
};

}  // namespace

void check_annotations(const PrimFuncRef& function) {
  AnnotationCheck check(function);
  walk_nodes(function->body, [&](const NodeRef& node) {
    check(node);
    return true;
  });
}

std::vector<Diagnostic> unread_annotations(const PrimFuncRef& function) {
  Diagnostics result;
  std::set<std::string> found;
  auto look = [&](const NodeRef& node, const std::string& name, const char* what, const std::string& of) {
    const Annotation* row = find_annotation(name);
    if ((row && !row->is_request) || !found.insert(name).second) return;
    const char* meaning = row ? row->doc : "it is not known; relaxc opt --list-annotations shows those that are";
    result.warning(node.span(), "'{}' of {} '{}' has no effect: {}", name, what, of, meaning);
  };
  walk_nodes(function->body, [&](const NodeRef& node) {
    auto look_at = [&](const Attrs& annotations, const char* what, const std::string& of) {
      for (const auto& [name, value] : annotations) {
        if (find_annotation(name)) look(node, name, what, of);  // others are errors
      }
    };
    if (const For* loop = node.as<For>()) look_at(loop->annotations, "loop", loop->var->name);
    if (const Block* block = node.as<Block>()) look_at(block->annotations, "block", block->name);
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) look_at(alloc->annotations, "buffer", alloc->buffer->name);
    if (const AttrStmt* attr = node.as<AttrStmt>()) look(node, attr->key, "T.attr", attr->key);
    return true;
  });
  return result.all();
}

PrimFuncRef check_lowerable(const PrimFuncRef& function) {
  check_copies(function->body, 1);
  Span place = function.span();
  auto check_dtype = [&](DType dtype, const Span& span) {
    if (dtype.is_small_float() || dtype.is_handle())
      fail_unsupported(span ? span : place, "kernels do not compute with {} yet", to_string(dtype));
  };
  auto check_buffer = [&](const Buffer& buffer) {
    const BufferType& type = buffer_type(buffer);
    check_dtype(type.dtype, buffer.span());
    if (type.data) fail_unsupported(buffer.span(), "buffer '{}' over a pointer cannot be compiled yet", buffer->name);
  };
  for (const VarRef& param : function->params) {
    if (param.type().is<BufferType>()) check_buffer(param);
  }
  if (function->result) fail_unsupported(place, "a tensor program that returns a value cannot be compiled yet");
  check_annotations(function);
  walk_nodes(function->body, [&](const NodeRef& node) {
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) {
      check_buffer(alloc->buffer);
      if (alloc->contents)
        fail_unsupported(node.span(), "constant '{}' in a kernel cannot be compiled yet", alloc->buffer->name);
    }
    if (const For* loop = node.as<For>(); loop && binds_thread(loop->kind))
      fail_unsupported(node.span(), "loop '{}' is bound to the thread axis '{}'; CPUs have none", loop->var->name,
                       loop->thread);
    if (!is_expr_kind(node.kind())) return true;
    Expr expr = cast_handle<Expr>(node);
    const Span& span = node.span() ? node.span() : place;
    if (const Call* call = expr.as<Call>()) {
      if (const GlobalVar* callee = call->callee.as<GlobalVar>())
        fail_unsupported(span, "the call of '{}' in a kernel cannot be compiled yet", callee->name);
      const std::string& name = op_name(expr);
      if (find_builtin(name) && std::ranges::count(kCompiledBuiltins, std::string_view(name), &OpName::text) == 0)
        fail_unsupported(span, "{} in a kernel cannot be compiled yet", name);
    }
    const PrimType* type = expr.type().as<PrimType>();
    bool is_nothing = as_call(expr, ops::kAddressOf) || (type && type->dtype.is_void());
    if (type && !is_nothing) check_dtype(type->dtype, span);
    return true;
  });
  return function;
}

}  // namespace relaxc
