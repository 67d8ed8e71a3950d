// Which numbers a model computes with (--precision), and the table of what stays in float32 then.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "passes/pass.h"

namespace relaxc {

struct PrecisionName {
  Precision value;
  const char* name;  // on the command line and in the interfaces for C and Python
  const char* doc;
};
std::span<const PrecisionName> precisions();
std::optional<Precision> find_precision(std::string_view name);
const PrecisionName& describe(Precision precision);
// Returns "fp32, bf16, ...", for messages.
std::string precision_list();

// Returns the dtype of 16 bits in which a precision other than fp32 stores what it does not keep in float32.
DType narrow_dtype(Precision precision, const Target& target);
// Returns whether the target multiplies pairs of such numbers, and adds them up in float32, faster than float32.
bool has_fast_products(DType narrow, const Target& target);

// An operator of a graph that might store or multiply numbers of 16 bits.
struct PrecisionQuestion {
  const Call& call;
  const Type& result;
  DType narrow;
  bool chooses;      // whether what gains no time stays in float32: --precision mixed, and models of 16 bits themselves
  bool is_in_bands;  // whether it is a product of which kernels of cells read parts (passes/product_bands.h)
  const Target& target;
  bool has_products() const { return has_fast_products(narrow, target); }
};

// A row says which operators keep their operands in float32, and why. docs/precision.md shows the table.
struct KeptInFloat32 {
  const char* operators;  // their names in texts, without "R.", separated by blanks
  const char* when;       // empty: always
  const char* reason;
  bool (*applies)(const PrecisionQuestion& question) = nullptr;  // null: always
};
std::span<const KeptInFloat32> kept_in_float32();
// Returns the first row that applies; null where there is none.
const KeptInFloat32* find_kept_in_float32(const PrecisionQuestion& question);
// Returns whether the operator reads float32 in every case.
bool always_reads_float32(std::string_view op);

}  // namespace relaxc
