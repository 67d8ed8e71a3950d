// One function's lowering is one class over its registers and slots, so the file stays above 600 lines.
#include "codegen/bytecode.h"

#include <algorithm>

#include "codegen/llvm_compile.h"
#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "passes/graph.h"
#include "vm/builder.h"
#include "vm/file_memory.h"

namespace relaxc::codegen {

namespace {

using vm::Argument;
using vm::MatchDim;
using vm::Opcode;
using vm::Operand;
using vm::Reg;
using vm::Scalar;
using vm::Slot;
using vm::SlotOp;

// Operators that the runtime carries out by a builtin with the same arguments.
struct BuiltinOp {
  OpName op;
  const char* builtin;
};
constexpr BuiltinOp kBuiltinOps[] = {
    {ops::kShapeOf, "vm.builtin.shape_of"},
    {ops::kTensorToShape, "vm.builtin.tensor_to_shape"},
    {ops::kShapeToTensor, "vm.builtin.shape_to_tensor"},
    {ops::kPrint, "vm.builtin.print"},
};

std::optional<SlotOp> slot_op(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return SlotOp::kAdd;
    case BinaryOp::kSub:
      return SlotOp::kSub;
    case BinaryOp::kMul:
      return SlotOp::kMul;
    case BinaryOp::kDiv:
      return SlotOp::kTruncDiv;
    case BinaryOp::kTruncMod:
      return SlotOp::kTruncMod;
    case BinaryOp::kFloorDiv:
      return SlotOp::kFloorDiv;
    case BinaryOp::kFloorMod:
      return SlotOp::kFloorMod;
    case BinaryOp::kMin:
      return SlotOp::kMin;
    case BinaryOp::kMax:
      return SlotOp::kMax;
    case BinaryOp::kEQ:
      return SlotOp::kEq;
    case BinaryOp::kNE:
      return SlotOp::kNe;
    case BinaryOp::kLT:
      return SlotOp::kLt;
    case BinaryOp::kLE:
      return SlotOp::kLe;
    case BinaryOp::kGT:
      return SlotOp::kGt;
    case BinaryOp::kGE:
      return SlotOp::kGe;
    case BinaryOp::kAnd:
      return SlotOp::kAnd;
    case BinaryOp::kOr:
      return SlotOp::kOr;
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return std::nullopt;
  }
  return std::nullopt;
}

vm::DimInfo dim_info(const Expr& dim) {
  if (auto known = as_int(dim)) return {*known, {}};
  return {-1, print_expr(dim)};
}

vm::ValueInfo value_info(std::string name, const Type& type) {
  vm::ValueInfo info;
  info.name = std::move(name);
  info.dtype = tensor_dtype(type);
  if (type.is<ShapeType>()) info.kind = vm::ValueKind::kShape;
  if (type.is<PrimType>()) info.kind = vm::ValueKind::kInt;
  if (type.is<TupleType>()) info.kind = vm::ValueKind::kTuple;
  if (const std::vector<Expr>* shape = known_shape(type)) {
    info.dims.emplace();
    for (const Expr& dim : *shape) info.dims->push_back(dim_info(dim));
  }
  return info;
}

// Other than structural_hash alone it is different for values of different variables: in a chain of a thousand
// additions no two are alike. For tables that are only searched: it depends on addresses.
uint64_t value_hash(const Expr& value) {
  uint64_t hash = structural_hash(value);
  for (const VarRef& var : free_vars(value)) hash = hash * 0x9e3779b97f4a7c15 + reinterpret_cast<uintptr_t>(var.get());
  return hash;
}

// Constants of equal dtype, shape and bytes are one.
class ConstantTable {
 public:
  explicit ConstantTable(vm::ExecutableBuilder& executable) : executable_(executable) {}

  vm::ConstantIndex index(const Tensor& tensor) {
    auto& candidates = known_[vm::sampled_hash(tensor)];
    for (const auto& [other, index] : candidates) {
      bool same = same_contents(other, tensor);
      vm::release_pages(other);
      vm::release_pages(tensor);
      if (same) return index;
    }
    candidates.emplace_back(tensor, executable_.constant(tensor));
    return candidates.back().second;
  }

