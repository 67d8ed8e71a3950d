#include "tests/text/read_back.h"

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"

namespace relaxc::test {

ReadBack read_back(std::string_view text, const OpTable& ops) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "given.py", ops, diagnostics);
  if (!diagnostics.has_errors()) verify(module, ops, diagnostics);
  if (diagnostics.has_errors()) return {false, {}};
  std::string printed = print_module(module);
  Diagnostics again;
  IRModule second = parse_module(printed, "printed.py", ops, again);
  if (again.has_errors()) return {true, "the print does not read: " + to_string(again.all()[0]) + "\n" + printed};
  if (!structural_equal(module, second)) return {true, "the print reads to another module:\n" + printed};
  std::string once_more = print_module(second);
  if (once_more != printed) return {true, "printing twice gives\n" + printed + "and then\n" + once_more};
  return {true, {}};
}

}  // namespace relaxc::test
