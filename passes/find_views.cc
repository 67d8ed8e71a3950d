// Expects: call_tirs (legalize). Guarantees: a program that copies neighbouring elements without changing their order,
// such as a slice of the first dim that is not 1, is a view of its operand; one that puts operands one after another in
// memory, such as a concatenation along that dim, is a join of tensors that kernels write where it has them.
//
//   a = R.call_tir(conv, (x,))          a = R.call_tir(conv, (x,))
//   b = R.call_tir(pool, (x,))          b = R.call_tir(pool, (x,))
//   c = R.call_tir(concat, (a, b))  ->  c = R.memory.join((a, b), R.shape([1, 96, 28, 28]))
//   d = R.call_tir(slice, (c,))         d = R.memory.view(c, R.shape([1, 48, 28, 28]), "float32", offset)
//
// place_parts gives joined tensors their memory. Bytes decide between a join and fusion, which reads the operands of a
// concatenation where its result would be read: a join needs no copy of an operand that a kernel stores anyway, one of
// an operand that has another place already or is visible outside of the block (a copy_tensor is added), and it stores
// what fusion would compute on the fly. So it is made if nothing of that is lost, or if the result is stored anyway. A
// slice of what fusion would compute on the fly stays a program as well. Parts begin at multiples of vm::kAlignment, as
// kernels expect of tensors. Bodies of loops stay as they are, for fuse_loops.
#include <algorithm>

#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/kernel_block.h"
#include "passes/parts.h"
#include "support/lists.h"
#include "tir/analysis/moves.h"
#include "vm/memory.h"

namespace relaxc {

namespace {

// A copy of neighbouring elements in the terms of the caller.
struct Move {
  Expr tensor;
  Expr offset;  // in bytes
  Type type;    // of the result
  bool is_whole;
};

class ViewFinder {
 public:
  ViewFinder(IRModule& module, const PassContext& context, const VarSet& entry_dims,
             const std::vector<Binding>& bindings, const VarSet& used_outside)
      : module_(module),
        context_(context),
        entry_dims_(entry_dims),
        bindings_(bindings),
        block_(bindings, module, used_outside, true) {
    for (size_t i = 0; i < bindings.size(); ++i) {
      number_of_.emplace(bindings[i].var.get(), i);
      for (const VarRef& var : free_vars(bindings[i].value)) users_[var.get()].push_back(i);
    }
  }

  std::vector<Binding> run() {
    std::vector<std::vector<Binding>> result(bindings_.size());
    for (size_t i = bindings_.size(); i-- > 0;) {
      result[i] = {bindings_[i]};
      const size_t* kernel = block_.number_of(bindings_[i].var);
      const std::vector<Move> moves = kernel ? moves_of(block_.kernels()[*kernel]) : std::vector<Move>();
      if (moves.size() == 1) {
        if (is_view(bindings_[i].var, moves[0]))
          result[i][0].value = memory_view(moves[0].tensor, moves[0].type, moves[0].offset, span_of(bindings_[i]));
      } else if (std::ranges::all_of(moves, &Move::is_whole) && !moves.empty()) {
        add_join(bindings_[i], moves, result[i]);
      }
    }
    std::vector<Binding> all;
    for (std::vector<Binding>& some : result) std::ranges::move(some, std::back_inserter(all));
    return all;
  }

 private:
  // Returns what the kernel consists of, or nothing where it does more, or is the user's.
  std::vector<Move> moves_of(const BlockKernel& kernel) const {
    if (kernel.pattern > OpPattern::kInjective || kernel_of(kernel.call.name(), context_) ||
        name_in_rules(kernel.call.name(), kernel.program, context_))
      return {};
    const auto runs = moved_runs(kernel.program);
    const KernelMatch match = match_kernel(kernel.call, kernel.program);
    if (!runs || !match.contradictions.empty()) return {};
    const Type& type = kernel.binding.var.type();
    if (!is_known_at_entry(type)) return {};
    std::vector<Move> result;
    Expr end = int_imm(0);  // in the result
    for (const MovedRun& run : *runs) {
      auto operand = std::ranges::find_if(match.operands, [&](const KernelOperand& each) {
        return !each.is_output && same_node(each.param, run.from);
      });
      if (operand == match.operands.end()) return {};
      const Expr& tensor = kernel.call.tensors[operand->number];
      if (!is_known_at_entry(tensor.type())) return {};
      auto bytes = [&](const Expr& elements) {
        return simplify(substitute(elements, match.dims) * tensor_dtype(type)->bytes());
      };
      const Expr offset = bytes(run.first), size = bytes(run.count);
      if (!is_aligned(offset) || !is_aligned(end)) return {};
      const bool is_whole = is_int(offset, 0) && structural_equal(size, byte_count(tensor.type()));
      result.push_back({tensor, offset, type, is_whole});
      end = simplify(end + size);
    }
    return result;
  }
  bool is_known_at_entry(const NodeRef& type) const {
    return std::ranges::all_of(free_vars(type), [&](const VarRef& dim) { return entry_dims_.contains(dim.get()); });
  }
  bool is_aligned(const Expr& offset) const {
    return is_known_at_entry(offset) && Analyzer().known_divisor(offset) % vm::kAlignment == 0;
  }

