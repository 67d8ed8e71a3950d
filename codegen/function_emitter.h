// Internal to codegen/: the emitter of one LLVM function, which is a kernel's body or the body of a parallel loop.
// Statements are in llvm_emit.cc, expressions in emit_expr.cc, buffers in emit_memory.cc and emit_packed.cc, calls of
// other functions in emit_external.cc. Includes LLVM.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/emit_value.h"
#include "ir/module.h"

namespace llvm {
class TargetLibraryInfoImpl;
}

namespace relaxc::codegen {

// State that the functions of one kernel share.
struct KernelState {
  llvm::Module& module;
  const Target& target;
  std::string symbol;
  bool noalias;                                             // buffers do not overlap (attr tir.noalias)
  bool contracts;                                           // a * b + c may be rounded once (rounding.h)
  int num_bodies = 0;                                       // parallel bodies made so far, for their names
  std::unordered_set<const NodeHeader*> non_negative_vars;  // symbolic dims, loop variables that start at >= 0
};

// Returns whether it is a call of a C function by name.
bool is_extern_call(const Expr& e);
// Returns whether LLVM knows the function: libm's and the like, which are called directly.
bool is_known_function(const llvm::TargetLibraryInfoImpl& known, const std::string& name);

// The variables that a function has as parameters.
using Variables = std::vector<VarRef>;

class FunctionEmitter {
 public:
  // Makes the internal function `int32_t name(context, variables..., [begin, end])`: buffers as pointers, bools as i1.
  FunctionEmitter(KernelState& kernel, const std::string& name, const Variables& variables, bool is_parallel_body);

  llvm::Function* function() const { return function_; }
  // Emits the kernel's body and `return 0`.
  void emit_body(const Stmt& body);
  // Emits the loop's body for iterations [begin, end) counted from loop.min, and `return 0`.
  void emit_iterations(const For& loop, const std::optional<VarRef>& turns_with);

 private:
  // ---- llvm_emit.cc
  void stmt(const Stmt& node);
  void for_stmt(const For& loop, const Span& span);
  void serial_loop(const For& loop, Value min, Value end, const char* unroll);  // unroll: LLVM's hint, or null
  void unrolled_loop(const For& loop, int64_t extent);
  void parallel_loop(const For& loop);
  void while_stmt(const While& loop);
  void if_stmt(const IfThenElse& branch);
  void assert_stmt(const Assert& assertion);
  // Emits a statement that is entered conditionally or more than once.
  void region(const Stmt& body);
  // Emits a call of the function at that offset of relaxc_kernel_context.
  llvm::CallInst* call_context(uint64_t offset, llvm::Type* result, const std::vector<Value>& args);
  Value context_member(uint64_t offset);
  // Allocates memory on this function's stack.
  llvm::AllocaInst* stack_memory(llvm::Type* type, const std::string& name);
  // Returns from the function with the status when the condition holds, after the code that `report` emits.
  void return_if(Value condition, Value status, const std::function<void()>& report = nullptr);
  void return_if(Value condition, Value status, const std::string& message);
  // Says whether what follows may be contracted.
  void set_contraction(bool contracts);
  llvm::BasicBlock* new_block(const char* name);
  void finish();
  void configure_tiles();

