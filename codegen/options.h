// The table of the compiler's options that are one value each.
#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/compile.h"

namespace relaxc {

// The subjects of options, in the order of --help.
enum class OptionGroup : uint8_t { kSubject, kPasses, kNumbers };

// A row gives an option its flag, its help, its note in artifacts, and its part in the keys of caches and in the
// commands that reproduce errors. tests/codegen/options_test.cc knows where else it is to stand.
struct CompileOption {
  using Value = std::variant<bool*, int*, double*, std::string*, Precision*, OutOfRange*>;
  OptionGroup group;
  const char* flag;  // of the command line: "--fast-int8"
  const char* name;  // in C, in Python and in notes: "fast_int8"
  const char* help;
  Value (*value)(CompileSettings& settings);
  int most = 0;           // of a whole number
  const char* unit = "";  // of a number, in --help
  // Returns the value; "" for a flag that is off.
  std::string text(CompileSettings settings) const;
  bool is_flag() const { return std::holds_alternative<bool*>(value(*std::make_unique<CompileSettings>())); }
  bool is_given(const CompileSettings& settings) const { return text(settings) != text({}); }
};
std::span<const CompileOption> compile_options();

// Return the names of the values, in the order of the enum.
std::vector<std::string> names_of_values(Precision);
std::vector<std::string> names_of_values(OutOfRange);

}  // namespace relaxc
