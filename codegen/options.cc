#include "codegen/options.h"

#include <type_traits>

#include "codegen/target.h"
#include "passes/precision.h"
#include "support/lists.h"

namespace relaxc {

std::vector<std::string> names_of_values(Precision) {
  return map_each(precisions(), [](auto& row) { return std::string(row.name); });
}
std::vector<std::string> names_of_values(OutOfRange) { return {"error", "clamp"}; }

std::string CompileOption::text(CompileSettings settings) const {
  auto text_of = [](const auto* of) -> std::string {
    using T = std::remove_cvref_t<decltype(*of)>;
    if constexpr (std::is_same_v<T, bool>) return *of ? "yes" : "";
    if constexpr (std::is_enum_v<T>) return names_of_values(*of).at(static_cast<size_t>(*of));
    if constexpr (!std::is_enum_v<T>) return fmt::format("{}", *of);
  };
  return std::visit(text_of, value(settings));
}

std::span<const CompileOption> compile_options() {
  using enum OptionGroup;
  using S = CompileSettings;
  using Value = CompileOption::Value;
  static const std::string targets = codegen::target_forms(),
                           numbers = "numbers that products read: " + precision_list() + " (docs/precision.md)";
  static const CompileOption rows[] = {
      {kSubject, "--target", "target", targets.c_str(), [](S& s) -> Value { return &s.target; }},
      {kSubject, "--strict", "strict", "make contradictions in a model errors, not warnings",
       [](S& s) -> Value { return &s.strict; }},
      {kSubject, "--function", "function", "the function that is run or compiled: also a tensor program",
       [](S& s) -> Value { return &s.function; }},
      {kPasses, "--passes", "passes", "passes and pipelines by name", [](S& s) -> Value { return &s.passes; }},
      {kPasses, "-O", "opt_level", "LLVM's effort", [](S& s) -> Value { return &s.opt_level; }, 3},
      {kNumbers, "--check-bounds", "check_bounds",
       "machine code tests every index that is not proven to be in range (docs/relaxc.md)",
       [](S& s) -> Value { return &s.check_bounds; }},
      {kNumbers, "--fast-int8", "fast_int8",
       "sums of two products of bytes may be clamped to 16 bits, where that is faster (docs/quantize.md)",
       [](S& s) -> Value { return &s.fast_int8; }},
      {kNumbers, "--winograd-error", "winograd_error",
       "the error allowed, times that of direct sums; 0: none (docs/relaxc.md)",
       [](S& s) -> Value { return &s.winograd_error; }, 0, "TIMES"},
      {kNumbers, "--precision", "precision", numbers.c_str(), [](S& s) -> Value { return &s.precision; }},
      {kNumbers, "--gather", "gather", "indices out of range: error, or clamp to the nearest element",
       [](S& s) -> Value { return &s.gather; }},
  };
  return rows;
}

}  // namespace relaxc
