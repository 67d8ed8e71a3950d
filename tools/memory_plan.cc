#include "tools/memory_plan.h"

#include <fmt/format.h>

namespace relaxc::tools {

namespace {

// Returns for each call the measured one that it is, or null: the function's kernels are among those of the run in
// their order, between others that it calls inside of other functions. Returns none where they are not.
std::vector<const MeasuredCall*> times_of(const std::vector<WalkedCall>& calls,
                                          const std::vector<MeasuredCall>& measured) {
  std::vector<const MeasuredCall*> times(calls.size(), nullptr);
  size_t next = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != WalkedCall::Kind::kKernel) continue;
    while (next < measured.size() && (measured[next].kernel != calls[i].name || measured[next].nodes != calls[i].nodes))
      ++next;
    if (next == measured.size()) return {};
    times[i] = &measured[next++];
  }
  return times;
}

ReportList call_rows(const WalkedFunction& walked, const std::vector<const MeasuredCall*>& times) {
  ReportList rows;
  for (size_t i = 0; i < walked.calls.size(); ++i) {
    const WalkedCall& call = walked.calls[i];
    Report row;
    row.set("name", call.name);
    row.set("nodes", call.nodes);
    if (!times.empty() && times[i]) {
      row.set("start_us", times[i]->start_us);
      row.set("end_us", times[i]->end_us);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string_view place_name(const WalkedTensor& tensor) {
  switch (tensor.place) {
    case Place::kInput:
      return "input";
    case Place::kConstant:
      return "weight";
    case Place::kArena:
      return "arena";
    case Place::kOwn:
      return tensor.is_result ? "result" : "own";
    case Place::kValue:
      return "value";
  }
  return "";
}

// Returns whether a run allocates the tensor, which inputs and weights are not.
bool is_allocated(const WalkedTensor& tensor) { return tensor.place == Place::kArena || tensor.place == Place::kOwn; }

}  // namespace

Report memory_of(const vm::Executable& executable, const vm::Function& function, std::span<const vm::Value> inputs,
                 const std::vector<MeasuredCall>& measured) {
  const WalkedFunction walked = walk_bytecode(executable, function, inputs);
  const std::vector<const MeasuredCall*> times = times_of(walked.calls, measured);
  int64_t unknown = 0, weights = 0;
  ReportList tensors, notes;
  for (const WalkedTensor& tensor : walked.tensors) {
    const bool is_known = tensor.bytes && (tensor.place != Place::kArena || tensor.offset);
    unknown += tensor.place == Place::kValue || (is_allocated(tensor) && !is_known);
    if (!is_allocated(tensor) || !is_known) continue;
    Report row;
    row.set("place", std::string(place_name(tensor)));
    row.set("type", tensor.type);
    row.set("bytes", *tensor.bytes);
    if (tensor.offset) row.set("offset", *tensor.offset);
    row.set("first", tensor.first_use);
    row.set("last", tensor.last_use);
    tensors.push_back(std::move(row));
  }
  for (const Tensor& constant : executable.constants) weights += constant.bytes();
  if (unknown > 0) notes.push_back(fmt::format("{} values are left out: only the run knows their sizes", unknown));
  if (walked.has_branches) notes.push_back("the function branches: the calls of both sides are shown");
  if (times.empty() && !walked.calls.empty())
    notes.push_back("the calls have no times: those of the run do not match the function's");
  Report report;
  if (walked.arena_bytes) report.set("arena_bytes", *walked.arena_bytes);
  report.set("weights_bytes", weights);
  report.set("calls", call_rows(walked, times));
  report.set("tensors", std::move(tensors));
  report.set("notes", std::move(notes));
  return report;
}

}  // namespace relaxc::tools
