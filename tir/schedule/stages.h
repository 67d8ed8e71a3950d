// A tensor program before scheduling, seen as what it is: a list of stages, each one block in its own loop nest. The
// default schedules (schedule_*.cc) turn each stage into a new nest.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/target.h"

namespace relaxc {

struct Stage {
  std::vector<IterVar> axes;  // spatial axes first; domains start at 0
  size_t num_spatial = 0;
  Ref<Block> block;

  std::vector<Expr> extents() const;
  bool reduces() const { return num_spatial < axes.size(); }
  // The body when it is a single store, else null.
  const BufferStore* single_store() const { return block->body.as<BufferStore>(); }
};

struct StagedProgram {
  PrimFuncRef function;
  std::vector<Stage> stages;
  std::vector<Buffer> intermediates;

  bool is_intermediate(const Buffer& buffer) const;
  // The stages that read the buffer, by position.
  std::vector<size_t> readers(const Buffer& buffer) const;
};

// The program's stages when it has that form: in the root block or at the top, a sequence of perfect serial loop nests,
// each around one block whose axes are the loops one to one, without predicate. nullopt for anything else: scheduled
// programs, user code of another shape.
std::optional<StagedProgram> find_stages(const PrimFuncRef& function);
// The program with each stage's nest replaced by the statements given, and the intermediates that are still used.
PrimFuncRef replace_stages(const StagedProgram& program, std::vector<Stmt> nests);

// Elementwise stages substituted into their readers, where that saves memory traffic without repeating work.
StagedProgram inline_stages(StagedProgram program);

// The change of the access's row-major position when the variable grows by one; nullopt when that is not constant in
// it.
std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts);

// The stage as parallel, vectorized loops. `facts` know the dims.
Stmt schedule_elementwise(const Stage& stage, const Target& target, const Analyzer& facts);
// The stage as register-tiled (contractions), vectorized or at least parallel loops, the epilogue applied to each
// result element. The epilogue is an elementwise stage that reads this one's output at its own position.
Stmt schedule_reduction(const Stage& stage, const Stage* epilogue, const Target& target, const Analyzer& facts);
// Whether the stage reads operands again and again over some axis (a product with operands that miss an axis).
bool is_contraction(const Stage& stage);
// Whether `epilogue` can be applied to each result of `stage`.
bool fits_as_epilogue(const Stage& stage, const Stage& epilogue, const StagedProgram& program);
// The stage as it is, its outermost spatial loops parallel.
Stmt schedule_fallback(const Stage& stage);

// Loop variables, axes and symbolic dims of int32 become int64, and the index arithmetic with them; stored values keep
// their dtype.
PrimFuncRef promote_indices(const PrimFuncRef& function);

// The default schedule of a whole program; the program itself when it has no stages or the attribute tir.is_scheduled.
PrimFuncRef default_schedule(const PrimFuncRef& function, const Target& target);

}  // namespace relaxc
