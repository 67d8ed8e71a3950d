#include "codegen/bytecode.h"

#include <algorithm>

#include "codegen/backend.h"
#include "codegen/bytecode_scalars.h"
#include "codegen/constant_table.h"
#include "codegen/value_info.h"
#include "ir/attr_names.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "ops/attributes.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "vm/builder.h"

namespace relaxc::codegen {

namespace {

using vm::Argument, vm::Opcode, vm::Operand, vm::Reg, vm::Scalar, vm::Slot;

class FunctionLowering {
 public:
  FunctionLowering(const IRModule& module, vm::ExecutableBuilder& builder, ConstantTable& constants,
                   const std::string& name, const FunctionRef& function)
      : module_(module),
        executable_(builder),
        constants_(constants),
        name_(name),
        code_(builder, name),
        dims_(builder, code_),
        function_(function) {}

  void run() {
    std::vector<std::string> input_names = names_of(attr_names::kInputNames);
    std::vector<std::string> output_names = names_of(attr_names::kOutputNames);
    if (!function_->attrs.has(attr_names::kGlobalSymbol) && name_ != "main") code_.make_private();
    const DimRanges ranges = dim_ranges(*function_);
    std::vector<ScalarLowering::Typed> inputs;
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const VarRef& param = function_->params[i];
      check_supported(param);
      std::string shown = i < input_names.size() ? input_names[i] : param->name;
      Reg value = code_.add_input(value_info(shown, param.type(), ranges));
      registers_.emplace(param.get(), value);
      inputs.push_back({value, param.type(), fmt::format("input '{}'", shown)});
    }
    const Expr& body = function_->body.as<SeqExpr>()->body;
    std::vector<Type> results = flattened(function_->result.is<ObjectType>() ? body.type() : function_->result);
    for (size_t i = 0; i < results.size(); ++i) {
      std::string shown = i < output_names.size() ? output_names[i] : fmt::format("output_{}", i);
      code_.add_output(value_info(shown, results[i], ranges));
    }
    // Scalars come first, because a dim that is also a scalar param is compared with it.
    for (const VarRef& param : function_->params) {
      if (param.type().is<PrimType>()) define_slot(param, checked_scalar(param));
    }
    dims_.match(inputs);
    dims_.check_ranges(function_->params, ranges);
    note_outputs(body);
    code_.emit(Opcode::kRet, {sequence(function_->body)});
    code_.finish();
  }

  // The lowering of an operator without a tensor program: a builtin of the runtime with the same arguments, or a
  // function that emits its instructions.
  struct OpLowering {
    OpName op;
    const char* builtin;
    void (FunctionLowering::*lower)(const Binding&, const Call&) = nullptr;
  };
  static const OpLowering* find_row(std::string_view op) {
    using This = FunctionLowering;
    static constexpr OpLowering kRows[] = {
        {ops::kShapeOf, "vm.builtin.shape_of"},
        {ops::kTensorToShape, "vm.builtin.tensor_to_shape"},
        {ops::kShapeToTensor, "vm.builtin.shape_to_tensor"},
        {ops::kCallPurePacked, nullptr, &This::call_packed},
        {ops::kCallInplacePacked, nullptr, &This::call_inplace_packed},
        {ops::kMakeClosure, nullptr, &This::make_closure},
        {ops::kInvokeClosure, nullptr, &This::invoke},
        {ops::kInvokePureClosure, nullptr, &This::invoke},
        {ops::kLoop, nullptr, &This::loop},
        {ops::kBuiltinAllocTensor, nullptr, &This::new_tensor},
        {ops::kMemoryAllocStorage, nullptr, &This::alloc_storage},
        {ops::kMemoryAllocTensor, nullptr, &This::alloc_tensor},
        {ops::kReshape, nullptr, &This::reshape},
        {ops::kMemoryView, nullptr, &This::view},
        {ops::kCheckIndices, nullptr, &This::check_indices},
        {ops::kTensorItem, nullptr, &This::tensor_item},
    };
    return find_item(kRows, op, [](const OpLowering& row) { return row.op.text; });
  }

