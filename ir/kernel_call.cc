#include "ir/kernel_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// call_tir_with_grad is treated like call_tir where gradients are not requested.
constexpr OpName kKernelOps[] = {ops::kCallTir, ops::kCallTirInplace, ops::kCallTirWithGrad, ops::kCallDpsPacked};

bool is_scalar(const Expr& e) { return e.type().is<PrimType>(); }

// Returns the arguments of the first form's inputs: tensors, and scalars among them.
std::vector<Expr> items_of(const Expr& inputs) {
  if (const Tuple* written = inputs.as<Tuple>()) return written->items;
  std::vector<Expr> items;
  const size_t size = inputs.type().as<TupleType>()->items.size();
  for (size_t i = 0; i < size; ++i) items.push_back(tuple_get(inputs, static_cast<int64_t>(i)));
  return items;
}

std::vector<Type> outputs_of(const Call& node) {
  const TupleType* several = node.type_args.size() == 1 ? node.type_args[0].as<TupleType>() : nullptr;
  return several ? several->items : node.type_args;
}

// Returns for each output its position among the tensors; the attribute counts scalars too.
std::vector<int64_t> in_place_of(const Call& node, const std::vector<Expr>& inputs) {
  std::vector<int64_t> result;
  const AttrValue* positions = node.attrs.find(attr_names::kInplaceIndices);
  if (!positions || !from_attr(*positions, result)) return {};
  for (int64_t& position : result) {
    bool is_tensor = position >= 0 && position < static_cast<int64_t>(inputs.size()) &&
                     !is_scalar(inputs[static_cast<size_t>(position)]);
    position = is_tensor ? position - std::count_if(inputs.begin(), inputs.begin() + position, is_scalar) : -1;
  }
  return result;
}

std::optional<KernelCall> with_outputs(const Call& node) {
  bool whole = node.args.size() >= 2 && node.args[1].type().is<TupleType>() && !node.type_args.empty();
  if (!whole) return std::nullopt;
  KernelCall result{.callee = node.args[0], .outputs = outputs_of(node)};
  std::vector<Expr> inputs = items_of(node.args[1]);
  std::ranges::partition_copy(inputs, std::back_inserter(result.scalars), std::back_inserter(result.tensors),
                              is_scalar);
  const ShapeExpr* scalars = node.args.size() > 2 ? node.args[2].as<ShapeExpr>() : nullptr;
  if (scalars) result.scalars.insert(result.scalars.end(), scalars->values.begin(), scalars->values.end());
  result.in_place = in_place_of(node, inputs);
  if (result.in_place.size() != result.outputs.size()) result.in_place.clear();
  return result;
}

KernelCall with_destinations(const Call& node) {
  KernelCall result{.callee = node.callee, .has_destinations = true, .tensors = node.args};
  const ShapeExpr* scalars = node.args.empty() ? nullptr : node.args.back().as<ShapeExpr>();
  if (!scalars) {
    auto others = std::ranges::stable_partition(result.tensors, std::not_fn(is_scalar));
    result.scalars.assign(others.begin(), others.end());
    result.tensors.erase(others.begin(), others.end());
    return result;
  }
  result.tensors.pop_back();
  result.scalars = scalars->values;
  return result;
}
// Returns the value of a variable for a stride or offset of a param, in the program's terms; tensors are dense.
std::optional<Expr> value_in_dense_param(const VarRef& var, const PrimFuncRef& program) {
  for (const Buffer& buffer : buffer_params(program)) {
    const BufferType& type = buffer_type(buffer);
    if (type.elem_offset && same_node(*type.elem_offset, var)) return int_imm(0);
    Expr dense = int_imm(1);
    for (size_t d = type.strides.size(); d-- > 0; dense = dense * cast_to(type.shape[d], kInt64)) {
      if (same_node(type.strides[d], var)) return dense;
    }
  }
  return std::nullopt;
}
// Adds the values of dims where the call leaves them to the shapes of the tensors, as TVM's calls of programs do.
void add_dims_of_tensors(KernelCall& call, const PrimFuncRef& program) {
  std::vector<VarRef> vars = scalar_arguments(program);
  KernelCall inputs{.callee = call.callee, .tensors = call.tensors, .scalars = call.scalars};
  KernelMatch match = match_kernel(inputs, program);
  for (size_t i = call.scalars.size(); i < vars.size(); ++i) {
    const Expr* value = find_value(match.dims, vars[i].get());
    std::optional<Expr> dense = value ? std::nullopt : value_in_dense_param(vars[i], program);
    if (!value && !dense) return;
    call.scalars.push_back(simplify(value ? *value : substitute(*dense, match.dims)));
  }
}

