#include "passes/external.h"

#include <cstring>

#include "ir/attr_names.h"
#include "passes/graph_rewriter.h"
#include "support/diagnostic.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

constexpr const char* kDims = "external_dims";  // the buffer with the dims of all tensors

bool has_known_rank(const Expr& value) { return known_shape(value.type()) && tensor_dtype(value.type()); }

// Groups the bindings of a block: a value joins the group of its only use.
class Partition {
 public:
  Partition(const BindingBlock& block, const VarSet& used_after, const ExternalCompiler& compiler)
      : bindings_(block.bindings), group_(block.bindings.size()) {
    std::unordered_map<const NodeHeader*, size_t> number;
    std::vector<int> uses(bindings_.size());
    for (size_t i = 0; i < bindings_.size(); ++i) {
      group_[i] = is_taken(bindings_[i], compiler) ? std::optional(i) : std::nullopt;
      number.emplace(bindings_[i].var.get(), i);
      for (const VarRef& var : free_vars(bindings_[i].value)) {
        if (auto found = number.find(var.get()); found != number.end()) ++uses[found->second];
      }
    }
    // From the last binding to the first, so that a tree grows from its root.
    for (size_t i = bindings_.size(); i-- > 0;) {
      if (!group_[i]) continue;
      for (const Expr& arg : bindings_[i].value.as<Call>()->args) {
        auto found = number.find(arg.get());
        if (found == number.end() || !group_[found->second]) continue;
        bool is_inner = uses[found->second] == 1 && !used_after.contains(arg.get());
        if (is_inner) group_[found->second] = group_[i];
      }
    }
  }

  // Returns the part whose last binding that is, if there is one.
  std::optional<ExternalPart> part_of(size_t root) const {
    if (group_[root] != root) return std::nullopt;
    ExternalPart part;
    VarSet inside, inputs;
    for (size_t i = 0; i <= root; ++i) {
      if (group_[i] != root) continue;
      for (const Expr& arg : bindings_[i].value.as<Call>()->args) {
        bool is_tensor = arg.is<Var>() && arg.type().is<TensorType>();
        if (is_tensor && !inside.contains(arg.get()) && inputs.insert(arg.get()).second)
          part.inputs.push_back(cast<Var>(arg));
      }
      inside.insert(bindings_[i].var.get());
      part.bindings.push_back(bindings_[i]);
    }
    if (part.inputs.size() + 1 > kMostExternalTensors) return std::nullopt;
    return part;
  }

  std::optional<size_t> group(size_t i) const { return group_[i]; }

 private:
  static bool is_taken(const Binding& binding, const ExternalCompiler& compiler) {
    const Call* call = binding.value.as<Call>();
    if (!call || binding.cast || !call->callee.is<OpRef>() || !has_known_rank(binding.var)) return false;
    for (const Expr& arg : call->args) {
      bool is_tensor = arg.type().is<TensorType>();
      if (is_tensor ? !has_known_rank(arg) : !arg.type().is<ShapeType>() && !arg.type().is<PrimType>()) return false;
    }
    return compiler.takes({*call, binding.var.span()});
  }

  const std::vector<Binding>& bindings_;
  std::vector<std::optional<size_t>> group_;  // the root of each binding that the compiler takes
};

// Returns a program that stores the dims of all tensors; call_pass() adds the call when buffers are flat.
PrimFuncRef program_of(const ExternalPart& part, const ExternalCompiler& compiler, int64_t num_bytes) {
  std::vector<VarRef> params;
  std::vector<Expr> dims;
  auto add = [&](const VarRef& var) {
    const std::vector<Expr>& shape = *known_shape(var.type());
    dims.insert(dims.end(), shape.begin(), shape.end());
    params.push_back(make_buffer(var->name, *tensor_dtype(var.type()), shape));
  };
  for (const VarRef& input : part.inputs) add(input);
  add(part.bindings.back().var);
  params.insert(params.end() - 1, make_buffer("program", DType::uint(8), {int_imm(num_bytes)}));
  Buffer all = make_buffer(kDims, kInt64, {int_imm(std::max<int64_t>(std::ssize(dims), 1))});
  std::vector<Stmt> stores;
  for (size_t i = 0; i < dims.size(); ++i) stores.push_back(store(all, dims[i], {int_imm(static_cast<int64_t>(i))}));
  Attrs attrs{{"external", compiler.name}, {attr_names::kIsScheduled, true}};
  return make_prim_func({std::move(params), root_block({all}, seq(std::move(stores))), std::move(attrs)});
}