 private:
  std::vector<std::string> names_of(const char* attr) const {
    std::vector<std::string> names;
    if (const AttrValue* value = function_->attrs.find(attr)) from_attr(*value, names);
    return names;
  }
  // Values are in this process's memory, and scalars are integers.
  static void check_supported(const VarRef& var) {
    walk_nodes(var.type(), [&](const NodeRef& node) {
      if (node.is<DTensorType>())
        fail_unsupported(
            var.span(),
            "'{}' is an R.DTensor, which lies on the devices of a mesh, and this runtime is one device; write R.Tensor",
            var->name);
      const TensorType* tensor = node.as<TensorType>();
      if (tensor && !tensor->vdevice.empty() && !tensor->vdevice.starts_with("llvm:"))
        fail_unsupported(var.span(), "'{}' is on device '{}'; only the CPU is supported", var->name, tensor->vdevice);
      if (tensor && tensor->dtype && tensor->dtype->lanes > 1)
        fail_unsupported(var.span(),
                         "'{}' is a tensor of {}; give its lanes a dim, and the tensor program a view of {}", var->name,
                         to_string(*tensor->dtype), to_string(*tensor->dtype));
      const PrimType* prim = node.as<PrimType>();
      if (prim && (prim->dtype.is_handle() || prim->dtype.is_complex() || prim->dtype.lanes > 1))
        fail_unsupported(var.span(), "'{}' is a scalar of {}; only real numbers are supported", var->name,
                         to_string(prim->dtype));
      return !node.is<FuncType>();
    });
  }
  static std::vector<Type> flattened(const Type& type) {
    std::vector<Type> result;
    map_items(type, [&](const Type& item) { return result.emplace_back(item); });
    return result;
  }
  // Notes the flat position of each result tensor; the last one where there are several, so that a value that a loop
  // both carries and stacks is made in its row (vm/row_stack.h).
  void note_outputs(const Expr& body) {
    if (const Tuple* items = body.as<Tuple>()) {
      for (const Expr& item : items->items) note_outputs(item);
      return;
    }
    output_index_.insert_or_assign(body.get(), num_outputs_);
    num_outputs_ += static_cast<int64_t>(flattened(body.type()).size());
  }

  // ---- Values

  Reg reg(const Expr& leaf) {
    if (const Reg* known = find_value(registers_, leaf.get())) return *known;
    if (leaf.is<Var>() && !leaf.type().is<PrimType>())
      fail(leaf.span(), "'{}' is used before it is bound", leaf.as<Var>()->name);
    Reg result = code_.new_register();
    if (const Constant* constant = leaf.as<Constant>()) {
      code_.emit(Opcode::kConstLoad, {result, constants_.index(constant->data)});
      constant_registers_.push_back(result);
      // A constant is loaded at its first use, and again in each branch, where the first use may not have run.
      if (branch_depth_ == 0) {
        registers_.emplace(leaf.get(), result);
        kept_.push_back(leaf);
      }
    } else if (const Tuple* items = leaf.as<Tuple>()) {
      code_.emit(Opcode::kMakeTuple, {result, regs(items->items)});
    } else if (const ShapeExpr* shape = leaf.as<ShapeExpr>()) {
      code_.emit(Opcode::kMakeShape, {result, dims_.scalars(shape->values)});
    } else if (leaf.is<StringImm>() || leaf.is<DTypeImm>() || leaf.is<FloatImm>()) {
      return builtin("vm.builtin.value", argument(leaf));
    } else if (leaf.type().is<PrimType>()) {
      code_.emit(Opcode::kValueFromSlot, {result, dims_.scalar(leaf)});
      if (is_float(leaf)) return builtin("vm.builtin.float_from_bits", result);
    } else if (const Expr* function = known_function(leaf, leaf.span())) {
      if (!function->is<Function>())
        fail_unsupported(leaf.span(), "an external function is called by name, it is not a value");
      code_.emit(Opcode::kMakeClosure, {result, executable_.function(leaf.as<GlobalVar>()->name), std::vector<Reg>()});
    } else {
      fail_unsupported(leaf.span(), "a value of kind {} has no bytecode yet", kind_name(leaf.kind()));
    }
    return result;
  }

  std::vector<Reg> regs(std::span<const Expr> leaves) {
    return map_each(leaves, [&](const Expr& leaf) { return reg(leaf); });
  }

  Reg sequence(const Expr& seq) {
    for (const Binding& binding : bindings_of(seq)) lower(binding);
    return reg(cast<SeqExpr>(seq)->body);
  }

