#include "tools/observed.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "codegen/backend.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/analysis/buffer_uses.h"
#include "tools/run_progress.h"

namespace relaxc::tools {

namespace {

constexpr int64_t kMostObservedBytes = int64_t{2} << 30;

uint64_t hash_of(const Tensor& tensor) {
  return std::hash<std::string_view>()({static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes())});
}
Tensor copy_of(const Tensor& tensor) { return Tensor::copy_of(tensor.shape(), tensor.dtype(), tensor.raw()); }

class Observer final : public vm::Profiler {
 public:
  Observer(const IRModule& module, std::string kernel) : kernel_(std::move(kernel)) {
    for (const auto& [name, program] : programs_of(module)) {
      std::vector<bool>& written = written_[codegen::kernel_symbol(name)];
      for (const BufferUse& use : buffer_uses(program)) written.push_back(use.is_written);
    }
  }

  void on_kernel(const vm::KernelEvent& event) override {
    const bool is_asked = event.kernel == kernel_;
    if (!kernel_.empty() && !is_asked) return;
    if (bytes_ > kMostObservedBytes) {
      run.is_complete = false;
      return;
    }
    ObservedCall call{
        .kernel = std::string(event.kernel), .nodes = std::string(event.label), .tensors = {}, .read = {}};
    std::string made, found;  // what is not finite in the results, and in the inputs
    for (size_t i = 0; i < event.tensors.size(); ++i) {
      const Tensor& tensor = *event.tensors[i];
      const bool is_output = writes(event, i);
      if (is_output || is_asked) {
        call.tensors.push_back(copy_of(tensor));
        bytes_ += tensor.bytes();
      }
      if (!is_output) call.read.push_back(hash_of(tensor));
      std::string& worst = is_output ? made : found;
      const std::string here = not_finite(tensor);
      if (worst.empty() || (is_nan(here) && !is_nan(worst))) worst = here;
    }
    // A NaN may come of infinities, which are no fault in themselves: masks have them.
    const bool is_new = is_nan(made) ? !is_nan(found) : found.empty();
    if (is_new) call.not_finite = made;
    call.has_nan = is_nan(call.not_finite);
    run.calls.push_back(std::move(call));
  }

  ObservedRun run;

 private:
  static bool is_nan(const std::string& text) { return text.starts_with("a NaN"); }
  // A kernel that is not the module's writes its last tensor.
  bool writes(const vm::KernelEvent& event, size_t tensor) const {
    const std::vector<bool>* written = find_value(written_, event.info->symbol);
    return written && tensor < written->size() ? (*written)[tensor] : tensor + 1 == event.tensors.size();
  }

  std::string kernel_;
  std::map<std::string, std::vector<bool>> written_;  // by symbol: for each tensor
  int64_t bytes_ = 0;
};

// How the results of a call compare with those that are expected of its nodes.
enum class Match : uint8_t { kUnknown, kSame, kParts };

class Comparison {
 public:
  Comparison(const ObservedRun& expected, const ObservedRun& actual, const Closeness& closeness)
      : actual_(actual.calls), closeness_(closeness) {
    for (const ObservedCall& call : expected.calls) {
      for (std::string_view node : nodes_in(call.nodes)) {
        for (const Tensor& tensor : call.tensors) expected_[std::string(node)].push_back(&tensor);
      }
    }
    for (const ObservedCall& call : actual_) matches_.push_back(match_of(call));
  }

  std::optional<Parting> run() const {
    for (size_t i = 0; i < actual_.size(); ++i) {
      if (matches_[i] != Match::kParts || has_right_sibling(i) || has_right_reader(i)) continue;
      return Parting{actual_[i].kernel, actual_[i].nodes, difference_of(actual_[i])};
    }
    return std::nullopt;
  }

