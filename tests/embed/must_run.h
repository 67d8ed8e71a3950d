// Runs a program that has to succeed.
#pragma once
#include <string>
#include <vector>

#include "tests/process.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

inline std::string must_run(const std::vector<std::string>& argv) {
  const Outcome outcome = run_program(argv, 600);
  INFO(argv[0] << " " << argv[1] << ": " << outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome.out;
}

}  // namespace relaxc::test
