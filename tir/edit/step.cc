#include "tir/edit/step.h"

#include <algorithm>
#include <span>

#include "ir/text/printer.h"
#include "support/diagnostic.h"

namespace relaxc::scheduling {

namespace {

// What stands before the dot of a storage scope ("shared.dyn", "wmma.accumulator"), and thread axes.
constexpr std::string_view kScopes[] = {"global", "shared", "local", "warp", "wmma", "m16n8k8", "metal", "texture"};
constexpr std::string_view kThreadAxes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z", "threadIdx.x",
                                            "threadIdx.y", "threadIdx.z", "vthread",    "vthread.x",
                                            "vthread.y",   "vthread.z",   "cthread"};

// A name that its parameter knows nothing of is a mistake.
void check_name(const Primitive& primitive, const Param& param, const AttrValue& value) {
  const std::string* name = value.as<std::string>();
  if (!name) return;
  auto require = [&](std::string_view kind, std::string_view base, std::span<const std::string_view> known) {
    if (std::find(known.begin(), known.end(), base) != known.end()) return;
    fail({}, "{}: there is no {} '{}'; there are: {}", primitive.name, kind, *name, fmt::join(known, ", "));
  };
  if (param.name == "storage_scope")
    require("storage scope", std::string_view(*name).substr(0, name->find('.')), kScopes);
  if (param.name == "thread_axis") require("thread axis", *name, kThreadAxes);
}

}  // namespace

Step::Step(Schedule& schedule, const Primitive& primitive)
    : schedule_(schedule), primitive_(primitive), outer_(schedule.step_) {
  schedule.step_ = this;
}

void Step::check() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Param& param = primitive_.params[i];
    check_name(primitive_, param, arguments_[i]);
    bool is_content = param.name == "ann_val" || param.name == "pad_value";  // any number will do
    if (!is_content) check_arguments({arguments_[i]});
  }
}

void Step::check_arguments(const AttrList& arguments) {
  constexpr int64_t kLargestInMap = int64_t{1} << 40;
  auto check = [&](int64_t number, int64_t most) {
    if (number > most || number < -most - 1) refuse({}, fmt::format("{} is too large a number", number));
  };
  for (const AttrValue& argument : arguments) {
    if (const int64_t* number = argument.as<int64_t>()) check(*number, kLargestNumber);
    if (const AttrList* list = argument.as<AttrList>()) check_arguments(*list);
    const Expr* e = argument.as<Expr>();
    if (!e) continue;
    walk(*e, [&](const IntImm& node) { check(node.value, kLargestInMap); });
    walk(*e, [&](const Ref<Binary>& node) {
      if (node->op != BinaryOp::kFloorDiv && node->op != BinaryOp::kFloorMod) return;
      auto divisor = as_int(number(node->b));
      if (divisor && *divisor < 1)
        refuse({}, fmt::format("the map divides by {}, expected a positive number", *divisor));
    });
  }
}

TreeNode* Step::node(const VarRef& var) {
  auto it = schedule_.nodes_.find(var.get());
  if (it == schedule_.nodes_.end())
    fail(var.span(), "{}: '{}' is no block or loop of this schedule", primitive_.name, var->name);
  if (!is_alive(it->second)) {
    fail(var.span(), "{}: {} '{}' is no longer part of the program: an earlier step replaced it", primitive_.name,
         it->second->is_loop() ? "loop" : "block", var->name);
  }
  Tree* tree = it->second->tree;
  if (tree_ && tree_ != tree)
    fail(var.span(), "{}: '{}' is of another tensor program than what is named before it", primitive_.name, var->name);
  tree_ = tree;
  return it->second;
}

TreeNode* Step::block(const BlockRV& block) {
  TreeNode* result = node(block.var);
  if (!result->is_block())
    fail(block.var.span(), "{}: '{}' is a loop, expected a block", primitive_.name, block.var->name);
  return result;
}
TreeNode* Step::loop(const LoopRV& loop) {
  TreeNode* result = node(loop.var);
  if (!result->is_loop())
    fail(loop.var.span(), "{}: '{}' is a block, expected a loop", primitive_.name, loop.var->name);
  return result;
}
TreeNode* Step::place(const Place& place) {
  return std::visit([&](const auto& rv) { return node(rv.var); }, place);
}
std::vector<TreeNode*> Step::loops(const Loops& loops) {
  std::vector<TreeNode*> result;
  for (const LoopRV& rv : loops) result.push_back(loop(rv));
  return result;
}
std::vector<TreeNode*> Step::blocks(const Blocks& blocks) {
  std::vector<TreeNode*> result;
  for (const BlockRV& rv : blocks) result.push_back(block(rv));
  return result;
}

Expr Step::number(const Expr& e) const {
  if (!e.type().is<PrimType>()) fail(e.span(), "{}: expected a number, got {}", primitive_.name, print_expr(e));
  VarMap known;
  walk(e, [&](const Ref<Var>& var) {
    auto it = schedule_.numbers_.find(var.get());
    if (it != schedule_.numbers_.end()) {
      known.emplace(var.get(), int_imm(it->second, dtype_of(var)));
      return;
    }
    // Dims of the program are numbers, too.
    bool is_dim = !tree_ || std::any_of(tree_->params().begin(), tree_->params().end(), [&](const VarRef& param) {
      return same_node(param, var) || mentions(param.type(), var);
    });
    if (!is_dim) fail(e.span(), "{}: '{}' is no number of this schedule", primitive_.name, var->name);
  });
  return known.empty() ? e : simplify(substitute(e, known));
}

