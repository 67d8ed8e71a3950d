#include "builtins/printing.h"

#include <algorithm>
#include <cstdio>

#include "support/joined.h"
#include "support/printable.h"
#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc::vm::printing {

namespace {

bool holds_integers(const Tensor& tensor) { return tensor.dtype().is_integral() || tensor.dtype().is_bool(); }

// Returns "[1, 2, 3, ...]" with only the first elements.
std::string elements(const Tensor& tensor) {
  constexpr int64_t kShown = 16;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(tensor.size(), kShown); ++i)
    texts.push_back(tensor.dtype().is_string() ? formatted("'{}'", tensor.string(i))
                    : holds_integers(tensor)   ? std::to_string(tensor.as_int(i))
                                               : formatted("{:g}", tensor.as_double(i)));
  return formatted("[{}{}]", joined(texts), tensor.size() > kShown ? ", ..." : "");
}

// The texts may be names from a model.
std::string text_of(Arguments arguments, const char* separator) {
  auto text_of_one = [](const Value& argument) {
    if (const auto* text = argument.get_if<std::string>()) return *text;
    const auto* tensor = argument.get_if<Tensor>();
    return tensor ? formatted("{} {}", describe(*tensor), elements(*tensor)) : describe(argument);
  };
  return printable_lines(joined(arguments, text_of_one, separator));
}
Value print_line(BuiltinContext& context, const std::string& line) {
  print_to(context.output != nullptr ? context.output : stdout, line + "\n");
  return {};
}

}  // namespace

Value print(BuiltinContext& context, Arguments arguments) { return print_line(context, text_of(arguments, " ")); }
Value print_parts(BuiltinContext& context, Arguments arguments) { return print_line(context, text_of(arguments, "")); }

Value check(BuiltinContext&, Arguments arguments) {
  if (arguments.empty()) throw_runtime_error("got no condition");
  const auto* tensor = arguments[0].get_if<Tensor>();
  if (tensor && (!holds_integers(*tensor) || tensor->size() != 1))
    throw_runtime_error("the condition is {}, expected one bool", describe(*tensor));
  if ((tensor ? tensor->as_int(0) : arguments[0].integer()) != 0) return {};
  std::string message = text_of(arguments.subspan(1), "");
  throw_runtime_error("assertion failed{}{}", message.empty() ? "" : ": ", message);
}

}  // namespace relaxc::vm::printing