  Operand label(const Span& span) {
    return is_of_node(span) ? Operand(executable_.string(nodes_of(span))) : Operand(-1);
  }

  void bind(const Binding& binding, Reg value) { registers_.insert_or_assign(binding.var.get(), value); }
  // Returns the new register, or slot, of the binding's value.
  Reg new_value(const Binding& binding) {
    Reg result = code_.new_register();
    bind(binding, result);
    return result;
  }
  Slot new_slot(const VarRef& var) {
    Slot slot = code_.new_slot(var->name);
    dims_.define(var, slot);
    return slot;
  }

  // Returns a text such as "node 'conv_1' (Conv)".
  static std::optional<std::string> place_of(const Binding& binding) {
    for (const Span& span : {binding.value.span(), binding.var.span()}) {
      if (is_of_node(span)) return fmt::format("node '{}' ({})", span.origin->node, span.origin->op_type);
    }
    return std::nullopt;
  }
  static bool is_of_node(const Span& span) { return span && !span.origin->node.empty(); }

  void lower(const Binding& binding) {
    check_supported(binding.var);
    lower_value(binding);
    // A scalar that a call, a branch or a tuple gives is in a register.
    bool is_scalar = binding.var.type().is<PrimType>() && !dims_.defines(binding.var);
    if (is_scalar) define_slot(binding.var, reg(binding.var));
  }
  // Returns the param's value after a test that its dtype has it; bytecode computes in int64.
  Reg checked_scalar(const VarRef& param) {
    if (is_float(param) || dtype_of(param) == kInt64) return reg(param);
    Reg result = code_.new_register();
    std::vector<Argument> arguments{reg(param), executable_.string(to_string(dtype_of(param))),
                                    executable_.string(fmt::format("input '{}'", param->name))};
    code_.emit(Opcode::kCallBuiltin, {result, executable_.builtin("vm.builtin.check_scalar"), arguments});
    return result;
  }
  static bool is_float(const Expr& scalar) { return dtype_of(scalar).is_float(); }
  // A slot has a float as the bits of a double, as kernels take it.
  void define_slot(const VarRef& var, Reg value) {
    if (is_float(var)) value = builtin("vm.builtin.float_bits", value);
    code_.emit(Opcode::kSlotFromValue, {new_slot(var), value});
  }
  Reg builtin(const char* name, Argument argument) {
    Reg result = code_.new_register();
    code_.emit(Opcode::kCallBuiltin, {result, executable_.builtin(name), std::vector{argument}});
    return result;
  }
  void lower_value(const Binding& binding) {
    std::optional<std::string> place = place_of(binding);
    code_.set_place(place ? std::optional(executable_.string(*place)) : std::nullopt);
    const Expr& value = binding.value;
    if (binding.cast) return lower_cast(binding);
    if (const If* branch = value.as<If>()) return lower_if(binding, *branch);
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      if (const Tuple* tuple = item->tuple.as<Tuple>())
        return bind(binding, reg(tuple->items.at(static_cast<size_t>(item->index))));
      return code_.emit(Opcode::kTupleGet, {new_value(binding), reg(item->tuple), item->index});
    }
    if (const Call* node = value.as<Call>(); node && !ops::is_tir_op(op_name(value))) return lower_call(binding, *node);
    if (value.type().is<PrimType>()) return lower_scalar(binding);
    bind(binding, reg(value));
  }

  void lower_scalar(const Binding& binding) {
    if (!binding.value.type().is<PrimType>()) return define_slot(binding.var, reg(binding.value));
    Scalar value = dims_.scalar(binding.value);
    code_.emit(Opcode::kSlotSet, {new_slot(binding.var), value});
  }

