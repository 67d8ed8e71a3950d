// The steps of a schedule as data: printed as the text that users write, stored as JSON, replayed on another program or
// with other decisions.
#pragma once
#include <functional>
#include <span>

#include "ir/attrs.h"
#include "ir/expr.h"

namespace relaxc {

class Schedule;

namespace scheduling {

class Step;

// A row of primitives.h, taken apart.
struct Param {
  std::string name, type;
  std::optional<AttrValue> otherwise;  // the default
  bool is_variadic() const { return type == "Variadic"; }
};
struct Primitive {
  const char* name;
  const char* result;  // "Loops", "void"
  const char* doc;
  std::vector<Param> params;
  // Runs the step with all arguments given.
  std::vector<VarRef> (*invoke)(Schedule&, const AttrList&);
};
std::span<const Primitive> primitives();
// By name, TVM's later spellings included (get_sblock); null: there is none.
const Primitive* find_primitive(std::string_view name);
// The position of a row in primitives().
enum class PrimitiveId : uint8_t;

}  // namespace scheduling

struct TraceStep {
  const scheduling::Primitive* primitive;
  AttrList arguments;  // one for each param; random variables as Var expressions
  std::vector<VarRef> results;
  AttrValue decision;  // what a sampling step chose
};

// Chooses for a sampling step of a replay; none: as recorded.
using Decide = std::function<AttrValue(const TraceStep&)>;

struct Trace {
  std::vector<TraceStep> steps;

  // A line per step: "i0, i1 = sch.split(i, [None, 14])".
  std::string text() const;
  // [[name, inputs, attrs, outputs], ...], [[step, decision], ...]: TVM's layout.
  std::string json() const;
  // Throws a CompileError for what is no trace.
  static Trace from_json(std::string_view json);
  // Applies the steps to the schedule. Postprocessing (after enter_postproc) is left out on request.
  void replay(Schedule& schedule, const Decide& decide = nullptr, bool with_postproc = true) const;
  // Without steps whose results nothing uses and which change nothing.
  Trace simplified() const;
};

}  // namespace relaxc
