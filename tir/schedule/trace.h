// The steps of a schedule as data: printed as users write them, stored as JSON, replayed elsewhere or decided anew.
#pragma once
#include <functional>

#include "tir/primitives/primitive.h"

namespace relaxc {

class Schedule;

struct TraceStep {
  const scheduling::Primitive* primitive;
  AttrList arguments;  // the struct that the schedule was given, encoded: one for each param
  std::vector<VarRef> results;
  AttrValue decision;  // of a sampling step
};

// Returns the decision of a sampling step in a replay. Without it the recorded decisions hold.
using Decide = std::function<AttrValue(const TraceStep&)>;

struct Trace {
  std::vector<TraceStep> steps;

  // Returns a line per step: "i0, i1 = sch.split(i, [None, 14])".
  std::string text() const;
  // Returns JSON in TVM's layout: [[[name, inputs, attrs, outputs], ...], [[step, decision], ...]].
  std::string json() const;
  // Throws a CompileError when the text is not a trace.
  static Trace from_json(std::string_view json);
  // Reads the lists and dictionaries that the JSON stands for.
  static Trace from_value(const AttrValue& value);
  // Applies the steps to the schedule, those after enter_postproc only `with_postproc`.
  void replay(Schedule& schedule, const Decide& decide = nullptr, bool with_postproc = true) const;
  // Returns the trace without steps that change nothing and whose results nothing uses.
  Trace simplified() const;
};

// Returns the lists, dictionaries, numbers and texts of JSON.
AttrValue read_json(std::string_view json);

}  // namespace relaxc