 private:
  vm::ExecutableBuilder& executable_;
  std::unordered_map<uint64_t, std::vector<std::pair<Tensor, vm::ConstantIndex>>> known_;
};

class FunctionLowering {
 public:
  FunctionLowering(const IRModule& module, vm::ExecutableBuilder& builder, ConstantTable& constants,
                   const std::string& name, const FunctionRef& function)
      : module_(module), executable_(builder), constants_(constants), code_(builder, name), function_(function) {}

  void run() {
    std::vector<std::string> input_names = names_of("input_names"), output_names = names_of("output_names");
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const VarRef& param = function_->params[i];
      check_supported(param);
      std::string shown = i < input_names.size() ? input_names[i] : param->name;
      registers_.emplace(param.get(), code_.add_input(value_info(shown, param.type())));
      shown_names_.push_back(shown);
    }
    std::vector<Type> results;
    const Type& returned = function_->body.as<SeqExpr>()->body.type();
    flatten(function_->result.is<ObjectType>() ? returned : function_->result, results);
    for (size_t i = 0; i < results.size(); ++i) {
      std::string shown = i < output_names.size() ? output_names[i] : fmt::format("output_{}", i);
      code_.add_output(value_info(shown, results[i]));
    }
    match_params();
    note_outputs(function_->body.as<SeqExpr>()->body);
    Reg result = sequence(function_->body);
    code_.emit(Opcode::kRet, {result});
    code_.finish();
  }

 private:
  std::vector<std::string> names_of(const char* attr) const {
    std::vector<std::string> names;
    if (const AttrValue* value = function_->attrs.find(attr)) from_attr(*value, names);
    return names;
  }
  // Values live in this process's memory, scalars are integers.
  static void check_supported(const VarRef& var) {
    walk_nodes(var.type(), [&](const NodeRef& node) {
      if (node.is<DTensorType>())
        fail_unsupported(var.span(), "'{}' is a distributed tensor, which cannot be compiled yet", var->name);
      const TensorType* tensor = node.as<TensorType>();
      if (tensor && !tensor->vdevice.empty() && !tensor->vdevice.starts_with("llvm:"))
        fail_unsupported(var.span(), "'{}' is on device '{}'; only the CPU is supported", var->name, tensor->vdevice);
      const PrimType* prim = node.as<PrimType>();
      if (prim && (prim->dtype.is_float() || prim->dtype.lanes > 1))
        fail_unsupported(var.span(), "'{}' is a scalar of {}; only integers are supported", var->name,
                         to_string(prim->dtype));
      return !node.is<FuncType>();
    });
  }
  static void flatten(const Type& type, std::vector<Type>& out) {
    if (const TupleType* items = type.as<TupleType>()) {
      for (const Type& item : items->items) flatten(item, out);
    } else {
      out.push_back(type);
    }
  }
  // Flat position of each result tensor.
  void note_outputs(const Expr& body) {
    if (const Tuple* items = body.as<Tuple>()) {
      for (const Expr& item : items->items) note_outputs(item);
      return;
    }
    output_index_.emplace(body.get(), num_outputs_);
    std::vector<Type> flat;
    flatten(body.type(), flat);
    num_outputs_ += static_cast<int64_t>(flat.size());
  }

  // ---- Dims

