#include "tir/analysis/reductions.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/joined.h"

namespace relaxc {

static std::string text_of_store(const BufferStore& store) {
  return fmt::format("{}[{}]", store.buffer->name, joined(store.indices, print_plain));
}

// A block whose T.init stores to an element that one of the spatial axes does not choose.
static void add_restart(const Ref<Block>& block, Diagnostics& result) {
  if (!block->init) return;
  std::optional<Ref<BufferStore>> started;
  walk(*block->init, [&](const Ref<BufferStore>& store) { started = store; });
  if (!started) return;
  for (const IterVar& axis : block->iter_vars) {
    const bool is_chosen =
        std::ranges::any_of((*started)->indices, [&](const Expr& index) { return uses_var(index, axis.var); });
    const bool is_single = as_int(axis.domain.extent) == 1;
    const bool is_limited = block->predicate.has_value();  // to one iteration, perhaps
    if (axis.kind != IterKind::kSpatial || is_chosen || is_single || is_limited) continue;
    result.error(block.span(),
                 "block '{0}' starts {1} again in each iteration of axis '{2}', which is spatial and does not choose "
                 "the element, so that one of its values remains; declare '{2}' a reduce axis: 'R' in "
                 "T.axis.remap, or T.axis.reduce",
                 block->name, text_of_store(**started), axis.var->name);
  }
}

// Returns whether the value loads the element that it is stored to, unless a condition may leave the load out.
static bool reads_itself(const BufferStore& store) {
  bool found = false;
  walk_nodes(store.value, [&](const NodeRef& node) {
    const Call* call = node.as<Call>();
    const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
    if (node.is<Select>() || (op && op->name == "tir.if_then_else")) return false;
    const BufferLoad* load = node.as<BufferLoad>();
    found |= load && same_node(load->buffer, store.buffer) &&
             std::ranges::equal(load->indices, store.indices,
                                [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
    return true;
  });
  return found;
}

// Stores to buffers of which nothing else in the program is a store.
static void add_unwritten(const PrimFuncRef& program, Results results, Diagnostics& result) {
  std::map<const NodeHeader*, std::vector<Ref<BufferStore>>> stores;
  std::set<const NodeHeader*> hidden;  // that somebody else may write
  if (results == Results::kAllocated) {
    for (const Buffer& param : buffer_params(program)) hidden.insert(param.get());
  }
  walk(
      program->body, [&](const Ref<BufferStore>& store) { stores[store->buffer.get()].push_back(store); },
      [&](const Ref<Block>& block) {
        for (const MatchBuffer& window : block->match_buffers) hidden.insert(window.source.buffer.get());
        for (const MatchBuffer& window : block->match_buffers) hidden.insert(window.buffer.get());
      },
      [&](const Call& call) {
        for (const Expr& arg : call.args) {
          walk(arg, [&](const BufferLoad& load) { hidden.insert(load.buffer.get()); });
        }
      });
  for (const auto& [buffer, list] : stores) {
    if (list.size() != 1 || hidden.contains(buffer) || !reads_itself(*list[0])) continue;
    result.warning(list[0].span(),
                   "{0} is read before the program stores anything to '{1}', so that its first value is not known; "
                   "begin the block with T.init(): {0} = ...",
                   text_of_store(*list[0]), list[0]->buffer->name);
  }
}

std::vector<Diagnostic> wrong_reductions(const PrimFuncRef& program, Results results) {
  Diagnostics found;
  walk(program->body, [&](const Ref<Block>& block) { add_restart(block, found); });
  add_unwritten(program, results, found);
  return found.all();
}

}  // namespace relaxc