  // Returns whether the tensor is in memory in any case: fusion cannot compute it where it is used.
  bool is_stored_anyway(const Expr& tensor) const {
    const size_t* number = block_.number_of(tensor);
    if (!number) return true;
    const BlockKernel& kernel = block_.kernels()[*number];
    const OpPattern least = kernel.pattern == OpPattern::kInjective ? OpPattern::kReduction : OpPattern::kAnchor;
    auto never_takes = [&](size_t user) {
      return user == KernelBlock::kOther || block_.kernels()[user].pattern >= least;
    };
    return kernel.pattern >= OpPattern::kReduction || block_.is_used_outside(tensor) ||
           std::ranges::any_of(block_.users_of(tensor), never_takes) || block_.finishes_heavy(kernel);
  }
  // Returns whether only kernels of the block read the tensor, themselves or under another shape.
  bool only_kernels_read(const Expr& tensor) const {
    if (block_.is_used_outside(tensor)) return false;
    const std::vector<size_t>* users = find_value(users_, tensor.get());
    return !users || std::ranges::all_of(*users, [&](size_t user) {
      const Binding& binding = bindings_[user];
      if (binding.cast) return false;
      if (as_call(binding.value, ops::kReshape)) return only_kernels_read(binding.var);
      const std::optional<KernelCall> kernel = as_kernel_call(binding.value, module_);
      return kernel && !kernel->has_destinations;
    });
  }

  bool is_view(const VarRef& var, const Move& move) const {
    return !places_.of(var) && only_kernels_read(var) && is_stored_anyway(move.tensor);
  }

  // Returns the result of a kernel in whose memory the tensor lies, if another place can be given to that.
  std::optional<VarRef> owner_of(const Expr& tensor) const {
    const size_t* number = find_value(number_of_, tensor.get());
    if (!number || !only_kernels_read(tensor)) return std::nullopt;
    const Binding& binding = bindings_[*number];
    if (const Call* reshape = binding.cast ? nullptr : as_call(binding.value, ops::kReshape))
      return owner_of(reshape->args[0]);
    return block_.number_of(tensor) ? std::optional(binding.var) : std::nullopt;
  }

  // Replaces the binding where a join is better than fusion and than a program of its own.
  void add_join(const Binding& binding, const std::vector<Move>& moves, std::vector<Binding>& result) {
    std::vector<Expr> operands = map_each(moves, &Move::tensor);
    const MemoryPlaces::Plan plan =
        places_.plan(binding.var, operands, map_each(operands, [&](const Expr& e) { return owner_of(e); }));
    std::vector<bool> is_saved = map_each(operands, [&](const Expr& operand) { return is_stored_anyway(operand); });
    const bool loses_nothing = plan.elsewhere.empty() && std::ranges::count(is_saved, false) == 0;
    for (size_t k : plan.elsewhere) is_saved[k] = false;
    const bool saves = plan.elsewhere.size() <= 1 && std::ranges::count(is_saved, true) > 0;
    if (!loses_nothing && !(saves && is_stored_anyway(binding.var))) return;
    places_.add(binding.var, plan);
    const Span& span = span_of(binding);
    result.clear();
    for (size_t k : plan.elsewhere) {
      const Type& type = operands[k].type();
      Expr copy = make_call_tir(module_, "copy_tensor", copy_program(type), {operands[k]}, {type}, span);
      VarRef part = make_var("part", type, span);
      result.push_back({copy, std::nullopt, part});
      operands[k] = part;
    }
    std::vector<Expr> args = {tuple(operands), shape_expr(*known_shape(binding.var.type()))};
    Expr join = call(op_ref(ops::kMemoryJoin), std::move(args), {}, binding.var.type(), span);
    result.push_back({join, std::nullopt, binding.var});
  }

  IRModule& module_;
  const PassContext& context_;
  const VarSet& entry_dims_;
  const std::vector<Binding>& bindings_;
  const KernelBlock block_;
  std::unordered_map<const NodeHeader*, size_t> number_of_;           // a variable's binding
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;  // bindings
  MemoryPlaces places_;
};

// Returns the dims and scalars that a function's arguments give.
VarSet entry_dims(const Function& function) {
  VarSet result;
  for (const VarRef& param : function.params) {
    add_free_vars(param.type(), result);
    if (param.type().is<PrimType>()) result.insert(param.get());
  }
  return result;
}

}  // namespace

IRModule find_views(IRModule module, PassContext& context) {
  VarSet called;  // by others, and by themselves
  for (const auto& [_, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const GlobalVar& callee) {
      if (const Expr* found = module.find(callee.name)) called.insert(found->get());
    });
  }
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    if (called.contains(function.get())) return function;
    const VarSet dims = entry_dims(*function);
    std::function<Expr(const Expr&)> in_sequence = [&](const Expr& seq) {
      return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
        std::vector<Binding> bindings = block.bindings;
        for (Binding& binding : bindings) binding.value = map_sequences(binding.value, in_sequence);
        return block.dataflow ? ViewFinder(result, context, dims, bindings, used_after).run() : bindings;
      });
    };
    return cast<Function>(map_sequences(function, in_sequence));
  });
}

}  // namespace relaxc
