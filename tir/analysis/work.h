// How much a tensor program has to do, as formulas over the dims of its params: for profiles, which compare the time of
// a kernel with what the machine needs at least.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace relaxc {

// A formula is a text such as "2 * t0[0] * 768", where t0[0] is the first dim of the first buffer param, with the
// operators + - * // %, min(a, b) and max(a, b) (vm/formula.h computes it). It is empty where the program does not
// tell, as in a loop that ends by a condition.
struct Work {
  // Arithmetic on values, not on indices: an addition or multiplication counts 1, a function such as exp as many as it
  // takes about.
  std::string operations;
  // The loads and stores of each buffer param, in order. It may be more than its elements.
  std::vector<std::string> accesses;
};

// Returns the work of the program as it stands: a schedule that computes something twice, or in padded lanes, adds to
// it.
Work work_of(const PrimFuncRef& program);

// The dims of each buffer param.
using ParamShapes = std::vector<std::vector<Expr>>;
// Returns the formula of a number for a program with params of these shapes; empty where they do not tell.
std::string formula_of(const Expr& number, const ParamShapes& params);
// Returns a formula about params of the shapes `own` as one about the params of another program.
std::string in_terms_of(const ParamShapes& params, const std::string& formula, const ParamShapes& own);

}  // namespace relaxc
