#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "codegen/function_emitter.h"
#include "codegen/rounding.h"
#include "codegen/target.h"
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/temporarily.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/pointers.h"
#include "tir/lower/lower.h"
#include "tir/tile_forms.h"
#include "vm/kernel_abi.h"

namespace relaxc::codegen {

namespace {

// Unrolled loops are written out up to this many copies of the innermost body; beyond that LLVM is asked to unroll.
constexpr int64_t kMaxUnroll = 1024;

// Returns the stores in a statement, those in unrolled loops once for each copy, and none of those in other loops.
int64_t copies_of_stores(const NodeRef& node) {
  const For* loop = node.as<For>();
  const int64_t copies = !loop ? 1 : loop->kind == ForKind::kUnrolled ? as_int(loop->extent).value_or(0) : 0;
  int64_t stores = node.is<BufferStore>();
  if (copies > 0) visit_children(node, [&](const NodeRef& child, Slot) { stores += copies_of_stores(child); });
  return checked_mul(stores, copies).value_or(std::numeric_limits<int64_t>::max());
}

// Returns whether LLVM must leave a loop as it is: one over a tile of sums that fills half of 16 registers. In copies
// it would keep what they share, such as pixels of neighbouring windows, in registers that the sums need.
bool has_large_tile(const For& loop, const Target& target) {
  constexpr int kFewRegisters = 16;
  return target.num_vector_registers <= kFewRegisters && 2 * copies_of_stores(loop.body) >= target.num_vector_registers;
}

// Sets the processor on each function, where LLVM reads it in preference to the target machine.
void set_attributes(llvm::Function* function, const Target& target) {
  function->addFnAttr("target-cpu", target.cpu);
  if (!target.features.empty()) function->addFnAttr("target-features", target.features);
  // Without this attribute LLVM prefers 256 bits on most AVX-512 processors, and splits our vectors.
  function->addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  function->setDoesNotThrow();
}

}  // namespace

FunctionEmitter::FunctionEmitter(KernelState& kernel, const std::string& name, const Variables& variables,
                                 bool is_parallel_body)
    : kernel_(kernel), b_(kernel.module.getContext()), ops_(b_, kernel.target), in_parallel_(is_parallel_body) {
  set_contraction(kernel.contracts);
  std::vector<llvm::Type*> types{b_.getPtrTy()};
  for (const VarRef& var : variables)
    types.push_back(var.type().is<BufferType>() ? types[0] : ops_.type(dtype_of(var)));
  if (is_parallel_body) types.insert(types.end(), {b_.getInt64Ty(), b_.getInt64Ty()});
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), types, false),
                                     llvm::GlobalValue::InternalLinkage, name, kernel.module);
  set_attributes(function_, kernel.target);
  // Inlining into the wrapper would turn noalias parameters into weaker metadata.
  function_->addFnAttr(llvm::Attribute::NoInline);
  context_ = function_->getArg(0);
  for (size_t i = 0; i < variables.size(); ++i) {
    llvm::Argument* argument = function_->getArg(static_cast<unsigned>(i + 1));
    argument->setName(variables[i]->name);
    const NodeHeader* key = variables[i].get();
    variables_[key] = argument;
    parameters_.insert(key);
    bool is_buffer = variables[i].type().is<BufferType>();
    if (!is_buffer) index_vars_.insert(key);
    if (is_buffer && kernel.noalias) argument->addAttr(llvm::Attribute::NoAlias);
  }
  if (is_parallel_body) {
    begin_ = function_->getArg(static_cast<unsigned>(types.size() - 2));
    end_ = function_->getArg(static_cast<unsigned>(types.size() - 1));
  }
  entry_ = setup_ = llvm::BasicBlock::Create(b_.getContext(), "entry", function_);
  start_ = llvm::BasicBlock::Create(b_.getContext(), "start", function_);
  b_.SetInsertPoint(start_);
  emitted_.emplace_back();
}

void FunctionEmitter::set_contraction(bool contracts) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(contracts);
  b_.setFastMathFlags(flags);
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, function_);
}

