// Tensor programs that schedules are tried on: each with numbers for its dims, and with symbolic ones.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tir/compute.h"

namespace relaxc::test {

struct TestProgram {
  std::string name;
  PrimFuncRef function;
  // Dims by name; empty for static programs. Several, some with a dim of 0, all from one schedule.
  std::vector<std::map<std::string, int64_t>> sizes;
};
std::vector<TestProgram> schedule_programs();
// The same with one dim that is known to be 0, beside numbers and beside variables, for each dim.
std::vector<TestProgram> empty_programs();

// The dims of a program: numbers, or variables; one of them may be 0.
struct Dims {
  bool symbolic;
  std::string empty = {};
  std::map<std::string, Expr> vars = {};
  Expr operator()(const std::string& name, int64_t number) {
    if (name == empty) return int_imm(0);
    if (!symbolic) return int_imm(number);
    return vars.try_emplace(name, make_dim(name)).first->second;
  }
};
struct ProgramRow {
  const char* name;
  PrimFuncRef (*build)(Dims&);
};
// Rows of programs_operators.cc: one operator of networks each.
std::span<const ProgramRow> operator_programs();
// Programs as text, all of them symbolic (programs_written.cc).
const IRModule& written_programs();

}  // namespace relaxc::test