  // Returns whether the match_cast compares two known numbers, as operators do that state what their dims must be.
  bool is_check(const Binding& binding) const {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != 1 || values->values.size() != 1) return false;
    return !dims->front().is<Var>() || dims_.defines(dims->front());
  }
  // Returns whether the match_cast demands that a condition holds, which gives 1, or 0 where it does not.
  static bool is_condition(const Binding& binding) {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != 1 || values->values.size() != 1 || !is_int(dims->front(), 1)) return false;
    const Select* choice = values->values[0].as<Select>();
    return choice && is_int(choice->a, 1) && is_int(choice->b, 0);
  }
  // Returns "line 4: match_cast 'z'" for one of a text.
  static std::string name_of_cast(const Binding& binding) {
    const Span& span = binding.var.span();
    const bool has_line = span && span.line > 0;
    return fmt::format("{}match_cast '{}'", has_line ? fmt::format("line {}: ", span.line) : "", binding.var->name);
  }
  void lower_cast(const Binding& binding) {
    if (binding.cast->is<PrimType>()) return lower_scalar(binding);
    Reg value = reg(binding.value);
    const std::string* function = find_value(external_results_, binding.value.get());
    std::string context = function ? fmt::format("result of function '{}'", *function) : name_of_cast(binding);
    const bool stands_for_node = place_of(binding).has_value();
    if (is_check(binding) && stands_for_node)
      context = what_of_check(binding.var->name) + ": " + numbers_of_check(binding);
    if (is_check(binding) && !stands_for_node) context += ": found {}, expected {}" + dims_of_check(binding);
    if (is_condition(binding)) context = what_of_check(binding.var->name) + " ({} of {} conditions hold)";
    dims_.match({{value, *binding.cast, context}});
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
    if (condition.type().is<PrimType>()) return dims_.scalar(condition);
    Slot slot = code_.new_slot();
    code_.emit(Opcode::kSlotFromValue, {slot, reg(condition)});
    return slot;
  }
  void lower_branch(const Expr& branch, Reg result) {
    ++branch_depth_;
    dims_.in_branch([&] { code_.emit(Opcode::kMove, {result, sequence(branch)}); });
    --branch_depth_;
  }

  // Constants are in memory that cannot be written.
  void check_constants(const KernelCall& call, const std::vector<Reg>& tensors, const Span& span) const {
    std::optional<PrimFuncRef> program = called_program(call.callee, module_);
    std::vector<Buffer> buffers = program ? buffer_params(*program) : std::vector<Buffer>();
    for (size_t i = 0; i < std::min(buffers.size(), tensors.size()); ++i) {
      if (std::ranges::count(constant_registers_, tensors[i]) > 0 && stores_to((*program)->body, buffers[i]))
        fail(span, "'{}' writes to its argument {}, which is a constant; pass a tensor that is allocated here",
             call.name(), i);
    }
  }
  void lower_kernel_call(const KernelCall& call, const Span& span) {
    bool is_compiled = call.callee.is<GlobalVar>();
    std::vector<Reg> tensors = regs(call.tensors);
    check_constants(call, tensors, span);
    std::vector<Scalar> values = dims_.scalars(call.scalars);
    vm::KernelInfo kernel{is_compiled ? kernel_symbol(call.name()) : call.name(), call.name(),
                          is_compiled ? vm::KernelSource::kArtifact : vm::KernelSource::kRegistry,
                          static_cast<int64_t>(tensors.size()), static_cast<int64_t>(values.size())};
    if (auto program = called_program(call.callee, module_)) note_work(kernel, (*program)->attrs);
    code_.emit(Opcode::kCallKernel, {executable_.kernel(std::move(kernel)), tensors, values, label(span)});
  }

  void lower_call(const Binding& binding, const Call& node) {
    auto kernel = as_kernel_call(binding.value, module_);
    if (kernel && kernel->has_destinations) return lower_kernel_call(*kernel, binding.value.span());
    if (!node.callee.is<OpRef>()) return call(binding, node.callee, node.args);
    const std::string& op = op_name(binding.value);
    const OpLowering* row = find_row(op);
    if (!row && calls_kernel(op))
      fail(span_of(binding),
           "'{}' is left: the list of passes stops before calls of tensor programs are lowered; end it with 'lower'",
           op);
    if (!row)
      fail_unsupported(span_of(binding),
                       "operator '{}' has no lowering yet, or the list of passes stops before 'legalize'", op);
    if (row->builtin) return call_builtin(binding, row->builtin, node.args);
    (this->*row->lower)(binding, node);
  }

  // Returns the function that the callee names; nullptr when it is a value.
  const Expr* known_function(const Expr& callee, const Span& span) const {
    if (callee.is<ExternFunc>()) return &callee;
    const GlobalVar* global = callee.as<GlobalVar>();
    const Expr* function = global ? module_.find(global->name) : nullptr;
    if (global && !function) fail(span, "the module has no function '{}'", global->name);
    if (function && function->is<PrimFunc>())
      fail_unsupported(span, "tensor program '{}' is called by R.call_tir, it is not a value", global->name);
    return function;
  }
  void call(const Binding& binding, const Expr& callee, std::span<const Expr> args) {
    const Expr* function = known_function(callee, span_of(binding));
    // Builtins that only the interpreter can carry out.
    const ExternFunc* builtin = function ? function->as<ExternFunc>() : nullptr;
    if (builtin && builtin->symbol == "vm.builtin.invoke_closure" && !args.empty())
      return call(binding, args[0], args.subspan(1));
    if (builtin && builtin->symbol == "vm.builtin.make_closure" && !args.empty())
      return make_closure(binding, args[0], regs(args.subspan(1)));
    if (builtin) return call_external(binding, builtin->symbol, args);
    std::vector<Reg> arguments = regs(args);
    if (function)
      return code_.emit(Opcode::kCall,
                        {new_value(binding), executable_.function(callee.as<GlobalVar>()->name), arguments});
    Reg closure = reg(callee);
    code_.emit(Opcode::kInvoke, {new_value(binding), closure, arguments});
  }
  // Some builtins store to the shape heap, which must not be a constant or memory of the caller.
  void call_external(const Binding& binding, const std::string& name, std::span<const Expr> args) {
    bool stores = name == "vm.builtin.match_shape" || name == "vm.builtin.match_prim_value";
    if (stores && args.size() > 1 && std::ranges::count(shape_heaps_, reg(args[1])) == 0)
      fail(binding.value.span(), "{}: the shape heap must be the result of vm.builtin.alloc_shape_heap", name);
    call_builtin(binding, name, args);
    external_results_.emplace(binding.var.get(), name);
    bool is_heap = name == "vm.builtin.alloc_shape_heap" || name == "vm.builtin.null_value";
    if (is_heap) shape_heaps_.push_back(registers_.at(binding.var.get()));
  }
  void call_packed(const Binding& binding, const Call& node) {
    call(binding, node.args.at(0), std::span(node.args).subspan(1));
  }
  // Returns the items of a tuple, written or not.
  std::vector<Reg> items(const Expr& whole) {
    if (const Tuple* written = whole.as<Tuple>()) return regs(written->items);
    const TupleType* type = whole.type().as<TupleType>();
    if (!type) fail(whole.span(), "expected a tuple of arguments");
    std::vector<Reg> result;
    for (size_t i = 0; i < type->items.size(); ++i) {
      result.push_back(code_.new_register());
      code_.emit(Opcode::kTupleGet, {result.back(), reg(whole), static_cast<int64_t>(i)});
    }
    return result;
  }
  void make_closure(const Binding& binding, const Call& node) {
    make_closure(binding, node.args[0], items(node.args[1]));
  }
  void make_closure(const Binding& binding, const Expr& callee, const std::vector<Reg>& captured) {
    const Expr* function = known_function(callee, span_of(binding));
    if (!function || !function->is<Function>())
      fail_unsupported(binding.value.span(), "a closure is made of a function of the module");
    vm::FunctionIndex index = executable_.function(callee.as<GlobalVar>()->name);
    code_.emit(Opcode::kMakeClosure, {new_value(binding), index, captured});
  }
  void invoke(const Binding& binding, const Call& node) {
    Reg closure = reg(node.args[0]);
    std::vector<Reg> arguments = items(node.args[1]);
    code_.emit(Opcode::kInvoke, {new_value(binding), closure, arguments});
  }
  void loop(const Binding& binding, const Call& node) {
    Scalar trips = dims_.scalar(node.args[1]);
    bool conditional = node.args.size() > 3;
    Scalar condition = conditional ? condition_of(node.args[3]) : Scalar(1);
    std::vector<Reg> carried = items(node.args[2]), rows;
    const std::vector<Type>& given = node.args[0].type().as<FuncType>()->result.as<TupleType>()->items;
    for (const Type& row : std::span(given).subspan(carried.size() + (conditional ? 1 : 0))) {
      // The tensor that gets the rows; with dims of 0 where only the rows tell them.
      std::vector<Expr> dims(static_cast<size_t>(known_rank(row)), int_imm(0));
      const std::vector<Expr>* known = known_shape(row);
      auto defines = [&](const Expr& dim) {
        return std::ranges::all_of(free_vars(dim), [&](const VarRef& var) { return dims_.defines(var); });
      };
      if (known && std::ranges::all_of(*known, defines)) dims = *known;
      std::vector<Scalar> shape = dims_.scalars(dims);
      shape.insert(shape.begin(), conditional ? Scalar(0) : trips);
      rows.push_back(code_.new_register());
      code_.emit(Opcode::kNewTensor, {rows.back(), *tensor_dtype(row), shape, int64_t{-1}});
    }
    code_.emit(Opcode::kLoop, {new_value(binding), reg(node.args[0]), trips, condition, carried, rows});
  }
  // The function overwrites copies: a tensor may be the caller's, a constant, or used again.
  void call_inplace_packed(const Binding& binding, const Call& node) {
    const ExternFunc* callee = node.args.at(0).as<ExternFunc>();
    if (!callee) fail(binding.value.span(), "call_inplace_packed calls an external function by name");
    std::vector<int64_t> in_place;
    const AttrValue* positions = node.attrs.find(attr_names::kInplaceIndices);
    if (positions) from_attr(*positions, in_place);
    std::vector<Argument> arguments;
    for (size_t i = 1; i < node.args.size(); ++i) {
      Argument value = argument(node.args[i]);
      bool is_overwritten = std::ranges::find(in_place, static_cast<int64_t>(i - 1)) != in_place.end();
      if (is_overwritten && node.args[i].type().is<TensorType>()) {
        Reg copy = code_.new_register();
        code_.emit(Opcode::kCallBuiltin, {copy, executable_.builtin("vm.builtin.copy"), std::vector{value}});
        value = copy;
      }
      arguments.push_back(value);
    }
    code_.emit(Opcode::kCallBuiltin, {new_value(binding), executable_.builtin(callee->symbol), arguments});
  }
  void new_tensor(const Binding& binding, const Call& node) {
    code_.emit(Opcode::kNewTensor,
               {new_value(binding), node.args[1].as<DTypeImm>()->value, dims_.scalars(written_shape(node.args[0])),
                copy_value(output_index_, binding.var.get()).value_or(-1)});
  }
  void alloc_storage(const Binding& binding, const Call& node) {
    code_.emit(Opcode::kAllocStorage, {new_value(binding), byte_count(node.args[0])});
  }
  void alloc_tensor(const Binding& binding, const Call& node) {
    code_.emit(Opcode::kAllocTensor, {new_value(binding), reg(node.args[0]), byte_count(node.args[1]),
                                      node.args[3].as<DTypeImm>()->value, dims_.scalars(written_shape(node.args[2]))});
  }
  void reshape(const Binding& binding, const Call& node) {
    const std::vector<Expr>* shape = known_shape(binding.value.type());
    if (!shape) fail(binding.value.span(), "the shape of a reshape is not known");
    code_.emit(Opcode::kReshapeView, {new_value(binding), reg(node.args[0]), dims_.scalars(*shape)});
  }
  // Views of another dtype are calls of a builtin (ops/runtime.cc).
  void view(const Binding& binding, const Call& node) {
    code_.emit(Opcode::kView, {new_value(binding), reg(node.args[0]), dims_.scalar(node.args[3]),
                               dims_.scalars(written_shape(node.args[1]))});
  }
  void tensor_item(const Binding& binding, const Call& node) {
    int64_t index = read_attrs<TensorItemAttrs>(node.attrs).index;
    code_.emit(Opcode::kSlotFromTensor, {new_slot(binding.var), reg(node.args[0]), index});
  }
  // The result shares the argument's register, because indices are tested in place.
  void check_indices(const Binding& binding, const Call& node) {
    const Span& span = span_of(binding);
    std::string context = read_attrs<CheckIndicesAttrs>(node.attrs).what;
    if (!place_of(binding) && span && span.line > 0) context = fmt::format("line {}: {}", span.line, context);
    Reg indices = reg(node.args[0]);
    code_.emit(Opcode::kCheckIndices,
               {indices, dims_.scalars(written_shape(node.args[1])), executable_.string(context)});
    bind(binding, indices);
  }

  static const std::vector<Expr>& written_shape(const Expr& e) {
    const ShapeExpr* shape = e.as<ShapeExpr>();
    if (!shape) fail_unsupported(e.span(), "an allocation whose shape is not a literal is not supported yet");
    return shape->values;
  }
  // A byte count is a scalar, or a shape of one item.
  Scalar byte_count(const Expr& e) {
    if (e.type().is<PrimType>()) return dims_.scalar(e);
    const std::vector<Expr>& values = written_shape(e);
    if (values.size() != 1) fail_unsupported(e.span(), "a size of {} items is not supported", values.size());
    return dims_.scalar(values[0]);
  }

  Argument argument(const Expr& arg) {
    if (const StringImm* text = arg.as<StringImm>()) return executable_.string(text->value);
    if (const DTypeImm* dtype = arg.as<DTypeImm>()) return executable_.string(to_string(dtype->value));
    if (const FloatImm* number = arg.as<FloatImm>()) return number->value;
    if (!arg.type().is<PrimType>() || is_float(arg)) return reg(arg);
    Scalar value = dims_.scalar(arg);
    return value.tag == vm::ScalarTag::kSlot ? Argument(Slot{value.value}) : Argument(value.value);
  }
  void call_builtin(const Binding& binding, const std::string& name, std::span<const Expr> args) {
    std::vector<Argument> arguments = map_each(args, [&](const Expr& arg) -> Argument { return argument(arg); });
    bool is_scalar = binding.var.type().is<PrimType>();
    Reg value = is_scalar ? code_.new_register() : new_value(binding);
    code_.emit(Opcode::kCallBuiltin, {value, executable_.builtin(name), arguments});
    if (is_scalar) define_slot(binding.var, value);
  }

  const IRModule& module_;
  vm::ExecutableBuilder& executable_;
  ConstantTable& constants_;
  const std::string& name_;
  vm::FunctionBuilder code_;
  ScalarLowering dims_;
  const FunctionRef& function_;
  std::unordered_map<const NodeHeader*, Reg> registers_;
  std::unordered_map<const NodeHeader*, int64_t> output_index_;
  int64_t num_outputs_ = 0;
  std::vector<Reg> shape_heaps_, constant_registers_;
  std::unordered_map<const NodeHeader*, std::string> external_results_;  // by variable: the function that gives it
  int branch_depth_ = 0;
  std::vector<Expr> kept_;
};

}  // namespace

