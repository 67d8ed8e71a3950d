// A schedule as text, ready to run. Internal to tir/schedule/script*.cc.
#pragma once
#include "ir/text/syntax.h"
#include "tir/schedule/rule.h"
#include "tir/schedule/script.h"

namespace relaxc {

struct ScheduleBody {
  std::shared_ptr<const Origin> origin;
  std::shared_ptr<const TensorIntrins> intrins;  // of the file
  text::Lines lines;
  std::string schedule_name;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees;  // own the lines
  // Runs the statements, as ScheduleRule::apply. Throws a CompileError at the first line that fails.
  void operator()(Schedule& schedule, const Target&, Decisions&) const;
};

// Returns the tensor intrinsics that S.intrin(...) or TensorIntrin.register(...) among the lines declare.
std::shared_ptr<const TensorIntrins> read_intrins(const std::shared_ptr<const Origin>& origin, const text::Lines& lines,
                                                  const std::string& filename, Diagnostics& diagnostics);
std::shared_ptr<const Origin> origin_of(std::string_view text, const std::string& filename);
// Returns the value of an expression that calls no primitive.
AttrValue evaluate(const text::Syntax& at, const std::shared_ptr<const Origin>& origin, ScheduleNames names = {});

}  // namespace relaxc