void FunctionEmitter::finish() {
  b_.CreateRet(b_.getInt32(0));
  b_.SetInsertPoint(setup_);
  if (uses_tiles_) configure_tiles();
  b_.CreateBr(start_);
}

// Gives all matrix registers their full size where the function begins, and gives them back where it returns: the
// system then has no more of them to save. Both together take as long as 20 products of tiles.
void FunctionEmitter::configure_tiles() {
  // Intel's Software Developer's Manual, volume 2, LDTILECFG: the palette, the bytes of a row and the rows of each
  // tile.
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (size_t tile = 0; tile < kTiles; ++tile) {
    bytes[16 + 2 * tile] = kTileBytes;
    bytes[48 + tile] = kTileRows;
  }
  llvm::Constant* contents = llvm::ConstantDataArray::get(b_.getContext(), bytes);
  auto* memory = new llvm::GlobalVariable(kernel_.module, contents->getType(), true, llvm::GlobalValue::InternalLinkage,
                                          contents, "tile_sizes");
  memory->setAlignment(llvm::Align(bytes.size()));
  memory->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
  for (llvm::BasicBlock& block : *function_) {
    auto* end = block.getTerminator();
    if (!end || !llvm::isa<llvm::ReturnInst>(end)) continue;
    llvm::IRBuilder<>(end).CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  }
}

void FunctionEmitter::emit_body(const Stmt& body) {
  stmt(body);
  finish();
}

void FunctionEmitter::emit_iterations(const For& loop, const std::optional<VarRef>& turns_with) {
  Value min = int64(loop.min);
  if (turns_with) turns_ = b_.CreateTrunc(variables_.at(turns_with->get()), b_.getInt1Ty());
  serial_loop(loop, b_.CreateNSWAdd(min, begin_), b_.CreateNSWAdd(min, end_), nullptr);
  finish();
}

// ---- Statements

void FunctionEmitter::stmt(const Stmt& node) {
  // Elements that earlier statements have loaded may have changed since.
  Temporarily emitted(emitted_, std::vector<Emitted>(1));
  match(
      node,
      [&](const Seq& seq) {
        for (const Stmt& inner : seq.stmts) stmt(inner);
      },
      [&](const BufferStore& store) { store_stmt(store); },  //
      [&](const For& loop) { for_stmt(loop, node.span()); }, [&](const While& loop) { while_stmt(loop); },
      [&](const IfThenElse& branch) { if_stmt(branch); }, [&](const Bind& bind) { define(bind.var, bind.value); },
      [&](const AllocBuffer& alloc) { alloc_buffer(alloc); },
      [&](const Evaluate& evaluate) {
        if (evaluate.value.type().is<PrimType>()) expr(evaluate.value);
      },
      [&](const Assert& assertion) { assert_stmt(assertion); },  //
      [&](const AttrStmt& attr) { stmt(attr.body); },
      [&](const Block& block) { RELAXC_CHECK(false, "{}: block '{}' is not lowered", kernel_.symbol, block.name); });
}

void FunctionEmitter::region(const Stmt& body) {
  shared_offsets_.emplace_back();
  stmt(body);
  shared_offsets_.pop_back();
}

void FunctionEmitter::for_stmt(const For& loop, const Span& span) {
  std::optional<int64_t> extent = as_int(loop.extent);
  index_vars_.insert(loop.var.get());
  if (is_index(loop.min) && is_non_negative(loop.min)) kernel_.non_negative_vars.insert(loop.var.get());
  switch (loop.kind) {
    case ForKind::kParallel:
      if (!in_parallel_) return parallel_loop(loop);
      break;
    case ForKind::kUnrolled:
      if (loop.annotations.get_int(annotation<"pragma_unroll_explicit">(), 1) == 0) break;  // LLVM is asked
      if (extent && unroll_factor_ * *extent <= kMaxUnroll) return unrolled_loop(loop, *extent);
      break;
    case ForKind::kThreadBinding:
    case ForKind::kLaunchThread:
      fail_unsupported(span, "loop '{}' is bound to the thread axis '{}'; CPUs have none", loop.var->name, loop.thread);
    case ForKind::kSerial:
    case ForKind::kVectorized:
      break;
  }
  Value min = int64(loop.min);
  Value end = b_.CreateNSWAdd(min, int64(loop.extent));
  const char* unroll = loop.kind == ForKind::kUnrolled        ? "llvm.loop.unroll.full"
                       : has_large_tile(loop, kernel_.target) ? "llvm.loop.unroll.disable"
                                                              : nullptr;
  serial_loop(loop, min, end, unroll);
}