bool is_lowered_to_bytecode(std::string_view op) { return FunctionLowering::find_row(op) || calls_kernel(op); }

// Adds the functions of the host that kernels call, which are then looked up when the executable is loaded.
static void add_packed_names(const IRModule& module, vm::ExecutableBuilder& builder) {
  for (const auto& [name, program] : programs_of(module)) {
    walk(program->body, [&](const Ref<Call>& call) {
      bool is_packed = as_call(call, ops::kCallPacked) || as_call(call, ops::kCallCPacked);
      const StringImm* function = is_packed && !call->args.empty() ? call->args[0].as<StringImm>() : nullptr;
      if (function) builder.builtin(function->value);
    });
  }
}

vm::Executable lower_to_bytecode(const IRModule& module) {
  vm::ExecutableBuilder builder;
  add_packed_names(module, builder);
  ConstantTable constants(builder);
  for (const auto& [name, function] : module.functions) {
    auto graph = try_cast<Function>(function);
    if (!graph) continue;
    std::string entry = (*graph)->attrs.get_string(attr_names::kEntryName, name);
    FunctionLowering(module, builder, constants, entry, *graph).run();
    for (const char* shown : {attr_names::kArenaBytes, attr_names::kPeakBytes, attr_names::kCaches}) {
      if (const AttrValue* text = (*graph)->attrs.find(shown))
        builder.set_metadata(fmt::format("{}.{}", shown, entry), *text->as<std::string>());
    }
    const std::string otherwise = (*graph)->attrs.get_string(attr_names::kOtherwise, "");
    if (module.functions.contains(otherwise)) builder.set_metadata(std::string(vm::kOtherwiseKey) + entry, otherwise);
  }
  const AttrValue* refused = module.attrs.find(attr_names::kRefused);
  if (const Attrs* reasons = refused ? refused->as<Attrs>() : nullptr) {
    for (const auto& [name, reason] : *reasons)
      builder.set_metadata(std::string(vm::kRefusedKey) + name, *reason.as<std::string>());
  }
  return builder.finish();
}

}  // namespace relaxc::codegen
