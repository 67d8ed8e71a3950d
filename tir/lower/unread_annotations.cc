// What somebody wrote in a module and nothing reads: a warning for each name. No annotation is ignored in silence.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/attr_names.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/lower.h"
#include "tir/tile_forms.h"

namespace relaxc {

namespace {

// Returns whether code here sets or reads the attribute of a tensor program.
bool is_of_programs(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      attr_names::kGlobalSymbol,  attr_names::kIsScheduled, attr_names::kScheduledPart, attr_names::kNoAlias,
      attr_names::kOutputBuffers, attr_names::kNumDims,     attr_names::kTensorIntrin,  attr_names::kPrimitive,
      attr_names::kEntryName,     attr_names::kWork,        attr_names::kRule};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

// Does the same for a graph function. Codegen is an error where code is generated.
bool is_of_graphs(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      attr_names::kGlobalSymbol, attr_names::kEntryName,     attr_names::kForcePure,    attr_names::kOtherwise,
      attr_names::kPrimitive,    attr_names::kInputNames,    attr_names::kOutputNames,  attr_names::kCodegen,
      attr_names::kArenaBytes,   attr_names::kScheduledPart, attr_names::kRequireGrads, attr_names::kLowerBound,
      attr_names::kUpperBound,   attr_names::kCaches,        attr_names::kUpdatedInputs};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

// Returns where an annotation that something reads belongs, if nothing reads it at this node; else "".
std::string place_of(const Annotation& row, const NodeRef& node) {
  bool is_anywhere = row.place == AnnotatedPlace::kAnywhere;
  if (node.is<AllocBuffer>()) return is_anywhere ? "a loop or a block" : "";  // other places are errors
  return node.is<AttrStmt>() && !is_anywhere ? std::string(to_string(row.place)) : "";
}

class UnreadNames {
 public:
  void add(const PrimFuncRef& program) {
    for (const auto& [name, value] : program->attrs) {
      if (!is_of_programs(name))
        look(program, name, "function", program->attrs.get_string(attr_names::kGlobalSymbol, ""));
    }
    const bool has_threads = any_node(program->body, [](const NodeRef& node) {
      const For* loop = node.as<For>();
      const AttrStmt* attr = node.as<AttrStmt>();
      return (loop && binds_thread(loop->kind)) || (attr && attr->key == "thread_extent");
    });
    walk_nodes(program->body, [&](const NodeRef& node) {
      look_at_annotations(node);
      if (const AllocBuffer* made = node.as<AllocBuffer>()) look_at_scope(made->buffer, node, has_threads);
      if (const Block* block = node.as<Block>()) {
        for (const Buffer& buffer : block->alloc_buffers) look_at_scope(buffer, node, has_threads);
      }
      return true;
    });
  }

  void add(const std::string& name, const FunctionRef& graph) {
    walk(graph, [&](const FunctionRef& function) {
      for (const auto& [key, value] : function->attrs) {
        if (!is_of_graphs(key)) look(function, key, "function", name);
      }
    });
  }

  // Nothing reads attributes of a module but its own.
  void add_module(const Attrs& attrs) {
    for (const auto& [key, value] : attrs) {
      if (key != attr_names::kRefused) look({}, key, "the module", "no pass reads attributes of a module");
    }
  }

  std::vector<Diagnostic> all() const { return result_.all(); }

 private:
  void look(const Span& span, const std::string& key, const std::string& of, const std::string& meaning) {
    if (found_.insert(key).second) result_.warning(span, "'{}' of {} has no effect here: {}", key, of, meaning);
  }
  void look(const NodeRef& node, const std::string& name, const char* what, const std::string& of) {
    const Annotation* row = find_annotation(name);
    std::string elsewhere = row && *row->reader ? place_of(*row, node) : "";
    if (row && !row->is_unused && elsewhere.empty()) return;
    look(node.span(), name, fmt::format("{} '{}'", what, of),
         !elsewhere.empty() ? "it belongs to " + elsewhere
         : row              ? row->doc
                            : "it is not known; relaxc opt --list-annotations shows those that are");
  }
  void look_at_annotations(const NodeRef& node) {
    auto look_at = [&](const Attrs& annotations, const char* what, const std::string& of) {
      for (const auto& [name, value] : annotations) {
        if (find_annotation(name) || !is_misspelt(name)) look(node, name, what, of);
      }
    };
    if (const For* loop = node.as<For>()) look_at(loop->annotations, "loop", loop->var->name);
    if (const Block* block = node.as<Block>()) look_at(block->annotations, "block", block->name);
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) look_at(alloc->annotations, "buffer", alloc->buffer->name);
    if (const AttrStmt* attr = node.as<AttrStmt>()) look(node, attr->key, "T.attr", attr->key);
  }
  // Memory that threads of a GPU share, or that they keep for themselves, has a meaning where there are threads, which
  // run as loops. Scopes of accelerators stand below the known ones: "global.mxu".
  void look_at_scope(const Buffer& buffer, const NodeRef& node, bool has_threads) {
    const std::string& scope = buffer_type(buffer).scope;
    const std::string base = scope.substr(0, scope.find('.'));
    if (base == "global" || base == "local" || scope.empty() || scope == kTileScope) return;
    const bool is_of_threads = base == "shared" || base == "warp";
    if (is_of_threads && has_threads) return;
    look(buffer.span() ? buffer.span() : node.span(), scope, fmt::format("buffer '{}'", buffer->name),
         is_of_threads ? "it is memory of a GPU's threads, and this program has none; the buffer is plain memory"
                       : "the storage scopes are global, local, shared, warp, and those of an accelerator with a dot "
                         "behind one of these; the buffer is plain memory");
  }

  Diagnostics result_;
  std::set<std::string> found_;
};

}  // namespace

std::vector<Diagnostic> unread_annotations(const std::vector<PrimFuncRef>& programs) {
  UnreadNames names;
  for (const PrimFuncRef& program : programs) names.add(program);
  return names.all();
}

std::vector<Diagnostic> unread_annotations(const IRModule& module) {
  UnreadNames names;
  names.add_module(module.attrs);
  for (const auto& [name, function] : module.functions) {
    if (auto graph = try_cast<Function>(function)) names.add(name, *graph);
    if (auto program = try_cast<PrimFunc>(function)) names.add(*program);
  }
  return names.all();
}

}  // namespace relaxc
