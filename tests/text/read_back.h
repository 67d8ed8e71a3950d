// Properties that hold of every text, also of one that is not a module.
#pragma once
#include <string>
#include <string_view>

#include "ir/op.h"

namespace relaxc::test {

struct ReadBack {
  bool valid = false;  // it reads and verifies
  std::string broken;  // why that breaks a promise; empty: it does not
};
// Text reads to an error or to a module; one that verifies prints, and its print reads back equal and prints the same.
ReadBack read_back(std::string_view text, const OpTable& ops);

}  // namespace relaxc::test
