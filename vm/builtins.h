// Functions that bytecode calls by name: the built-in table, and the registry for the functions of a host.
#pragma once
#include <array>
#include <cstdio>
#include <map>

#include "vm/kernel_table.h"
#include "vm/memory.h"
#include "vm/value.h"

namespace relaxc::vm {

// The parts of the calling session that a builtin may use.
struct BuiltinContext {
  MemoryPool& memory;
  relaxc_kernel_context* kernels = nullptr;  // for parallel_for
  std::FILE* output = nullptr;               // where vm.builtin.print writes; null: stdout

  // Returns an uninitialised tensor from the session's pool.
  Tensor empty(std::vector<int64_t> shape, DType dtype);
};

// Throws RuntimeError on unsupported arguments.
using BuiltinFunction = std::function<Value(BuiltinContext&, std::span<const Value>)>;

inline constexpr int kAnyNumber = -1;
struct Builtin {
  std::string_view name;
  Value (*function)(BuiltinContext&, std::span<const Value>);
  int num_arguments;  // or kAnyNumber
  std::string_view doc;
  bool pure = true;  // a call has no effect other than its result

  // Calls the function; throws where the number of arguments is wrong.
  Value operator()(BuiltinContext& context, std::span<const Value> arguments) const;
};
// The builtins that are linked in: those of this room, and those of builtins/ or none.
std::array<std::span<const Builtin>, 2> builtins();
const Builtin* find_builtin(std::string_view name);  // null when there is none

// Returns whether a name is that of a builtin outside of this room, which builtins/ has or nothing.
bool is_outside(std::string_view builtin);

// The table of builtins/, of functions that few programs call. It is absent where it is not linked in: then they are a
// library, which open_builtin() of vm/shipped_libraries.h opens.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const std::span<const Builtin> relaxc_builtins;

// A kernel on tensors with their shapes; returns a status as C kernels do.
using TensorKernel = std::function<int32_t(std::span<const Tensor* const> tensors, relaxc_kernel_context* context)>;

// The host's functions (R.call_packed) and C kernels (R.call_dps_packed), for Program; the built-in names are reserved.
class Registry {
 public:
  Registry& add_function(std::string name, BuiltinFunction function);
  Registry& add_kernel(std::string name, relaxc_kernel kernel);
  // Adds a function of DLPack tensors, for R.call_packed and R.call_dps_packed.
  Registry& add_packed(std::string name, relaxc_packed_function function);
  const BuiltinFunction* find_function(std::string_view name) const;
  relaxc_kernel find_kernel(std::string_view name) const;  // nullptr when there is none
  const TensorKernel* find_tensor_kernel(std::string_view name) const;
  bool has(std::string_view name) const;

 private:
  struct Entry {
    BuiltinFunction function;
    relaxc_kernel kernel = nullptr;
    TensorKernel tensor_kernel;
  };
  const Entry* find(std::string_view name) const;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace relaxc::vm