  // ---- emit_memory.cc
  void alloc_buffer(const AllocBuffer& alloc);
  std::pair<Value, Value> bytes_at_run_time(const BufferType& type);
  Value scratch(const Buffer& buffer, Value bytes);
  Value constant_memory(const Tensor& tensor, const std::string& name);
  void store_stmt(const BufferStore& store);
  Value load(const BufferLoad& load, DType dtype);
  // The place of an access: the element at `offset`, or for a vector that element and further ones.
  struct Place {
    Value offset = nullptr;     // int64
    int64_t stride = 0;         // elements between lanes
    Value distances = nullptr;  // of the lanes from `offset`, int32 or int64, where they have no common stride
    int lanes = 1;
  };
  Place place(const Buffer& buffer, const std::vector<Expr>& indices);
  Value lane_offset(const Place& place, int lane);
  Value pointers(const Buffer& buffer, const Place& place);
  Value pointer(const Buffer& buffer, Value offset, bool in_range);
  llvm::Type* element_type(const Buffer& buffer);  // in memory
  Value load_contiguous(const Buffer& buffer, Value offset, DType dtype, Value mask);
  // Loads lanes that are a few elements apart as the vectors that hold them; null where that is not faster.
  Value load_or_zero(const Buffer& buffer, Value offset, DType dtype, Value condition);
  Value load_strided(const Buffer& buffer, const Place& place, DType dtype, Value active);
  // Loads lanes whose distance is known at run time only one by one, which takes half the time of a gather; null for
  // other lanes.
  Value load_apart(const BufferLoad& load, DType dtype);
  // Returns the lanes of a masked access that stands for one of `dtype`, or 0 where none does. LLVM splits a vector of
  // 28 lanes in memory into parts of 16, 8 and 4, and one of 32 lanes whose last 4 are masked out into two.
  int padded_lanes(const Buffer& buffer, DType dtype);
  Value load_scalar(const Buffer& buffer, Value offset, DType dtype, Value condition);
  void store_contiguous(const Buffer& buffer, Value offset, Value value, DType dtype, Value mask);
  // Returns how many lanes of a mask are set if these are the first ones, where it says that (lane < count); else null.
  Value count_of_first_lanes(Value mask);
  bool has_slow_masks(DType dtype) const;
  // Stores the first lanes of a vector of 2, 4, 8... as vectors of half, a quarter... of the lanes.
  void store_first_lanes(Value vector, Value address, llvm::Align alignment, Value count);

  // ---- emit_lookup.cc
  // Loads elements of a table of bytes (tir/analysis/byte_tables.h); null where the target has no instructions for it.
  Value lookup(const BufferLoad& load, DType dtype);
  Value lookup_vector(const std::vector<Value>& table, Value index);
  Value lookup_nibbles(Value table, Value index);

  // ---- emit_packed.cc
  Value lane_positions(const Place& place);
  Value packed_shift(Value position, DType dtype);
  Value load_packed(const Buffer& buffer, const Place& place, DType dtype, Value active);
  void store_packed(const Buffer& buffer, const Place& place, Value value, DType dtype, Value active);
  void store_packed_element(const Buffer& buffer, Value position, Value bits);
  void store_packed_in_turn(const Buffer& buffer, Value positions, Value bits, Value active, int lanes);

  // Returns the lanes left active by the surrounding vector if_then_else and the access's predicate, or null for all.
  Value active_lanes(const std::optional<Expr>& predicate, int lanes);

  // ---- emit_expr.cc
  Value expr(const Expr& node);
  Value emit_expr(const Expr& node);
  Value call(const Call& call, const Expr& node);
  Value if_then_else(const Expr& condition, const Expr& a, const Expr& b);
  Value masked_if_then_else(Value condition, const Expr& a, const Expr& b);
  Value variable(const VarRef& var);
  void define(const VarRef& var, const Expr& value);
  // Returns whether the expression has constants, loop variables and symbolic values only, and so does not overflow.
  bool is_index(const Expr& node);
  bool is_non_negative(const Expr& node);
  // Emits an integer expression as int64.
  Value int64(const Expr& node);
  // Emits an index as int64. Copies of an unrolled loop's body often index with equal subexpressions: the first copy
  // computes these, and the others use its values. LLVM would find them too, but only after reading every copy.
  Value offset(const Expr& index);
  struct OffsetParts {
    std::optional<Expr> shared, varying;  // their sum is the index
  };
  OffsetParts split_offset(const Expr& index) const;
  // Runs emit() where `condition` holds. The result is 0 elsewhere.
  template <class F>
  Value guarded(Value condition, llvm::Type* type, F emit);

  // ---- emit_builtin.cc
  Value builtin(const Call& call, const Expr& node);
  Value prefetch(const Call& call, const Expr& node);
  Value llvm_intrinsic(const Call& call, const Expr& node);
  Value reinterpreted(const Expr& value, const Expr& node);
  Value shuffled(const Call& call, const Expr& node);
  Value shuffled_pair(const Tuple& vectors, const Tuple& numbers);