// Counts in int64 for any type of the variable, so that addresses need no sign extension.
void FunctionEmitter::serial_loop(const For& loop, Value min, Value end, const char* unroll) {  // NOLINT: private
  llvm::BasicBlock *before = b_.GetInsertBlock(), *body = new_block("loop"), *after = new_block("loop_end");
  b_.CreateCondBr(b_.CreateICmpSLT(min, end), body, after);
  b_.SetInsertPoint(body);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2, loop.var->name);
  counter->addIncoming(min, before);
  Value value = counter;
  if (Value turns = std::exchange(turns_, nullptr)) {
    Value from_end = b_.CreateNSWSub(b_.CreateNSWAdd(min, b_.CreateNSWSub(end, b_.getInt64(1))), counter);
    value = b_.CreateSelect(turns, from_end, counter);
  }
  variables_[loop.var.get()] = ops_.cast(value, kInt64, dtype_of(loop.var));
  Temporarily around(around_, std::optional(loop.var));
  region(loop.body);
  Value next = b_.CreateNSWAdd(counter, b_.getInt64(1));
  counter->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
  if (unroll) {
    llvm::LLVMContext& context = b_.getContext();
    llvm::Metadata* hint = llvm::MDNode::get(context, llvm::MDString::get(context, unroll));
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, {nullptr, hint});
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b_.SetInsertPoint(after);
}

// Unrolls here rather than by LLVM's unroller: with constant indices SROA puts local buffers into registers at once.
void FunctionEmitter::unrolled_loop(const For& loop, int64_t extent) {
  DType dtype = dtype_of(loop.var);
  Value min = expr(loop.min);
  Temporarily factor(unroll_factor_, unroll_factor_ * std::max<int64_t>(extent, 1));
  Temporarily unrolled(in_unrolled_, true);
  varying_.insert(loop.var.get());
  for (int64_t i = 0; i < extent; ++i) {
    variables_[loop.var.get()] = b_.CreateAdd(min, ops_.int_constant(i, dtype));
    stmt(loop.body);
  }
}