  // Scalars first: a dim that is a scalar param too is compared with it.
  void match_params() {
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const VarRef& param = function_->params[i];
      if (!param.type().is<PrimType>()) continue;
      Slot slot = code_.new_slot(param->name);
      code_.emit(Opcode::kSlotFromValue, {slot, registers_.at(param.get())});
      slots_.insert_or_assign(param.get(), slot);
    }
    std::vector<Part> parts;
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const VarRef& param = function_->params[i];
      take_apart({registers_.at(param.get()), param.type(), fmt::format("input '{}'", shown_names_[i])}, parts);
    }
    match(parts);
  }

  // A value that is no tuple, or an item of one.
  struct Part {
    Reg value;
    Type type;
    std::string context;
  };
  void take_apart(const Part& whole, std::vector<Part>& out) {
    const TupleType* items = whole.type.as<TupleType>();
    if (!items) return out.push_back(whole);
    for (size_t i = 0; i < items->items.size(); ++i) {
      Reg item = code_.new_register();
      code_.emit(Opcode::kTupleGet, {item, whole.value, static_cast<int64_t>(i)});
      take_apart({item, items->items[i], fmt::format("item {} of {}", i, whole.context)}, out);
    }
  }
  // What a dim computes may stand before what binds its variables.
  void match(const std::vector<Part>& parts) {
    std::vector<const Part*> compound;
    for (const Part& part : parts) {
      if (match_value(part.value, part.type, part.context)) compound.push_back(&part);
    }
    for (const Part* part : compound) check_compound(part->value, part->type, part->context);
  }

  // Checks dtype, rank, and every dim that is a number or a variable; first occurrences bind. Returns whether compound
  // dims are left.
  bool match_value(Reg value, const Type& type, const std::string& context) {
    if (type.is<TensorType>()) {
      int64_t rank = known_rank(type);
      code_.emit(Opcode::kCheckTensor, {value, tensor_dtype(type), rank, executable_.string(context)});
    }
    const std::vector<Expr>* shape = known_shape(type);
    if (!shape) return false;
    bool compound = false, anything = type.is<ShapeType>();
    std::vector<MatchDim> pattern;
    for (const Expr& dim : *shape) {
      if (auto known = as_int(dim)) {
        pattern.push_back(MatchDim::check(*known));
        anything = true;
      } else if (dim.is<Var>()) {
        anything = true;
        auto it = slots_.find(dim.get());
        if (it != slots_.end()) {
          pattern.push_back(MatchDim::check(it->second));
        } else {
          Slot slot = code_.new_slot(dim.as<Var>()->name);
          slots_.emplace(dim.get(), slot);
          pattern.push_back(MatchDim::bind(slot));
        }
      } else {
        pattern.push_back(MatchDim::skip());
        compound = true;
      }
    }
    if (anything) code_.emit(Opcode::kMatchShape, {value, pattern, executable_.string(context)});
    return compound;
  }

  void check_compound(Reg value, const Type& type, const std::string& context) {
    std::vector<MatchDim> pattern;
    for (const Expr& dim : *known_shape(type)) {
      if (as_int(dim) || dim.is<Var>()) {
        pattern.push_back(MatchDim::skip());
        continue;
      }
      Slot slot = code_.new_slot(print_expr(dim));
      code_.emit(Opcode::kSlotSet, {slot, scalar(dim)});
      pattern.push_back(MatchDim::check(slot));
    }
    code_.emit(Opcode::kMatchShape, {value, pattern, executable_.string(context)});
  }

  // The value of a scalar expression, computed into a slot when it is not an immediate.
  Scalar scalar(const Expr& expr) {
    if (const IntImm* imm = expr.as<IntImm>()) return imm->value;
    if (expr.is<Var>()) {
      auto it = slots_.find(expr.get());
      if (it == slots_.end()) fail(expr.span(), "dim '{}' is used before anything binds it", expr.as<Var>()->name);
      return it->second;
    }
    uint64_t hash = value_hash(expr);
    for (size_t i : computed_by_hash_[hash]) {
      if (i < computed_.size() && structural_equal(computed_[i].first, expr)) return computed_[i].second;
    }
    Slot slot = compute(expr);
    computed_by_hash_[hash].push_back(computed_.size());
    computed_.emplace_back(expr, slot);
    return slot;
  }

  static constexpr size_t kLongestName = 40;  // of an expression in an error

  Slot compute(const Expr& expr) {
    if (const Binary* node = expr.as<Binary>()) {
      std::optional<SlotOp> op = slot_op(node->op);
      if (!op) fail_unsupported(expr.span(), "{} in a shape is not supported", info(node->op).name);
      Scalar a = scalar(node->a), b = scalar(node->b);
      std::string text = print_expr(expr);
      Slot slot = code_.new_slot(text.size() > kLongestName ? "" : text);
      code_.emit(Opcode::kSlotOp, {slot, *op, a, b});
      return slot;
    }
    if (const Not* node = expr.as<Not>()) {
      Scalar value = scalar(node->value);
      Slot slot = code_.new_slot();
      code_.emit(Opcode::kSlotOp, {slot, SlotOp::kEq, value, Scalar(0)});
      return slot;
    }
    if (const Select* node = expr.as<Select>()) {
      Scalar condition = scalar(node->condition), a = scalar(node->a), b = scalar(node->b);
      Slot slot = code_.new_slot();
      code_.emit(Opcode::kSlotSelect, {slot, condition, a, b});
      return slot;
    }
    if (const Call* node = as_call(expr, "tir.if_then_else"))
      return choose(node->args[0], node->args[1], node->args[2]);
    if (const Cast* node = expr.as<Cast>()) {
      Slot slot = code_.new_slot();
      code_.emit(Opcode::kSlotSet, {slot, scalar(node->value)});
      return slot;
    }
    fail_unsupported(expr.span(), "this expression cannot be computed in a shape: {}", print_expr(expr));
  }

  // One side only: the other may divide by zero.
  Slot choose(const Expr& condition, const Expr& a, const Expr& b) {
    Scalar decision = scalar(condition);
    vm::Label then_label = code_.new_label(), end_label = code_.new_label();
    Slot slot = code_.new_slot();
    auto side = [&](const Expr& value) {
      size_t known = computed_.size();
      code_.emit(Opcode::kSlotSet, {slot, scalar(value)});
      computed_.erase(computed_.begin() + static_cast<int64_t>(known), computed_.end());
    };
    code_.emit(Opcode::kBranchIf, {decision, then_label});
    side(b);
    code_.emit(Opcode::kJump, {end_label});
    code_.bind(then_label);
    side(a);
    code_.bind(end_label);
    return slot;
  }

  std::vector<Scalar> scalars(const std::vector<Expr>& exprs) {
    std::vector<Scalar> result;
    for (const Expr& expr : exprs) result.push_back(scalar(expr));
    return result;
  }

  // ---- Values

  Reg reg(const Expr& leaf) {
    if (auto it = registers_.find(leaf.get()); it != registers_.end()) return it->second;
    if (leaf.is<Var>() && !leaf.type().is<PrimType>())
      fail(leaf.span(), "'{}' is used before it is bound", leaf.as<Var>()->name);
    Reg result = code_.new_register();
    if (const Constant* constant = leaf.as<Constant>()) {
      code_.emit(Opcode::kConstLoad, {result, constants_.index(constant->data)});
      // Loaded where it is first used; branches may not have come by here.
      if (branch_depth_ == 0) {
        registers_.emplace(leaf.get(), result);
        kept_.push_back(leaf);
      }
    } else if (const Tuple* items = leaf.as<Tuple>()) {
      std::vector<Reg> fields;
      for (const Expr& item : items->items) fields.push_back(reg(item));
      code_.emit(Opcode::kMakeTuple, {result, fields});
    } else if (const ShapeExpr* shape = leaf.as<ShapeExpr>()) {
      code_.emit(Opcode::kMakeShape, {result, scalars(shape->values)});
    } else if (leaf.type().is<PrimType>()) {
      code_.emit(Opcode::kValueFromSlot, {result, scalar(leaf)});
    } else {
      if (leaf.is<Function>())
        fail_unsupported(leaf.span(),
                         "a function inside of a function cannot be compiled yet; define it beside 'main'");
      fail_unsupported(leaf.span(), "a value of kind {} has no bytecode yet", kind_name(leaf.kind()));
    }
    return result;
  }

  Reg sequence(const Expr& seq) {
    const SeqExpr* node = seq.as<SeqExpr>();
    for (const BindingBlock& block : node->blocks) {
      for (const Binding& binding : block.bindings) lower(binding);
    }
    return reg(node->body);
  }

  Operand label(const Span& span) {
    return span && !span.origin->node.empty() ? Operand(executable_.string(span.origin->node)) : Operand(-1);
  }

  void bind(const Binding& binding, Reg value) { registers_.insert_or_assign(binding.var.get(), value); }

  // "node 'conv_1' (Conv)".
  static std::optional<std::string> place_of(const Binding& binding) {
    for (const Span& span : {binding.value.span(), binding.var.span()}) {
      if (span && !span.origin->node.empty())
        return fmt::format("node '{}' ({})", span.origin->node, span.origin->op_type);
    }
    return std::nullopt;
  }

  void lower(const Binding& binding) {
    check_supported(binding.var);
    std::optional<std::string> place = place_of(binding);
    code_.set_place(place ? std::optional(executable_.string(*place)) : std::nullopt);
    const Expr& value = binding.value;
    if (binding.cast) return lower_cast(binding);
    if (const If* branch = value.as<If>()) return lower_if(binding, *branch);
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      if (const Tuple* tuple = item->tuple.as<Tuple>())
        return bind(binding, reg(tuple->items.at(static_cast<size_t>(item->index))));
      Reg result = code_.new_register();
      code_.emit(Opcode::kTupleGet, {result, reg(item->tuple), item->index});
      return bind(binding, result);
    }
    if (const Call* node = value.as<Call>(); node && !op_name(value).starts_with("tir."))
      return lower_call(binding, *node);
    if (value.type().is<PrimType>()) {
      Slot slot = code_.new_slot(binding.var->name);
      code_.emit(Opcode::kSlotSet, {slot, scalar(value)});
      slots_.insert_or_assign(binding.var.get(), slot);
      return;
    }
    bind(binding, reg(value));
  }

  // A test that a node asks for: two numbers, both of which are known.
  bool is_check(const Binding& binding) const {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != 1 || values->values.size() != 1 || !place_of(binding)) return false;
    return !dims->front().is<Var>() || slots_.contains(dims->front().get());
  }
  void lower_cast(const Binding& binding) {
    if (binding.cast->is<PrimType>()) {
      Slot slot = code_.new_slot(binding.var->name);
      if (binding.value.type().is<PrimType>()) {
        code_.emit(Opcode::kSlotSet, {slot, scalar(binding.value)});
      } else {
        code_.emit(Opcode::kSlotFromValue, {slot, reg(binding.value)});
      }
      slots_.insert_or_assign(binding.var.get(), slot);
      return;
    }
    Reg value = reg(binding.value);
    std::string context = fmt::format("match_cast '{}'", binding.var->name);
    if (is_check(binding)) context = what_of_check(binding.var->name) + ": {} and {}";
    std::vector<Part> parts;
    take_apart({value, *binding.cast, context}, parts);
    match(parts);
    bind(binding, value);
  }

  void lower_if(const Binding& binding, const If& branch) {
    Scalar condition = condition_of(branch.condition);
    vm::Label then_label = code_.new_label(), end_label = code_.new_label();
    Reg result = code_.new_register();
    code_.emit(Opcode::kBranchIf, {condition, then_label});
    lower_branch(branch.else_branch, result);
    code_.emit(Opcode::kJump, {end_label});
    code_.bind(then_label);
    lower_branch(branch.then_branch, result);
    code_.bind(end_label);
    bind(binding, result);
  }
  Scalar condition_of(const Expr& condition) {
    if (condition.type().is<PrimType>()) return scalar(condition);
    Slot slot = code_.new_slot();
    code_.emit(Opcode::kSlotFromValue, {slot, reg(condition)});
    return slot;
  }
  void lower_branch(const Expr& branch, Reg result) {
    // What a branch computes is not at hand after it.
    auto slots = slots_;
    auto computed = computed_;
    ++branch_depth_;
    code_.emit(Opcode::kMove, {result, sequence(branch)});
    --branch_depth_;
    slots_ = std::move(slots);
    computed_ = std::move(computed);
  }

  // Registers of the tensor arguments; the last argument may be the kernel's scalars.
  void lower_kernel_call(const Binding& binding, const Call& node, vm::KernelInfo kernel) {
    std::vector<Reg> tensors;
    std::vector<Scalar> values;
    for (const Expr& arg : node.args) {
      if (const ShapeExpr* shape = arg.as<ShapeExpr>()) {
        values = scalars(shape->values);
      } else {
        tensors.push_back(reg(arg));
      }
    }
    kernel.num_tensors = static_cast<int64_t>(tensors.size());
    kernel.num_scalars = static_cast<int64_t>(values.size());
    code_.emit(Opcode::kCallKernel,
               {executable_.kernel(std::move(kernel)), tensors, values, label(binding.value.span())});
  }

  void lower_call(const Binding& binding, const Call& node) {
    if (const GlobalVar* callee = node.callee.as<GlobalVar>()) {
      const Expr* target = module_.find(callee->name);
      if (!target) fail(binding.value.span(), "the module has no function '{}'", callee->name);
      if (target->is<PrimFunc>()) {
        return lower_kernel_call(binding, node,
                                 {kernel_symbol(callee->name), callee->name, vm::KernelSource::kArtifact, 0, 0});
      }
      std::vector<Reg> arguments;
      for (const Expr& arg : node.args) arguments.push_back(reg(arg));
      Reg result = code_.new_register();
      code_.emit(Opcode::kCall, {result, executable_.function(callee->name), arguments});
      return bind(binding, result);
    }
    if (const ExternFunc* callee = node.callee.as<ExternFunc>()) {
      const TupleType* nothing = binding.value.type().as<TupleType>();
      bool is_kernel = nothing && nothing->items.empty() && !node.args.empty() && node.args.back().is<ShapeExpr>();
      if (is_kernel)
        return lower_kernel_call(binding, node, {callee->symbol, callee->symbol, vm::KernelSource::kRegistry, 0, 0});
      return call_builtin(binding, callee->symbol, node.args, 0);
    }
    const std::string& op = op_name(binding.value);
    if (op == ops::kCallPurePacked) {
      const ExternFunc* callee = node.args.at(0).as<ExternFunc>();
      if (!callee) fail(binding.value.span(), "call_pure_packed calls an external function by name");
      return call_builtin(binding, callee->symbol, node.args, 1);
    }
    if (op == ops::kBuiltinAllocTensor) {
      Reg result = code_.new_register();
      auto output = output_index_.find(binding.var.get());
      code_.emit(Opcode::kNewTensor, {result, node.args[1].as<DTypeImm>()->value, scalars(written_shape(node.args[0])),
                                      output == output_index_.end() ? int64_t{-1} : output->second});
      return bind(binding, result);
    }
    if (op == ops::kMemoryAllocStorage) {
      Reg result = code_.new_register();
      code_.emit(Opcode::kAllocStorage, {result, byte_count(node.args[0])});
      return bind(binding, result);
    }
    if (op == ops::kMemoryAllocTensor) {
      Reg result = code_.new_register();
      code_.emit(Opcode::kAllocTensor, {result, reg(node.args[0]), byte_count(node.args[1]),
                                        node.args[3].as<DTypeImm>()->value, scalars(written_shape(node.args[2]))});
      return bind(binding, result);
    }
    if (op == ops::kReshape) {
      Reg result = code_.new_register();
      const std::vector<Expr>* shape = known_shape(binding.value.type());
      if (!shape) fail(binding.value.span(), "the shape of a reshape is not known");
      code_.emit(Opcode::kReshapeView, {result, reg(node.args[0]), scalars(*shape)});
      return bind(binding, result);
    }
    if (op == ops::kCheckIndices) return check_indices(binding, node);
    if (op == ops::kTensorItem) {
      Slot slot = code_.new_slot(binding.var->name);
      code_.emit(Opcode::kSlotFromTensor, {slot, reg(node.args[0]), node.attrs.get_int("index", 0)});
      slots_.insert_or_assign(binding.var.get(), slot);
      return;
    }
    for (const BuiltinOp& row : kBuiltinOps) {
      if (op == row.op) return call_builtin(binding, row.builtin, node.args, 0);
    }
    fail_unsupported(binding.value.span() ? binding.value.span() : binding.var.span(),
                     "operator '{}' has no lowering yet", op);
  }

  // The result is the argument's register: indices are tested where they are.
  void check_indices(const Binding& binding, const Call& node) {
    const Span& span = binding.value.span() ? binding.value.span() : binding.var.span();
    std::string context = node.attrs.get_string("what", "indices");
    if (!place_of(binding) && span && span.line > 0) context = fmt::format("line {}: {}", span.line, context);
    Reg indices = reg(node.args[0]);
    code_.emit(Opcode::kCheckIndices, {indices, scalars(written_shape(node.args[1])), executable_.string(context)});
    bind(binding, indices);
  }

  static const std::vector<Expr>& written_shape(const Expr& e) {
    const ShapeExpr* shape = e.as<ShapeExpr>();
    if (!shape) fail_unsupported(e.span(), "memory of a shape that is not written out is not supported yet");
    return shape->values;
  }
  // A scalar, or a shape of one item.
  Scalar byte_count(const Expr& e) {
    if (e.type().is<PrimType>()) return scalar(e);
    const std::vector<Expr>& values = written_shape(e);
    if (values.size() != 1) fail_unsupported(e.span(), "a size of {} items is not supported", values.size());
    return scalar(values[0]);
  }

  void call_builtin(const Binding& binding, const std::string& name, const std::vector<Expr>& args, size_t first) {
    std::vector<Argument> arguments;
    for (size_t i = first; i < args.size(); ++i) {
      const Expr& arg = args[i];
      if (const StringImm* text = arg.as<StringImm>()) {
        arguments.push_back(executable_.string(text->value));
      } else if (const DTypeImm* dtype = arg.as<DTypeImm>()) {
        arguments.push_back(executable_.string(to_string(dtype->value)));
      } else if (const FloatImm* number = arg.as<FloatImm>()) {
        arguments.push_back(number->value);
      } else if (arg.type().is<PrimType>()) {
        Scalar value = scalar(arg);
        arguments.push_back(value.tag == vm::ScalarTag::kSlot ? Argument(Slot{value.value}) : Argument(value.value));
      } else {
        arguments.push_back(reg(arg));
      }
    }
    Reg result = code_.new_register();
    code_.emit(Opcode::kCallBuiltin, {result, executable_.builtin(name), arguments});
    bind(binding, result);
  }

  const IRModule& module_;
  vm::ExecutableBuilder& executable_;
  ConstantTable& constants_;
  vm::FunctionBuilder code_;
  const FunctionRef& function_;
  std::vector<std::string> shown_names_;
  std::unordered_map<const NodeHeader*, Reg> registers_;
  std::unordered_map<const NodeHeader*, Slot> slots_;
  std::vector<std::pair<Expr, Slot>> computed_;                         // those at hand, in order
  std::unordered_map<uint64_t, std::vector<size_t>> computed_by_hash_;  // positions, of some that are gone too
  std::unordered_map<const NodeHeader*, int64_t> output_index_;
  int64_t num_outputs_ = 0;
  int branch_depth_ = 0;
  std::vector<Expr> kept_;
};

}  // namespace

bool is_lowered_to_bytecode(std::string_view op) {
  constexpr OpName kOwn[] = {
      ops::kBuiltinAllocTensor, ops::kCallDpsPacked, ops::kCallPurePacked, ops::kCallTir,
      ops::kCallTirWithGrad,    ops::kCheckIndices,  ops::kTensorItem,     ops::kMemoryAllocStorage,
      ops::kMemoryAllocTensor,  ops::kReshape};
  return std::find(std::begin(kOwn), std::end(kOwn), op) != std::end(kOwn) ||
         std::any_of(std::begin(kBuiltinOps), std::end(kBuiltinOps),
                     [&](const BuiltinOp& row) { return op == row.op; });
}

vm::Executable lower_to_bytecode(const IRModule& module) {
  vm::ExecutableBuilder builder;
  ConstantTable constants(builder);
  for (const auto& [name, function] : module.functions) {
    auto graph = try_cast<Function>(function);
    if (!graph) continue;
    FunctionLowering(module, builder, constants, name, *graph).run();
    if (const AttrValue* bytes = (*graph)->attrs.find("arena_bytes"))
      builder.set_metadata("arena_bytes." + name, *bytes->as<std::string>());
  }
  return builder.finish();
}

}  // namespace relaxc::codegen
