// Builds, compiles and runs hand-written tensor programs.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "ir/module.h"
#include "vm/thread_pool.h"

namespace relaxc::codegen {

inline Expr imm(int64_t value) { return int_imm(value); }
inline Expr f32(double value) { return float_imm(value); }
inline Buffer flat_buffer(std::string name, DType dtype, Expr size) {
  return make_buffer(std::move(name), dtype, {std::move(size)});
}
inline Buffer flat_buffer(std::string name, DType dtype, int64_t size) {
  return flat_buffer(std::move(name), dtype, imm(size));
}
// A cast to the element type, for scalars and vectors.
inline Expr cast_elements(const Expr& value, DType dtype) {
  return cast_to(value, dtype.with_lanes(dtype_of(value).lanes));
}
inline Stmt alloc(const Buffer& buffer) { return make(AllocBuffer{buffer, {}}); }
inline Expr masked_load(const Buffer& buffer, const Expr& index, const Expr& predicate) {
  BufferLoad payload = *cast<BufferLoad>(load(buffer, {index})).operator->();
  payload.predicate = predicate;
  return make(payload, load(buffer, {index}).type());
}
inline Stmt masked_store(const Buffer& buffer, const Expr& value, const Expr& index, const Expr& predicate) {
  return make(BufferStore{buffer, value, {index}, predicate});
}
inline PrimFuncRef prim_func(std::vector<VarRef> params, std::vector<Stmt> body, Attrs attrs = {}) {
  return make_prim_func({std::move(params), seq(std::move(body)), std::move(attrs)});
}

// The targets that this machine can run, by name; "host" first.
std::vector<std::string> runnable_targets();

struct RunResult {
  int32_t status;
  std::string error;
};
// One call of one kernel on a pool of so many threads.
class CompiledKernel {
 public:
  explicit CompiledKernel(const PrimFuncRef& function, const std::string& target = "host", int opt_level = 2);
  RunResult run(std::vector<void*> data, std::vector<int64_t> scalars = {}, int threads = 1) const;

 private:
  std::shared_ptr<const vm::KernelLibrary> library_;
};

}  // namespace relaxc::codegen