// Raw handle parameters are not matched with arguments and may be any tensors.
bool takes_raw_handles(const PrimFuncRef& program) {
  return std::ranges::any_of(program->params, [](const VarRef& param) {
    const PrimType* scalar = param.type().as<PrimType>();
    return scalar && scalar->dtype.is_handle();
  });
}

// Returns the type of the part of a distributed tensor that each device holds. The program determines its shape.
Type local_type(const Type& type) {
  const DTensorType* spread = type.as<DTensorType>();
  if (!spread) return type;
  TensorType local = *spread->tensor.as<TensorType>();
  local.shape.reset();
  return make(std::move(local));
}

class KernelMatcher {
 public:
  KernelMatcher(const KernelCall& call, const PrimFuncRef& program) : call_(call), program_(program) {}

  KernelMatch run() {
    if (!pair_operands()) return std::move(match_);
    bind_scalars();
    for (const KernelOperand& operand : match_.operands) match_operand(operand);
    return std::move(match_);
  }

 private:
  template <class... Args>
  void contradict(fmt::format_string<Args...> format, Args&&... args) {
    match_.contradictions.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool pair_operands() {
    std::vector<Buffer> params = buffer_params(program_);
    std::vector<size_t> made, in_place;
    for (size_t i = 0; i < call_.outputs.size(); ++i)
      (call_.in_place.empty() || call_.in_place[i] < 0 ? made : in_place).push_back(i);
    const size_t inputs = call_.tensors.size();
    bool agrees = inputs + made.size() == params.size();
    if (!agrees && call_.has_destinations) {
      contradict("'{}' takes {} tensors, got {}", call_.name(), params.size(), inputs);
    } else if (!agrees) {
      contradict("'{}' has {} buffers, got {} inputs and {} outputs", call_.name(), params.size(), inputs, made.size());
    }
    if (!agrees) return false;
    std::vector<KernelOperand>& operands = match_.operands;
    for (size_t i = 0; i < inputs; ++i)
      operands.push_back(
          {params[i], local_type(call_.tensors[i].type()), false, i, call_.has_destinations ? "tensor" : "input"});
    for (size_t i : made)
      operands.push_back({params[operands.size()], local_type(call_.outputs[i]), true, i, "output"});
    for (size_t i : in_place) {
      const Buffer& param = params[static_cast<size_t>(call_.in_place[i])];
      operands.push_back({param, local_type(call_.outputs[i]), true, i, "in-place output"});
    }
    return true;
  }

  // Binds the scalar params and, where the call has destinations, the dims of the buffers after them.
  void bind_scalars() {
    std::vector<VarRef> vars = scalar_arguments(program_);
    auto num_params = std::ranges::count_if(program_->params, is_scalar);
    if (!call_.has_destinations) vars.erase(vars.begin() + num_params, vars.end());
    if (vars.size() != call_.scalars.size())
      contradict("'{}' takes {} scalars{}, got {}", call_.name(), vars.size(),
                 call_.has_destinations ? "" : " in tir_vars", call_.scalars.size());
    for (size_t i = 0; i < std::min(vars.size(), call_.scalars.size()); ++i)
      match_.dims.emplace(vars[i].get(), call_.scalars[i]);
  }

  void match_operand(const KernelOperand& operand) {
    const BufferType& buffer = buffer_type(operand.param);
    auto dtype = tensor_dtype(operand.type);
    if (dtype && *dtype != buffer.dtype)
      contradict("{} {} of '{}' is {}, expected {}", operand.role, operand.number, call_.name(), to_string(*dtype),
                 to_string(buffer.dtype));
    int64_t rank = known_rank(operand.type);
    // A lowered program has flat buffers.
    bool is_flat = call_.has_destinations && buffer.shape.size() == 1;
    if (rank >= 0 && rank != static_cast<int64_t>(buffer.shape.size()) && !is_flat)
      contradict("{} {} of '{}' has rank {}, expected {}", operand.role, operand.number, call_.name(), rank,
                 buffer.shape.size());
    bind_dims(shape_type(buffer.shape), operand.type, match_.dims);
  }

  const KernelCall& call_;
  const PrimFuncRef& program_;
  KernelMatch match_;
};

}  // namespace

