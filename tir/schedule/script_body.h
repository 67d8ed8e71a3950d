// A definition of a file of schedules as it was read. Internal to tir/schedule/script*.cc.
#pragma once
#include "ir/text/syntax.h"
#include "tir/schedule/script.h"

namespace relaxc {

struct ScheduleDefinition::Body {
  std::shared_ptr<const Origin> origin;
  std::shared_ptr<const TensorIntrins> intrins;  // of the file
  text::Lines lines;
  std::string schedule_name;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees;  // own the lines
};

std::shared_ptr<const Origin> origin_of(std::string_view text, const std::string& filename);
// Returns the value of an expression that calls no primitive.
AttrValue evaluate(const text::Syntax& at, const std::shared_ptr<const Origin>& origin, ScheduleNames names = {});

}  // namespace relaxc