// The body becomes a separate internal function with the captured variables as parameters. parallel_for calls a wrapper
// that loads them from a struct on this function's stack.
void FunctionEmitter::parallel_loop(const For& loop) {
  Variables captured;
  auto capture = [&](const VarRef& var) {
    if (!contains(captured, var) && variables_.contains(var.get()) && !same_node(var, loop.var))
      captured.push_back(var);
  };
  // In its every second iteration the loop around turns this one back.
  const bool turns = loop.annotations.get_bool(annotation<"turns_back">(), false) && around_;
  if (turns) capture(*around_);
  Stmt body_only = make(For(loop));
  for (const VarRef& var : free_vars(body_only)) {
    capture(var);
    if (var.type().is<BufferType>()) {  // the dims that row-major offsets need
      for (const VarRef& dim : free_vars(var.type())) capture(dim);
    }
  }
  std::string name = kernel_.symbol + ".parallel" + std::to_string(kernel_.num_bodies++);
  FunctionEmitter body(kernel_, name + ".body", captured, true);
  for (const VarRef& var : captured) {
    if (!index_vars_.contains(var.get())) body.index_vars_.erase(var.get());
  }
  body.index_vars_.insert(loop.var.get());
  body.emit_iterations(loop, turns ? around_ : std::nullopt);

  std::vector<llvm::Type*> fields;
  for (unsigned i = 0; i <= captured.size(); ++i) fields.push_back(body.function()->getArg(i)->getType());
  auto* closure_type = llvm::StructType::get(b_.getContext(), fields);
  auto* wrapper = llvm::Function::Create(
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false),
      llvm::GlobalValue::InternalLinkage, name, kernel_.module);
  set_attributes(wrapper, kernel_.target);
  llvm::IRBuilder<> w(llvm::BasicBlock::Create(b_.getContext(), "entry", wrapper));
  std::vector<Value> args;
  for (unsigned i = 0; i < fields.size(); ++i)
    args.push_back(w.CreateLoad(fields[i], w.CreateStructGEP(closure_type, wrapper->getArg(0), i)));
  args.insert(args.end(), {wrapper->getArg(1), wrapper->getArg(2)});
  w.CreateRet(w.CreateCall(body.function(), args));

  Value closure = stack_memory(closure_type, "closure");
  Value extent = int64(loop.extent);
  for (unsigned i = 0; i < fields.size(); ++i) {
    b_.CreateStore(i == 0 ? context_ : variables_.at(captured[i - 1].get()),
                   b_.CreateStructGEP(closure_type, closure, i));
  }
  Value positive = b_.CreateICmpSGT(extent, b_.getInt64(0));
  Value status = guarded(positive, b_.getInt32Ty(), [&] {
    return call_context(offsetof(relaxc_kernel_context, parallel_for), b_.getInt32Ty(),
                        {context_, extent, wrapper, closure});
  });
  return_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
}