const std::string& KernelCall::name() const {
  const GlobalVar* global = callee.as<GlobalVar>();
  return global ? global->name : callee.as<ExternFunc>()->symbol;
}

std::optional<PrimFuncRef> called_program(const Expr& callee, const IRModule& module) {
  const GlobalVar* global = callee.as<GlobalVar>();
  const Expr* function = global ? module.find(global->name) : nullptr;
  return function ? try_cast<PrimFunc>(*function) : std::nullopt;
}

bool calls_kernel(std::string_view op) {
  return std::ranges::any_of(kKernelOps, [&](OpName kernel_op) { return op == kernel_op; });
}

std::optional<KernelCall> as_kernel_call(const Expr& value, const IRModule& module) {
  const Call* node = value.as<Call>();
  if (!node) return std::nullopt;
  if (node->callee.is<OpRef>()) return calls_kernel(op_name(value)) ? with_outputs(*node) : std::nullopt;
  const TupleType* type = value.type().as<TupleType>();
  bool has_no_value = type && type->items.empty() && !node->args.empty() && node->args.back().is<ShapeExpr>();
  // A program that is called for the scalar that it returns is an ordinary function (passes/inline_calls.cc).
  if (value.type().is<PrimType>()) return std::nullopt;
  std::optional<PrimFuncRef> program = called_program(node->callee, module);
  if (!program && !(node->callee.is<ExternFunc>() && has_no_value)) return std::nullopt;
  KernelCall result = with_destinations(*node);
  if (program && (node->args.empty() || !node->args.back().is<ShapeExpr>())) add_dims_of_tensors(result, *program);
  return result;
}

Expr with_tensors(const Expr& kernel_call, const std::vector<Expr>& tensors) {
  Call copy = *kernel_call.as<Call>();
  bool has_outputs = copy.callee.is<OpRef>();
  if (has_outputs) {
    std::vector<Expr> items = items_of(copy.args[1]);
    size_t next = 0;
    for (Expr& item : items) item = is_scalar(item) ? item : tensors.at(next++);
    copy.args[1] = tuple(std::move(items));
  } else {
    size_t next = 0;
    for (Expr& arg : copy.args) arg = is_scalar(arg) || arg.is<ShapeExpr>() ? arg : tensors.at(next++);
  }
  return make(std::move(copy), kernel_call.type(), kernel_call.span());
}

Expr call_with_destinations(const Expr& callee, std::vector<Expr> tensors, std::vector<Expr> scalars,
                            const Span& span) {
  tensors.push_back(shape_expr(std::move(scalars)));
  return call(callee, std::move(tensors), {}, tuple_type({}), span);
}

KernelMatch match_kernel(const KernelCall& call, const PrimFuncRef& program) {
  return takes_raw_handles(program) ? KernelMatch() : KernelMatcher(call, program).run();
}

std::vector<std::optional<Expr>> dims_in_call(const KernelMatch& match, const KernelOperand& operand) {
  VarMap typed;
  for (const VarRef& var : free_vars(operand.param.type())) {
    if (const Expr* value = find_value(match.dims, var.get())) typed.emplace(var.get(), cast_to(*value, dtype_of(var)));
  }
  auto is_typed = [&](const VarRef& var) { return typed.contains(var.get()); };
  return map_each(buffer_type(operand.param).shape, [&](const Expr& dim) {
    return std::ranges::all_of(free_vars(dim), is_typed) ? std::optional(substitute(dim, typed)) : std::nullopt;
  });
}

std::vector<KernelDim> unproven_dims(const KernelMatch& match) {
  std::vector<KernelDim> result;
  for (const KernelOperand& operand : match.operands) {
    const std::vector<Expr>* given = known_shape(operand.type);
    std::vector<std::optional<Expr>> dims = dims_in_call(match, operand);
    if (!given || given->size() != dims.size()) continue;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d]) continue;
      Expr wanted = cast_to(*dims[d], kInt64);
      Verdict verdict = equal_dims(wanted, (*given)[d]);
      if (verdict != Verdict::kProven)
        result.push_back({&operand, d, simplify(wanted), cast_to((*given)[d], kInt64), verdict});
    }
  }
  return result;
}

}  // namespace relaxc