int64_t Step::constant(const Expr& e) {
  auto value = as_int(number(e));
  if (!value) fail(e.span(), "{}: {} is not a constant number", primitive_.name, print_expr(e));
  return *value;
}

Buffer Step::buffer(TreeNode* block, const BufferArg& which, AccessKind otherwise) {
  auto among = [&](AccessKind kind, int64_t position) -> Buffer {
    bool reads = kind == AccessKind::kRead;
    const std::vector<BufferRegion>& regions = reads ? block->block->reads : block->block->writes;
    if (position < 0 || position >= static_cast<int64_t>(regions.size()))
      refuse({block}, fmt::format("block '{}' {} {} buffers, there is no number {}", block->block->name,
                                  reads ? "reads" : "writes", regions.size(), position));
    return regions[static_cast<size_t>(position)].buffer;
  };
  const AttrValue& value = which.value;
  if (const int64_t* position = value.as<int64_t>()) return among(otherwise, *position);
  if (const Expr* e = value.as<Expr>(); e && as_int(*e)) return among(otherwise, *as_int(*e));
  if (const std::string* name = value.as<std::string>()) {
    for (const auto* regions : {&block->block->reads, &block->block->writes}) {
      for (const BufferRegion& region : *regions) {
        if (region.buffer->name == *name) return region.buffer;
      }
    }
    refuse({block}, fmt::format("block '{}' does not access a buffer '{}'", block->block->name, *name));
  }
  if (const AttrList* pair = value.as<AttrList>(); pair && pair->size() == 2) {
    const std::string* kind = (*pair)[0].as<std::string>();
    const int64_t* position = (*pair)[1].as<int64_t>();
    if (kind && position && (*kind == "read" || *kind == "write"))
      return among(*kind == "read" ? AccessKind::kRead : AccessKind::kWrite, *position);
  }
  refuse({block}, fmt::format("{} names no buffer; expected a position, a name, or (\"read\" or \"write\", position)",
                              to_string(value)));
}

void Step::refuse(const std::vector<TreeNode*>& at, const std::string& condition) {
  Diagnostic diagnostic;
  diagnostic.message = fmt::format("{}: {}", primitive_.name, condition);
  if (!at.empty()) diagnostic.span = at[0]->span;
  if (schedule_.options_.show_program && !at.empty()) {
    // Marks are addresses of payloads, which exist once the program is built.
    const Tree& tree = *at[0]->tree;
    PrimFuncRef function = tree.function();
    PrintOptions options;
    walk_nodes(function, [&](const NodeRef& node) {
      for (const TreeNode* marked : at) {
        const For* loop = node.as<For>();
        const Block* block = node.as<Block>();
        if (loop && marked->is_loop() && same_node(loop->var, marked->loop->var)) options.marked.push_back(loop);
        if (block && marked->is_block() && block->name == marked->block->name) options.marked.push_back(block);
      }
      return true;
    });
    diagnostic.notes.push_back("the program, the places marked:\n" + print_function("main", function, options));
  }
  throw CompileError({diagnostic});
}

// ---- Results

VarRef Step::new_result(const char* letter, const Type& type) {
  std::vector<std::string>& names = schedule_.result_names_;
  std::string name;
  if (!outer_ && !names.empty()) {
    name = names.front();
    names.erase(names.begin());
  } else {
    name = fmt::format("{}{}", letter, schedule_.num_results_++);
  }
  return make_var(std::move(name), type);
}

std::vector<VarRef> Step::results(const std::vector<TreeNode*>& nodes) {
  std::vector<VarRef> result;
  for (TreeNode* node : nodes) {
    result.push_back(new_result(node->is_loop() ? "l" : "b", object_type()));
    schedule_.nodes_.emplace(result.back().get(), node);
    schedule_.kept_.push_back(result.back());
  }
  record(result);
  return result;
}

Loops Step::loop_results(const std::vector<TreeNode*>& loops) {
  Loops result;
  for (VarRef& var : results(loops)) result.push_back({std::move(var)});
  return result;
}
Blocks Step::block_results(const std::vector<TreeNode*>& blocks) {
  Blocks result;
  for (VarRef& var : results(blocks)) result.push_back({std::move(var)});
  return result;
}
Exprs Step::number_results(const std::vector<int64_t>& numbers, AttrValue decision) {
  std::vector<VarRef> vars;
  for (int64_t number : numbers) {
    vars.push_back(new_result("v", prim_type(kInt64)));
    schedule_.numbers_.emplace(vars.back().get(), number);
    schedule_.kept_.push_back(vars.back());
  }
  decision_ = std::move(decision);
  record(vars);
  return {vars.begin(), vars.end()};
}
LoopRV Step::sampled_loop(TreeNode* loop, AttrValue decision) {
  decision_ = std::move(decision);
  return loop_result(loop);
}

void Step::record(std::vector<VarRef> results) {
  if (outer_) return;
  schedule_.trace_.steps.push_back({&primitive_, std::move(arguments_), std::move(results), std::move(decision_)});
}

}  // namespace relaxc::scheduling
