// A compiled module without its machine code: bytecode, tables and constants. Immutable once built; threads share it.
#pragma once
#include <limits>
#include <map>

#include "vm/value.h"

namespace relaxc::vm {

using Word = int64_t;  // of code (vm/bytecode.h)

// A dim of a declared type: a number, or an expression over symbolic values such as "n" or "4 * m".
struct DimInfo {
  int64_t value = -1;  // -1: see text
  std::string text;    // empty for a number
  // The numbers that a symbolic value may be; those of an expression are not stated.
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
  friend bool operator==(const DimInfo&, const DimInfo&) = default;
};

// The declared type of a parameter or a result, for inspection and for the checks of Session::run.
struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kTensor;  // kNone: any
  std::optional<DType> dtype;           // of a tensor or scalar; nullopt: any
  std::optional<std::vector<DimInfo>>
      dims;                            // of a tensor or shape, nullopt: any rank. The value of a scalar, if stated
  std::vector<ValueInfo> fields = {};  // of a tuple; the item of a sequence; key and value of a map. Without names
  bool is_optional = false;            // the value may be none instead
  friend bool operator==(const ValueInfo&, const ValueInfo&) = default;
};
// Returns "float32[n, 4 * m]", "optional(sequence(string[...]))", "map(int64, float32[])".
std::string type_text(const ValueInfo& info);
// Returns the same after "x: ".
std::string to_string(const ValueInfo& info);

// Parameters are in registers 0, 1, ... at entry; slots start unwritten.
struct Function {
  std::string name;
  bool is_public = true;  // the host may run any function; one that is private is not the default
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;  // flat: a tuple result has one entry per tensor
  int64_t num_registers = 0;
  std::vector<std::string> slot_names;  // one per slot; the symbolic expression it holds, "" for a temporary
  int64_t code_begin = 0;               // words of Executable::code
  int64_t code_end = 0;
  // Pairs of a word offset in the code and a string such as "node 'conv_1' (Conv)", or -1, for errors from there on.
  std::vector<Word> places;
  friend bool operator==(const Function&, const Function&) = default;
};

enum class KernelSource : uint8_t {
  kArtifact,  // machine code that came with this executable: `symbol` has the prefix kKernelPrefix
  kRegistry,  // brought by the host under the name `symbol` (R.call_dps_packed)
};
inline constexpr std::string_view kKernelPrefix = "relaxc_k_";

struct KernelInfo {
  std::string symbol;
  std::string display_name;  // "fused_conv2d_relu"; call sites may add a label with the node's name
  KernelSource source = KernelSource::kArtifact;
  int64_t num_tensors = 0;
  int64_t num_scalars = 0;
  // For profiles: formulas (vm/formula.h) of the arithmetic operations and of the accesses to each tensor, and how the
  // kernel was scheduled. Empty where that is not known.
  std::string operations = {};
  std::vector<std::string> accesses = {};
  std::string rule = {};
  friend bool operator==(const KernelInfo&, const KernelInfo&) = default;
};

// Keys of Executable::metadata: kRefusedKey + NAME says why the module's NAME cannot be run, kOtherwiseKey + NAME is
// the function that runs instead where dims fail the checks of NAME.
inline constexpr std::string_view kRefusedKey = "refused.", kOtherwiseKey = "otherwise.";

struct Executable {
  std::vector<Function> functions;
  std::vector<Word> code;
  std::vector<KernelInfo> kernels;
  std::vector<std::string> builtins;
  std::vector<std::string> strings;
  std::vector<Tensor> constants;  // read-only; may be views of a mapped file
  std::map<std::string, std::string> metadata;

  const Function* find_function(std::string_view name) const;  // null when there is none
  // Returns "main", or the only public function; null when there is neither.
  const Function* default_function() const;
  std::span<const Word> code_of(const Function& function) const {
    return std::span(code).subspan(static_cast<size_t>(function.code_begin),
                                   static_cast<size_t>(function.code_end - function.code_begin));
  }
};

}  // namespace relaxc::vm