FunctionRef claimed(const FunctionRef& function, IRModule& module, const ExternalCompiler& compiler) {
  Expr body = rewrite_blocks(function->body, [&](const BindingBlock& block, const VarSet& used_after) {
    Partition partition(block, used_after, compiler);
    std::map<size_t, std::optional<Binding>> calls;  // by root
    for (size_t i = block.bindings.size(); i-- > 0;) {
      std::optional<ExternalPart> part = partition.part_of(i);
      std::optional<std::vector<std::byte>> bytes = part ? compiler.compile(*part) : std::nullopt;
      if (!bytes) continue;
      Tensor program = Tensor::empty({std::ssize(*bytes)}, DType::uint(8));
      std::memcpy(program.raw(), bytes->data(), bytes->size());
      std::vector<Expr> tensors(part->inputs.begin(), part->inputs.end());
      tensors.push_back(constant(std::move(program)));
      const VarRef& var = block.bindings[i].var;
      Expr call =
          make_call_tir(module, compiler.name + "_" + var->name, program_of(*part, compiler, std::ssize(*bytes)),
                        std::move(tensors), {var.type()}, var.span());
      Binding binding = block.bindings[i];
      binding.value = call;
      calls.emplace(i, std::move(binding));
    }
    std::vector<Binding> result;
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      std::optional<size_t> root = partition.group(i);
      if (!root || !calls.contains(*root)) {
        result.push_back(block.bindings[i]);
      } else if (*root == i) {
        result.push_back(*calls.at(i));
      }
    }
    return result;
  });
  if (same_node(body, function->body)) return function;
  Function copy = *function;
  copy.body = body;
  return make_function(std::move(copy), function.span());
}

// Adds the call behind the stores of dims.
PrimFuncRef with_call(const PrimFuncRef& program, const ExternalCompiler& compiler) {
  if (program->attrs.get_string("external", "") != compiler.name) return program;
  std::optional<Buffer> dims;
  walk(program->body, [&](const AllocBuffer& alloc) {
    if (alloc.buffer->name == kDims) dims = alloc.buffer;
  });
  auto address = [](const Buffer& buffer) {
    return intrinsic("tir.address_of", {load(buffer, {int_imm(0)})}, DType::handle());
  };
  std::vector<Expr> tensors;
  for (const VarRef& param : program->params) {
    if (param.type().is<BufferType>()) tensors.push_back(address(param));
  }
  RELAXC_CHECK(dims && tensors.size() >= 2, "the program of an external call has {} tensors", tensors.size());
  std::vector<Expr> args = {string_imm(compiler.function), tensors[tensors.size() - 2], address(*dims)};
  tensors.erase(tensors.end() - 2);
  args.insert(args.end(), tensors.begin(), tensors.end());
  while (args.size() < 3 + kMostExternalTensors) args.push_back(int_imm(0));
  Expr status = intrinsic("tir.call_extern", std::move(args), kInt32, program.span());
  Stmt call = make(Assert{equal(status, int_imm(0, kInt32)), {compiler.name + " could not compute this kernel"}},
                   program.span());
  PrimFunc result = *program;
  result.body = seq({program->body, call});
  return make_prim_func(std::move(result), program.span());
}

}  // namespace

Pass claim_pass(const ExternalCompiler& compiler) {
  auto claim = [compiler](IRModule module, PassContext&) {
    return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
      return claimed(function, result, compiler);
    });
  };
  return {.name = "claim_" + compiler.name, .doc = "leave to " + compiler.name + " what it takes", .on_module = claim};
}

Pass call_pass(const ExternalCompiler& compiler) {
  auto call = [compiler](const std::string&, const PrimFuncRef& program, const PassContext&) {
    return with_call(program, compiler);
  };
  return {.name = "call_" + compiler.name, .doc = "call " + compiler.name + " in its kernels", .on_program = call};
}

}  // namespace relaxc