  // ---- emit_external.cc
  Value extern_call(const Call& call, const Expr& node);
  Value c_value(const Expr& e);
  Value c_function(const std::string& name, llvm::FunctionType* signature);
  Value packed_call(const Call& call, const Expr& node);
  struct PackedArgument {
    uint32_t kind;  // a relaxc_value_kind
    int64_t dtype;
    Value value;
    Value shape = nullptr;
    uint64_t ndim = 0;
  };
  PackedArgument packed_argument(const Expr& e);
  PackedArgument packed_tensor(Value data, const std::vector<Expr>& shape, DType dtype);

  KernelState& kernel_;
  llvm::Function* function_;
  llvm::IRBuilder<> b_;
  ValueEmitter ops_;
  llvm::BasicBlock* entry_;  // allocas
  llvm::BasicBlock* setup_;  // the end of the setup code: scratch whose size is known on entry
  llvm::BasicBlock* start_;  // the first statement
  Value context_;
  Value begin_ = nullptr, end_ = nullptr;  // parallel bodies only
  std::optional<VarRef> around_;           // the variable of the innermost serial loop
  Value turns_ = nullptr;                  // whether this parallel body runs its iterations in the reverse order
  bool in_parallel_;
  bool uses_tiles_ = false;  // matrix registers
  int64_t stack_bytes_ = 0;
  int64_t unroll_factor_ = 1;                               // copies that the surrounding unrolled loops make
  bool in_unrolled_ = false;                                // whether there are such loops
  std::unordered_set<const NodeHeader*> varying_;           // variables with another value in each copy
  std::unordered_map<const NodeHeader*, Value> variables_;  // scalars: the value; buffers: the pointer
  std::unordered_set<const NodeHeader*> parameters_;        // variables known on entry
  // The maps over nodes keep them alive, so that no other node can get the same address.
  std::unordered_map<const NodeHeader*, std::pair<Expr, bool>> is_index_;
  std::unordered_set<const NodeHeader*> index_vars_;  // variables that is_index() takes as leaves
  // The values already emitted for the statement's expressions, so that a shared subexpression is emitted once. There
  // is one layer per region that is entered conditionally: values of outer layers are valid inside, not the reverse.
  using Emitted = std::unordered_map<const NodeHeader*, std::pair<Expr, Value>>;
  std::vector<Emitted> emitted_;
  // An offset that copies of unrolled loops share. There is one layer per region that is entered conditionally or more
  // than once.
  struct SharedOffset {
    Expr index;
    OffsetParts parts;
    Value shared;
  };
  std::vector<std::unordered_map<const NodeHeader*, SharedOffset>> shared_offsets_{1};
  Value mask_ = nullptr;  // inside a vector if_then_else: the lanes that select this side
};

template <class F>
Value FunctionEmitter::guarded(Value condition, llvm::Type* type, F emit) {
  llvm::BasicBlock *before = b_.GetInsertBlock(), *then = new_block("guarded"), *after = new_block("after");
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  shared_offsets_.emplace_back();
  Value value = emit();
  shared_offsets_.pop_back();
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  if (type->isVoidTy()) return nullptr;
  llvm::PHINode* phi = b_.CreatePHI(type, 2);
  phi->addIncoming(value, then_end);
  phi->addIncoming(llvm::Constant::getNullValue(type), before);
  return phi;
}

// Turns a lowered PrimFunc into LLVM IR: adds `int32_t symbol(const relaxc_kernel_args*)` to the module as an external
// function. Everything else that it adds for the kernel is internal.
//
// A lowered PrimFunc does not contain a Block or a thread-bound loop. Every buffer is dense (several dims are taken as
// row-major), at most the last index of an access is a vector, and params are buffers and scalars. A violation
// is a bug of the lowering passes and fails a check. Valid lowered code that is not supported throws a CompileError.
void emit_kernel(llvm::Module& module, const std::string& symbol, const PrimFuncRef& function, const Target& target);

}  // namespace relaxc::codegen