void FunctionEmitter::while_stmt(const While& loop) {
  llvm::BasicBlock *header = new_block("while"), *body = new_block("while_body"), *after = new_block("while_end");
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  emitted_.emplace_back();
  b_.CreateCondBr(expr(loop.condition), body, after);
  emitted_.pop_back();
  b_.SetInsertPoint(body);
  region(loop.body);
  b_.CreateBr(header);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::if_stmt(const IfThenElse& branch) {
  Value condition = expr(branch.condition);
  llvm::BasicBlock *then_block = new_block("then"), *after = new_block("if_end");
  llvm::BasicBlock* else_block = branch.else_body ? new_block("else") : after;
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  region(branch.then_body);
  b_.CreateBr(after);
  if (branch.else_body) {
    b_.SetInsertPoint(else_block);
    region(*branch.else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void FunctionEmitter::assert_stmt(const Assert& assertion) {
  Value failed = b_.CreateNot(expr(assertion.condition));
  if (assertion.values.empty()) return return_if(failed, b_.getInt32(1), assertion.text());
  return_if(failed, b_.getInt32(1), [&] {
    auto* array = llvm::ArrayType::get(b_.getInt64Ty(), assertion.values.size());
    Value values = stack_memory(array, "values");
    for (size_t i = 0; i < assertion.values.size(); ++i) {
      Value value = int64(assertion.values[i]);
      b_.CreateStore(value, b_.CreateConstInBoundsGEP2_64(array, values, 0, i));
    }
    Value message = b_.CreateGlobalString(assertion.text(), "message");
    call_context(offsetof(relaxc_kernel_context, report), b_.getVoidTy(),
                 {context_, message, values, b_.getInt32(static_cast<uint32_t>(assertion.values.size()))});
  });
}

void FunctionEmitter::return_if(Value condition, Value status, const std::string& message) {
  return_if(condition, status, [&] {
    // Several threads may fail at once; any of their messages will do.
    Value error = context_member(offsetof(relaxc_kernel_context, error));
    llvm::StoreInst* store = b_.CreateStore(b_.CreateGlobalString(message, "message"), error);
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
  });
}

void FunctionEmitter::return_if(Value condition, Value status, const std::function<void()>& report) {
  llvm::BasicBlock *failed = new_block("failed"), *after = new_block("ok");
  llvm::MDBuilder weights(b_.getContext());
  b_.CreateCondBr(condition, failed, after, weights.createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(failed);
  emitted_.emplace_back();
  if (report) report();
  emitted_.pop_back();
  b_.CreateRet(status);
  b_.SetInsertPoint(after);
}

Value FunctionEmitter::context_member(uint64_t offset) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offset);
}

llvm::CallInst* FunctionEmitter::call_context(uint64_t offset, llvm::Type* result, const std::vector<Value>& args) {
  std::vector<llvm::Type*> types = map_each(args, [&](Value arg) -> llvm::Type* { return arg->getType(); });
  Value function = b_.CreateLoad(b_.getPtrTy(), context_member(offset));
  return b_.CreateCall(llvm::FunctionType::get(result, types, false), function, args);
}

llvm::AllocaInst* FunctionEmitter::stack_memory(llvm::Type* type, const std::string& name) {
  return llvm::IRBuilder<>(entry_, entry_->begin()).CreateAlloca(type, nullptr, name);
}

// ---- The ABI

// This is checked because LLVM ends the process at vectors of scalable length that the target lacks.
static void check_scalable(const PrimFuncRef& function, const Target& target) {
  walk_nodes(function, [&](const NodeRef& node) {
    if (!is_expr_kind(node.kind())) return true;
    Expr e = cast_handle<Expr>(node);
    const PrimType* type = e.type().as<PrimType>();
    bool is_scalable = op_name(e) == ops::kVscale || (type && type->dtype.is_scalable());
    if (is_scalable && !has_intrinsic(target, "llvm.aarch64.sve."))  // any of SVE
      fail_unsupported(node.span(), "vectors of scalable length need a processor with sve; the target is {} {}",
                       target.triple, target.cpu);
    return true;
  });
}

void emit_kernel(llvm::Module& module, const std::string& symbol, const PrimFuncRef& function, const Target& target) {
  check_scalable(function, target);
  std::vector<Buffer> buffers = buffer_params(function);
  Variables scalars = scalar_arguments(function);
  // A view and its source may be two params of a parallel loop's body.
  bool noalias = function->attrs.get_bool(attr_names::kNoAlias, true) && !uses_pointers(function);
  const bool contracts = target.has_fma && !computes_with_quantized(function);
  KernelState kernel{module, target, symbol, noalias, contracts, 0, {}};
  for (const VarRef& var : scalars) {
    DType dtype = dtype_of(var);
    if (dtype.lanes != 1 || dtype.is_handle() || dtype.is_complex())
      fail_unsupported(var.span(), "{}: scalar parameter '{}' is {}; only numbers are passed", symbol, var->name,
                       to_string(dtype));
  }
  for (const VarRef& dim : symbolic_dims(function)) kernel.non_negative_vars.insert(dim.get());
  Variables variables(buffers.begin(), buffers.end());
  variables.insert(variables.end(), scalars.begin(), scalars.end());
  FunctionEmitter body(kernel, symbol + ".body", variables, false);
  body.emit_body(function->body);

  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* wrapper = llvm::Function::Create(llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy()}, false),
                                         llvm::GlobalValue::ExternalLinkage, symbol, module);
  set_attributes(wrapper, target);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", wrapper));
  ValueEmitter ops(b, target);
  auto argument = [&](uint64_t offset) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), wrapper->getArg(0), offset));
  };
  std::vector<Value> args{argument(offsetof(relaxc_kernel_args, context))};
  Value data = buffers.empty() ? nullptr : argument(offsetof(relaxc_kernel_args, data));
  Value values = scalars.empty() ? nullptr : argument(offsetof(relaxc_kernel_args, scalars));
  for (size_t i = 0; i < buffers.size(); ++i)
    args.push_back(b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), data, i)));
  for (size_t i = 0; i < scalars.size(); ++i) {
    DType dtype = dtype_of(scalars[i]), given = dtype.is_float() ? kFloat64 : kInt64;
    Value value = b.CreateLoad(ops.type(given), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), values, i));
    args.push_back(ops.cast(value, given, dtype));
  }
  b.CreateRet(b.CreateCall(body.function(), args));
}

}  // namespace relaxc::codegen
