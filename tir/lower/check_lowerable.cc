#include <algorithm>
#include <set>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// The builtins that the code generator knows.
constexpr OpName kCompiledBuiltins[] = {ops::kAddByteOffset,      ops::kAddressOf,  ops::kBufferData,
                                        ops::kCallCPacked,        ops::kCallExtern, ops::kCallLlvmIntrin,
                                        ops::kCallLlvmPureIntrin, ops::kCallPacked, ops::kCallPureExtern,
                                        ops::kGetActiveLaneMask,  ops::kIsNullPtr,  ops::kPrefetch,
                                        ops::kReinterpret,        ops::kShuffle,    ops::kStackMakeArray,
                                        ops::kStackMakeShape,     ops::kVscale};

// Families of builtins that have no meaning here, by a part of their names, and why.
constexpr std::pair<std::string_view, const char*> kForeignBuiltins[] = {
    {"ptx_", "is an instruction of NVIDIA's GPUs; give the program as it is before it is tensorized"},
    {"mma_", "is an instruction of NVIDIA's GPUs; give the program as it is before it is tensorized"},
    {"_sync", "is for threads of a GPU, which a CPU runs as loops; give the program as it is before ThreadSync"},
    {"fragment", "is an instruction of NVIDIA's GPUs; give the program as it is before it is tensorized"},
    {"barrier", "is for threads of a GPU, which a CPU runs as loops; give the program as it is before it is bound"},
    {"warp", "is for threads of a GPU, which a CPU runs as loops; give the program as it is before it is bound"},
    {"comm_reducer", "combines values of the threads of a GPU; give the program as blocks, before it is lowered"},
    {"tvm_thread",
     "is for threads of a GPU, which a CPU runs as loops; give the program as blocks, before it is lowered"},
    {"thread_return",
     "is for threads of a GPU, which a CPU runs as loops; give the program as it is before it is bound"},
    {"simdgroup", "is an instruction of Apple's GPUs; give the program as it is before it is tensorized"},
    {"texture2d", "is an instruction of GPUs; give the program as it is before its buffers are textures"},
    {"spirv", "is an instruction of GPUs; give the program as it is before it is tensorized"},
    {"dma_", "is for the DMA engine of an accelerator; give the program as it is before it is tensorized"},
    {"lookup_param", "names a param of TVM's AOT executor; make it a buffer param of the program"},
    {"anylist",
     "belongs to TVM's own virtual machine; give the module as it is before VMShapeLower and code generation"},
    {"tvm_struct", "belongs to TVM's calling convention; give the module as it is before MakePackedAPI"},
    {"tvm_stack_alloca", "belongs to TVM's calling convention; give the module as it is before LowerTVMBuiltin"},
    {"_lowered", "belongs to TVM's calling convention; give the module as it is before LowerTVMBuiltin"},
    {"trace_packed", "belongs to TVM's calling convention; T.call_packed is supported"},
    {"throw_last_error", "belongs to TVM's calling convention; give the module as it is before MakePackedAPI"},
};
[[noreturn]] void refuse(const std::string& name, const Span& span) {
  for (const auto& [part, why] : kForeignBuiltins) {
    if (name.find(part) != std::string::npos) fail_unsupported(span, "T.{} {}", name.substr(4), why);
  }
  fail_unsupported(span, "{} in a kernel cannot be compiled yet", name);
}

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

// Refuses an annotation whose name is nearly one that is known, whose value is of the wrong kind or mentions a buffer
// or an access that is not there, or whose place is another, since it would be ignored silently.
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
      if (!row && is_misspelt(name)) fail(node.span(), "{}", unknown_annotation(name));
      if (!row) continue;  // TVM keeps any; unread_annotations() says that it has no effect
      if (!row->takes(value))
        fail(node.span(), "annotation '{}' takes {}, not {}", name, to_string(row->value), to_string(value));
      if (!*row->reader) continue;
      if (row->place != place && row->place != AnnotatedPlace::kAnywhere)
        fail(node.span(), "annotation '{}' belongs to {}, not to {}", name, to_string(row->place), to_string(place));
      if (row->value != AnnotationValue::kLayouts) check_mentioned(node, name, value);
    }
  }
  // Prefetches mention buffers by name, annotations of blocks mention their accesses by position.
  void check_mentioned(const NodeRef& node, const std::string& name, const AttrValue& value) const {
    const Block* block = node.as<Block>();
    bool is_position = block && name == annotation<"double_buffer_scope">();
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

PrimFuncRef check_lowerable(const PrimFuncRef& function) {
  check_copies(function->body, 1);
  Span place = function.span();
  auto check_buffer = [&](const Buffer& buffer) {
    const BufferType& type = buffer_type(buffer);
    if (type.dtype.is_string()) fail_unsupported(buffer.span() ? buffer.span() : place, "kernels do not take strings");
    if (type.dtype.lanes > 1 && type.dtype.element().is_packed())
      fail_unsupported(buffer.span() ? buffer.span() : place, "a buffer of {}; write more elements of {}",
                       to_string(type.dtype), to_string(type.dtype.element()));
    if (type.dtype.is_handle()) fail_unsupported(buffer.span(), "a buffer of pointers cannot be compiled yet");
  };
  for (const VarRef& param : function->params) {
    if (param.type().is<BufferType>()) {
      check_buffer(param);
    } else if (dtype_of(param).is_handle()) {
      fail_unsupported(
          param.span(),
          "param '{}' is a pointer of which nothing says what it points to; write `{} = T.match_buffer({}, "
          "shape, dtype)` or `T.decl_buffer(shape, dtype, data={})`",
          param->name, param->name, param->name, param->name);
    }
  }
  check_annotations(function);
  walk_nodes(function->body, [&](const NodeRef& node) {
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) check_buffer(alloc->buffer);
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
      const BufferLoad* element = name == ops::kAddressOf ? call->args[0].as<BufferLoad>() : nullptr;
      if (element && buffer_type(element->buffer).dtype.is_packed())
        fail_unsupported(span, "a pointer to an element of '{}', which shares its byte", element->buffer->name);
      bool is_known = name == kBufferElemOffset;  // lower_blocks knows it
      if (!is_known && find_builtin(name) &&
          std::ranges::count(kCompiledBuiltins, std::string_view(name), &OpName::text) == 0)
        refuse(name, span);
    }
    return true;
  });
  return function;
}

}  // namespace relaxc
