// Expects: scheduled tensor programs. Guarantees: what a schedule makes of a constant operand alone, by a block of
// meta_schedule.layout_rewrite_preproc (RewriteLayout of TVM's MetaSchedule), is a constant. The block's nest becomes a
// program that runs here, and its result takes the operand's place among the tensors of the call.
#include <algorithm>
#include <map>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/fold_constants.h"
#include "passes/graph_rewriter.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

IRModule remove_dead_code(IRModule module, PassContext& context);

namespace {

struct SplitProgram {
  PrimFuncRef before;  // (operand, rewritten)
  PrimFuncRef after;   // with the rewritten one in the operand's place
};

// Returns the block if the statement has no other one.
std::optional<Ref<Block>> only_block(const Stmt& s) {
  std::vector<Ref<Block>> blocks;
  walk_nodes(s, [&](const NodeRef& node) {
    if (auto block = try_cast<Block>(node)) blocks.push_back(*block);
    return true;
  });
  return blocks.size() == 1 ? std::optional(blocks[0]) : std::nullopt;
}

class Splitter {
 public:
  Splitter(const PrimFuncRef& program, const Block& root) : program_(program), root_(root), parts_(parts_of(root)) {}

  // Returns the program without the part that rewrites the operand, if there is one and nothing else reads that.
  std::optional<SplitProgram> split(size_t tensor) const {
    const VarRef& operand = program_->params[tensor];
    auto reader = std::ranges::find_if(parts_, [&](const Stmt& part) { return uses_var(part, operand); });
    if (reader == parts_.end()) return std::nullopt;
    std::optional<Buffer> result = rewritten_by(*reader, operand);
    if (!result) return std::nullopt;
    Block rest = root_;
    std::erase_if(rest.alloc_buffers, [&](const Buffer& buffer) { return same_node(buffer, *result); });
    std::vector<Stmt> others;
    for (const Stmt& part : parts_) {
      if (&part == &*reader) continue;
      if (uses_var(part, operand) || writes(part, *result)) return std::nullopt;  // its padding, or in place
      others.push_back(part);
    }
    rest.body = seq(std::move(others), root_.body.span());
    std::vector<VarRef> params = program_->params;
    params[tensor] = *result;
    Stmt alone = make(Block{.name = kRootBlock, .body = *reader}, reader->span());
    return SplitProgram{program({operand, *result}, alone), program(params, make(std::move(rest), root_.body.span()))};
  }

 private:
  static std::vector<Stmt> parts_of(const Block& root) {
    const Seq* all = root.body.as<Seq>();
    return all ? all->stmts : std::vector<Stmt>{root.body};
  }
  static bool writes(const Stmt& part, const Buffer& buffer) {
    return stores_to(part, buffer) || any_node(part, [&](const NodeRef& node) {
             const Block* block = node.as<Block>();
             return block && std::ranges::any_of(block->writes, [&](const BufferRegion& region) {
                      return same_node(region.buffer, buffer);
                    });
           });
  }
  std::optional<Buffer> rewritten_by(const Stmt& part, const VarRef& operand) const {
    std::optional<Ref<Block>> block = only_block(part);
    if (!block || (*block)->writes.size() != 1 || (*block)->reads.size() != 1) return std::nullopt;
    const char* name = annotation<"meta_schedule.layout_rewrite_preproc">();
    const Attrs& notes = (*block)->annotations;
    if (!notes.get_bool(name, notes.get_int(name, 0) != 0)) return std::nullopt;
    const Buffer& result = (*block)->writes[0].buffer;
    auto is_it = [&](const Buffer& buffer) { return same_node(buffer, result); };
    const BufferType& type = buffer_type(result);
    bool is_whole = std::ranges::all_of(type.shape, [](const Expr& dim) { return as_int(dim).has_value(); });
    bool is_written_here = std::ranges::any_of(root_.alloc_buffers, is_it) && type.scope == "global" && is_whole;
    bool reads_it = same_node((*block)->reads[0].buffer, operand);
    return is_written_here && reads_it ? std::optional(result) : std::nullopt;
  }
  PrimFuncRef program(std::vector<VarRef> params, Stmt body) const {
    PrimFunc copy = *program_;
    copy.params = std::move(params);
    copy.body = std::move(body);
    copy.attrs = copy.attrs.without(attr_names::kGlobalSymbol);
    return with_fresh_variables(make_prim_func(std::move(copy), program_.span()));
  }

  const PrimFuncRef& program_;
  const Block& root_;
  std::vector<Stmt> parts_;
};

class WeightRewriter final : public GraphRewriter {
 public:
  WeightRewriter(PassContext& context, IRModule& module)
      : GraphRewriter(context.ops), context_(context), module_(module) {}
  bool changed = false;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    if (!as_call(binding.value, ops::kCallTir)) return std::nullopt;
    std::optional<KernelCall> kernel = as_spread_kernel_call(binding.value, module_);
    if (!kernel) return std::nullopt;
    std::optional<PrimFuncRef> program = called_program(kernel->callee, module_);
    if (!program) return std::nullopt;
    bool is_split = false;
    for (size_t i = 0; i < kernel->tensors.size(); ++i) {
      const Block* root = (*program)->body.as<Block>();
      bool is_weight = kernel->tensors[i].is<Constant>() && root && is_root(*root);
      std::optional<SplitProgram> split = is_weight ? Splitter(*program, *root).split(i) : std::nullopt;
      if (!split || !free_vars(split->before).empty()) continue;
      const BufferType& type = buffer_type(split->before->params[1]);
      kernel->tensors[i] = computed(split->before, kernel->tensors[i], tensor_type(type.shape, type.dtype), context_);
      program = split->after;
      is_split = true;
    }
    if (!is_split) return std::nullopt;
    changed = true;
    return call_of(*program, kernel->name(), with_tensors(binding.value, kernel->tensors));
  }

 private:
  // Returns the call of another program with the same params.
  Expr call_of(const PrimFuncRef& program, const std::string& name, const Expr& kernel_call) {
    Call copy = *kernel_call.as<Call>();
    copy.args[0] = add_program(module_, name, program);
    return make(std::move(copy), kernel_call.type(), kernel_call.span());
  }

  PassContext& context_;
  IRModule& module_;
};

}  // namespace

IRModule rewrite_weights(IRModule module, PassContext& context) {
  const char* name = annotation<"meta_schedule.layout_rewrite_preproc">();
  bool is_asked = std::ranges::any_of(module.functions, [&](const auto& entry) {
    auto program = try_cast<PrimFunc>(entry.second);
    return program && any_node((*program)->body, [&](const NodeRef& node) {
             return node.is<Block>() && node.as<Block>()->annotations.has(name);
           });
  });
  if (!is_asked || !context.evaluate) return module;
  bool changed = false;
  module = map_functions(std::move(module), [&](const FunctionRef& function, IRModule& functions) {
    WeightRewriter rewriter(context, functions);
    FunctionRef result = rewriter.run(function);
    changed = changed || rewriter.changed;
    return result;
  });
  return changed ? remove_dead_code(std::move(module), context) : module;
}

}  // namespace relaxc
