#include "tools/decoder_roles.h"

#include <algorithm>
#include <set>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::tools {

namespace {

using Infos = std::vector<vm::ValueInfo>;

std::string listed(const Infos& infos) {
  return joined(infos, [](const vm::ValueInfo& info) { return printable(to_string(info)); });
}

std::optional<size_t> find_named(const Infos& infos, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    const vm::ValueInfo* found = find_item(infos, name, &vm::ValueInfo::name);
    if (found) return static_cast<size_t>(found - infos.data());
  }
  return std::nullopt;
}

bool is_tensor(const vm::ValueInfo& info) { return info.kind == vm::ValueKind::kTensor && info.dtype && info.dims; }
bool is_integer(const vm::ValueInfo& info) { return is_tensor(info) && (info.dtype == kInt64 || info.dtype == kInt32); }

// Returns the axis along which a present is longer than its past: the one whose symbolic dim differs.
std::optional<size_t> axis_of_tokens(const vm::ValueInfo& past, const vm::ValueInfo& present) {
  if (!is_tensor(past) || !is_tensor(present) || past.dims->size() != present.dims->size()) return std::nullopt;
  std::vector<size_t> longer;
  for (size_t d = 0; d < past.dims->size(); ++d) {
    if ((*past.dims)[d].value < 0 && (*past.dims)[d] != (*present.dims)[d]) longer.push_back(d);
  }
  return longer.size() == 1 ? std::optional(longer[0]) : std::nullopt;
}

DecoderRoles::Cache cache_of(const vm::Function& function, size_t past, const std::string& present_name) {
  const vm::ValueInfo& input = function.inputs[past];
  const std::optional<size_t> present = find_named(function.outputs, {present_name});
  if (!present)
    fail_usage({}, "there is no output '{}' for the cache '{}'; the outputs are {}", printable(present_name),
               printable(input.name), listed(function.outputs));
  const vm::ValueInfo& output = function.outputs[*present];
  if (input.dtype != output.dtype)
    fail({}, "the cache '{}' and its output differ in dtype: {} and {}", printable(input.name),
         printable(to_string(input)), printable(to_string(output)));
  const std::optional<size_t> axis = axis_of_tokens(input, output);
  if (!axis)
    fail({},
         "the output '{}' is not the cache '{}' with more tokens: expected one symbolic dim of the input that differs "
         "in the output, found {} and {}; export the model with a dynamic axis for the tokens of the past",
         printable(output.name), printable(input.name), printable(to_string(input)), printable(to_string(output)));
  return {past, *present, *axis};
}

size_t tokens_of(const vm::Function& function) {
  const auto found = find_named(function.inputs, {"input_ids", "decoder_input_ids", "ids", "tokens"});
  if (found && is_integer(function.inputs[*found]) && function.inputs[*found].dims->size() == 2) return *found;
  fail({},
       "'{}' is not a decoder: expected an input 'input_ids' (or 'decoder_input_ids', 'ids', 'tokens') of integers "
       "[batch, length], found {}",
       printable(function.name), listed(function.inputs));
}

size_t logits_of(const vm::Function& function) {
  const auto found = find_named(function.outputs, {"logits"});
  const size_t ndim = found && is_tensor(function.outputs[*found]) ? function.outputs[*found].dims->size() : 0;
  if (ndim == 2 || ndim == 3) return *found;
  fail(
      {},
      "'{}' is not a decoder: expected an output 'logits' [batch, length, vocabulary] or [batch, vocabulary], found {}",
      printable(function.name), listed(function.outputs));
}

void expect_rank(const vm::ValueInfo& info, size_t least, size_t most, const char* expected) {
  const size_t ndim = info.dims ? info.dims->size() : 0;
  if (!is_tensor(info) || ndim < least || ndim > most)
    fail({}, "input '{}' is {}, expected a tensor {}", printable(info.name), printable(to_string(info)), expected);
}

}  // namespace

DecoderRoles decoder_roles(const Program& program, const vm::Function& function,
                           const std::map<std::string, std::string>& caches) {
  DecoderRoles roles{.tokens = tokens_of(function), .logits = logits_of(function)};
  const Infos& inputs = function.inputs;
  const std::vector<std::string> outputs = map_each(function.outputs, &vm::ValueInfo::name);
  std::set<size_t> known = {roles.tokens};
  for (const vm::CacheInfo& cache : program.caches(function.name)) {
    if (cache.length == cache.input) continue;  // the model decides where new tokens go
    roles.caches.push_back({cache.input, cache.output, cache.axis, cache.length});
    known.insert({cache.input, cache.length});
  }
  for (const auto& [past, present] : caches) {
    if (!find_named(inputs, {past}))
      fail_usage({}, "there is no input '{}'; the inputs are {}", printable(past), listed(inputs));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    const std::string* stated = find_value(caches, name);
    const std::optional<std::string> present = stated ? *stated : vm::name_of_present(name, outputs);
    if (known.contains(i)) continue;
    if (present) {
      roles.caches.push_back(cache_of(function, i, *present));
    } else if (name == "attention_mask") {
      expect_rank(inputs[i], 2, 2, "[batch, past + length]");
      roles.mask = i;
    } else if (name == "position_ids") {
      expect_rank(inputs[i], 1, 2, "[batch, length] or [length]");
      roles.positions = i;
    } else {
      roles.others.push_back(i);
    }
  }
  return roles;
}

}  // namespace relaxc::tools
