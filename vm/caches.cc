#include "vm/caches.h"

#include <algorithm>
#include <array>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/whole_number.h"

namespace relaxc::vm {

std::string to_string(const CacheInfo& cache) {
  return formatted("{} {} {} {}", cache.input, cache.output, cache.length, cache.axis);
}

namespace {

std::optional<CacheInfo> cache_from(std::string_view line, const Function& function) {
  std::vector<size_t> numbers;
  for (std::string_view word : parts_of(line, ' ')) {
    const std::optional<int64_t> number = whole_number(word);
    if (!number) return std::nullopt;
    numbers.push_back(static_cast<size_t>(*number));
  }
  if (numbers.size() != 4) return std::nullopt;
  const CacheInfo cache{numbers[0], numbers[1], numbers[2], numbers[3]};
  const std::vector<ValueInfo>& inputs = function.inputs;
  const bool is_there = std::max(cache.input, cache.length) < inputs.size() && cache.output < function.outputs.size();
  const bool has_length = cache.length != cache.input;  // else other inputs say where new tokens go
  if (!is_there || (has_length && inputs[cache.length].kind != ValueKind::kInt)) return std::nullopt;
  const ValueInfo& input = inputs[cache.input];
  const bool is_cache =
      input.kind == ValueKind::kTensor && input.dtype && input.dims && cache.axis < input.dims->size();
  return is_cache ? std::optional(cache) : std::nullopt;
}

}  // namespace

std::vector<CacheInfo> caches_of(const Executable& executable, const Function& function) {
  std::vector<CacheInfo> result;
  const std::string text = copy_value(executable.metadata, std::string(kCachesKey) + function.name).value_or("");
  for (std::string_view line : parts_of(text, '\n')) {
    const std::optional<CacheInfo> cache = cache_from(line, function);
    if (!cache) fail({}, "'{}' is not a cache of function '{}'", printable(line), printable(function.name));
    result.push_back(*cache);
  }
  return result;
}

std::optional<std::string> name_of_present(const std::string& past, const std::vector<std::string>& outputs) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {
      {{"past_key_values", "present"}, {"past_key_values", "present_key_values"}, {"past", "present"}}};
  for (const auto& [of_past, of_present] : kNames) {
    const size_t at = past.find(of_past);
    if (at == std::string::npos) continue;
    std::string name = past;
    name.replace(at, of_past.size(), of_present);
    if (std::ranges::count(outputs, name)) return name;
  }
  return std::nullopt;
}

}  // namespace relaxc::vm
