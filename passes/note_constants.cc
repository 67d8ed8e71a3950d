// Expects: calls of tensor programs that are not scheduled, equal ones being one (merge_kernels). Guarantees: a block
// of a reduction that reads a matrix, perhaps in blocks, which is constant in all calls of its program names it
// (annotation constant_operand). Built-in rules may copy such an operand into another layout for any number of rows:
// rewrite_weights then does it while compiling.
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/graph_rewriter.h"
#include "tir/analysis/annotations.h"
#include "tir/program.h"

namespace relaxc {

namespace {

// By the name of a program: for each of its tensors whether it is a constant in all calls.
using ConstantTensors = std::map<std::string, std::vector<bool>>;

void add_calls(const Function& graph, const IRModule& module, ConstantTensors& result) {
  for_each_binding(graph.body, [&](const Binding& binding) {
    std::optional<KernelCall> kernel =
        as_call(binding.value, ops::kCallTir) ? as_spread_kernel_call(binding.value, module) : std::nullopt;
    walk(binding.value, [&](const GlobalVar& callee) {
      const bool is_kernel = kernel && kernel->callee.as<GlobalVar>() == &callee;
      auto is_constant = [&](size_t i) { return is_kernel && kernel->tensors[i].is<Constant>(); };
      const size_t count = is_kernel ? kernel->tensors.size() : 0;
      auto [entry, is_first] = result.try_emplace(callee.name, count, true);
      std::vector<bool>& constant = entry->second;
      if (!is_first) constant.resize(std::min(constant.size(), count));
      for (size_t i = 0; i < constant.size(); ++i) constant[i] = constant[i] && is_constant(i);
    });
  });
}

bool is_whole_matrix(const BufferType& type) {
  return type.shape.size() >= 2 &&
         std::ranges::all_of(type.shape, [](const Expr& dim) { return as_int(dim).has_value(); });
}

PrimFuncRef with_notes(const PrimFuncRef& program, const std::vector<bool>& constant) {
  const std::vector<Buffer> params = buffer_params(program);
  std::vector<Buffer> matrices;
  for (size_t i = 0; i < std::min(constant.size(), params.size()); ++i) {
    if (constant[i] && is_whole_matrix(buffer_type(params[i]))) matrices.push_back(params[i]);
  }
  if (matrices.empty()) return program;
  Stmt body = rewrite(program->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    if (!block->init) return std::nullopt;
    for (const Buffer& matrix : matrices) {
      if (!uses_var(block->body, matrix)) continue;
      return edited<Block>(
          block, [&](Block& named) { named.annotations.set(annotation<"constant_operand">(), matrix->name); });
    }
    return std::nullopt;
  });
  return with_body(program, body);
}

}  // namespace

IRModule note_constants(IRModule module, PassContext&) {
  ConstantTensors constant;
  for (const auto& [_, function] : module.functions) {
    if (const Function* graph = function.as<Function>()) add_calls(*graph, module, constant);
  }
  for (auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    const std::vector<bool>* tensors = find_value(constant, name);
    const bool is_open = program && !(*program)->attrs.has(attr_names::kGlobalSymbol) &&
                         !(*program)->attrs.get_bool(attr_names::kIsScheduled, false);
    if (is_open && tensors) function = with_notes(*program, *tensors);
  }
  return module;
}

}  // namespace relaxc