 private:
  std::vector<const Tensor*> candidates(const ObservedCall& call, const Tensor& tensor) const {
    std::vector<const Tensor*> result;
    for (std::string_view node : nodes_in(call.nodes)) {
      const std::vector<const Tensor*>* found = find_value(expected_, std::string(node));
      for (const Tensor* candidate : found ? *found : std::vector<const Tensor*>()) {
        if (candidate->dtype() == tensor.dtype() && candidate->size() == tensor.size()) result.push_back(candidate);
      }
    }
    return result;
  }
  bool is_among(const Tensor& tensor, const std::vector<const Tensor*>& possible) const {
    return std::ranges::any_of(possible, [&](const Tensor* e) { return same_numbers(tensor, *e, closeness_); });
  }
  Match match_of(const ObservedCall& call) const {
    Match match = Match::kUnknown;
    for (const Tensor& tensor : call.tensors) {
      const std::vector<const Tensor*> possible = candidates(call, tensor);
      if (possible.empty()) continue;
      if (!is_among(tensor, possible)) return Match::kParts;
      match = Match::kSame;
    }
    return match;
  }
  // A node whose work is several kernels has steps in between that are no node's value.
  bool has_right_sibling(size_t call) const {
    if (actual_[call].nodes.empty()) return false;
    for (size_t i = 0; i < actual_.size(); ++i) {
      if (actual_[i].nodes == actual_[call].nodes && matches_[i] == Match::kSame) return true;
    }
    return false;
  }
  bool has_right_reader(size_t call) const {
    std::set<uint64_t> written;
    for (const Tensor& tensor : actual_[call].tensors) written.insert(hash_of(tensor));
    for (size_t i = call + 1; i < actual_.size(); ++i) {
      auto reads = [&](uint64_t hash) { return written.contains(hash); };
      if (matches_[i] == Match::kSame && std::ranges::any_of(actual_[i].read, reads)) return true;
    }
    return false;
  }
  // Says how the first result that is none of its nodes' differs from that of the last of them.
  std::string difference_of(const ObservedCall& call) const {
    for (const Tensor& tensor : call.tensors) {
      const std::vector<const Tensor*> possible = candidates(call, tensor);
      if (possible.empty() || is_among(tensor, possible)) continue;
      const Tensor& last = *possible.back();
      const int64_t in_order = num_different(tensor, last, closeness_).value_or(0),
                    sorted = num_different_sorted(tensor, last, closeness_).value_or(0);
      if (sorted == 0) continue;
      if (2 * sorted < in_order)
        return fmt::format("{} of {} elements differ, in another layout", sorted, tensor.size());
      const Tensor shaped = Tensor::view(last.shape(), tensor.dtype(), tensor.raw(), nullptr);
      return compare("its result", shaped, last, 0, closeness_.allowed(last));
    }
    return "its result is none of its nodes'";
  }

  const std::vector<ObservedCall>& actual_;
  const Closeness& closeness_;
  std::map<std::string, std::vector<const Tensor*>> expected_;  // by node
  std::vector<Match> matches_;                                  // of the actual calls
};

}  // namespace

std::vector<std::string_view> nodes_in(std::string_view label) {
  constexpr std::string_view kSeparator = ", ";
  std::vector<std::string_view> nodes;
  for (size_t at = 0; at <= label.size();) {
    const size_t end = std::min(label.find(kSeparator, at), label.size());
    nodes.push_back(label.substr(at, end - at));
    at = end + kSeparator.size();
  }
  return nodes;
}

std::string not_finite(const Tensor& tensor) {
  if (!tensor.dtype().is_float()) return {};
  int64_t infinity = -1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.as_double(i);
    if (std::isnan(value)) return fmt::format("a NaN at [{}]", joined(indices_of(i, tensor.shape())));
    if (std::isinf(value) && infinity < 0) infinity = i;
  }
  return infinity < 0 ? "" : fmt::format("an infinity at [{}]", joined(indices_of(infinity, tensor.shape())));
}

bool has_nan(const vm::Value& value) {
  const Tensor* tensor = value.get_if<Tensor>();
  return tensor && not_finite(*tensor).starts_with("a NaN");
}

ObservedRun observe(const Program& program, const IRModule& module, const std::vector<vm::Value>& inputs,
                    const std::string& function, const ObserveOptions& options) {
  Observer observer(module, options.kernel);
  Session session(program, {.threads = 1});
  RunProgress progress(program, program.function(function), options.pieces, &observer);
  session.set_profiler(progress.profiler());
  observer.run.result = session.run_values(inputs, function);
  return std::move(observer.run);
}

std::optional<Parting> first_parting(const ObservedRun& expected, const ObservedRun& actual,
                                     const Closeness& closeness) {
  return Comparison(expected, actual, closeness).run();
}

}  // namespace relaxc::tools
