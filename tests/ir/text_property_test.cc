// Every operator's tensor program, as lowered from the table, scheduled and lowered to plain loops, prints as text that
// parses back equal, and passes the verifier.
#include <random>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/catch.h"
#include "tir/lower/lower.h"
#include "tir/schedule/stages.h"

using namespace relaxc;

namespace {

const OpTable& op_table() {
  static const OpTable kTable = make_op_table();
  return kTable;
}

void check_program(const std::string& name, const PrimFuncRef& program) {
  IRModule module;
  module.functions.emplace("f", program);
  std::string text = print_module(module);
  INFO(name << "\n" << text);
  Diagnostics problems;
  verify(module, op_table(), problems);
  Diagnostics diagnostics;
  IRModule again = parse_module(text, "f.py", op_table(), diagnostics);
  for (const Diagnostics* list : {&problems, &diagnostics}) {
    for (const Diagnostic& diagnostic : list->all()) FAIL_CHECK(to_string(diagnostic));
  }
  std::string difference;
  EqualOptions options;
  options.difference = &difference;
  bool equal = structural_equal(module, again, options);
  INFO("first difference: " << difference);
  CHECK(equal);
  CHECK(print_module(again) == text);
}

Expr tensor(const char* name, std::vector<Expr> shape, DType dtype) {
  return make_var(name, tensor_type(std::move(shape), dtype));
}

// Operands to try an operator on; it takes the first combination that its infer accepts.
std::vector<std::vector<Expr>> candidates(size_t count) {
  VarRef n = make_dim("n");
  std::vector<Expr> pool = {tensor("x", {n, int_imm(8)}, kFloat32),
                            tensor("v", {int_imm(8)}, kFloat32),
                            tensor("img", {n, int_imm(4), int_imm(8), int_imm(8)}, kFloat32),
                            tensor("w", {int_imm(4), int_imm(4), int_imm(3), int_imm(3)}, kFloat32),
                            tensor("i", {n, int_imm(8)}, kInt64),
                            tensor("b", {n, int_imm(8)}, kBool),
                            shape_expr({n, int_imm(8)}),
                            int_imm(2),
                            float_imm(1.5),
                            tensor("s", {}, kFloat32),
                            tensor("seq", {n, int_imm(4), int_imm(16)}, kFloat32),
                            tensor("w1", {int_imm(4), int_imm(4), int_imm(3)}, kFloat32),
                            tensor("c", {int_imm(4)}, kFloat32)};
  pool.push_back(tuple({pool[0], pool[0]}));
  std::vector<std::vector<Expr>> result = {{}};
  for (size_t i = 0; i < count && result.size() < 40000; ++i) {
    std::vector<std::vector<Expr>> longer;
    for (const std::vector<Expr>& prefix : result) {
      for (const Expr& arg : pool) {
        longer.push_back(prefix);
        longer.back().push_back(arg);
      }
    }
    result = std::move(longer);
  }
  return result;
}

}  // namespace

TEST_CASE("programs of all operators survive printing and parsing", "[text]") {
  size_t lowered = 0, rows = 0;
  std::string missed;
  for (const OpRow& row : op_table().rows()) {
    if (!row.legalize) continue;
    ++rows;
    size_t count = row.inputs.size();
    bool done = false;
    if (count > 3) count = 3;
    for (const std::vector<Expr>& args : candidates(count)) {
      Attrs attrs;
      for (const OpAttr& attr : row.attrs) {
        if (!attr.otherwise.is_none()) attrs.set(attr.name, attr.otherwise);
      }
      Call call{op_ref(row.name), args, attrs, {}};
      try {
        infer_call_type(call, {}, op_table());
        PrimFuncRef program = row.legalize(OpCall{call, {}});
        // The graph's dims become the program's own, as legalize makes them.
        PrimFunc copy = *program;
        for (const VarRef& var : free_vars(program)) copy.params.push_back(var);
        program = with_fresh_variables(make_prim_func(std::move(copy)));
        check_program(row.name, program);
        PrimFuncRef scheduled = default_schedule(program, Target{});
        check_program(row.name + ", scheduled", scheduled);
        check_program(row.name + ", lowered", lower_program(scheduled));
        done = true;
      } catch (const CompileError&) {
        continue;
      } catch (const InternalError&) {
        continue;  // operands of a kind that no caller passes
      } catch (const std::out_of_range&) {
        continue;
      }
      break;
    }
    if (done) {
      ++lowered;
    } else {
      missed += " " + row.name;
    }
  }
  WARN(lowered << " of " << rows << " operators; not tried:" << missed);
  CHECK(lowered * 10 >= rows * 7);
}
