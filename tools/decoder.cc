#include "tools/decoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "tools/values.h"

namespace relaxc::tools {

namespace {

// Returns a tensor of the input's dtype and rank, all of whose dims but the last are 1.
Tensor row_of_numbers(const vm::ValueInfo& info, std::span<const int64_t> numbers) {
  std::vector<int64_t> shape(info.dims->size(), 1);
  shape.back() = std::ssize(numbers);
  const Tensor result = Tensor::empty(std::move(shape), *info.dtype);
  const bool is_float = info.dtype->is_float();
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t number = numbers[static_cast<size_t>(i)];
    is_float ? result.set_double(i, static_cast<double>(number)) : result.set_int(i, number);
  }
  return result;
}

// Returns a cache with room for so many tokens. Its batch is 1.
Tensor new_cache(const vm::ValueInfo& info, size_t axis, int64_t capacity, const vm::DimInfo& batch) {
  std::vector<int64_t> shape;
  for (size_t d = 0; d < info.dims->size(); ++d) {
    const vm::DimInfo& dim = (*info.dims)[d];
    const bool is_batch = dim.value < 0 && dim.text == batch.text;
    if (dim.value < 0 && d != axis && !is_batch)
      fail({}, "the size of '{}' in the cache '{}' is not known; state it by --type '{}=...'", printable(dim.text),
           printable(to_string(info)), printable(info.name));
    shape.push_back(d == axis ? capacity : is_batch ? 1 : dim.value);
  }
  return Tensor::empty(std::move(shape), *info.dtype);
}

// Copies what one tensor has along the axis to the begin of a longer one.
void copy_tokens(const Tensor& from, const Tensor& to, size_t axis) {
  int64_t outer = 1;
  for (size_t d = 0; d < axis; ++d) outer *= from.shape()[d];
  if (from.size() == 0) return;
  const int64_t bytes = from.bytes() / outer, stride = to.bytes() / outer;
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(static_cast<char*>(to.raw()) + i * stride, static_cast<const char*>(from.raw()) + i * bytes,
                static_cast<size_t>(bytes));
}

// Returns the last row of the logits.
std::vector<double> last_row(const Tensor& logits) {
  const int64_t count = logits.shape().empty() ? 0 : logits.shape().back();
  if (count == 0 || logits.size() == 0) throw_runtime_error("the logits are {}, without a row", describe(logits));
  std::vector<double> row;
  for (int64_t i = logits.size() - count; i < logits.size(); ++i) row.push_back(logits.as_double(i));
  return row;
}

}  // namespace

Decoder::Decoder(Session& session, const vm::Function& function, DecoderRoles roles, std::vector<vm::Value> others)
    : session_(session), function_(function), roles_(std::move(roles)), others_(std::move(others)) {
  const vm::DimInfo& batch = function.inputs[roles_.tokens].dims->front();
  if (batch.value > 1)
    fail({}, "the batch of input '{}' is {}, expected 1 or a symbolic dim",
         printable(function.inputs[roles_.tokens].name), batch.value);
  for (const DecoderRoles::Cache& cache : roles_.caches)
    caches_.push_back(new_cache(function.inputs[cache.past], cache.axis, 0, batch));
  if (!has_cache() && fixed_length())
    fail({}, "'{}' takes {} tokens at once and has no cache; export it with a dynamic axis for the length of '{}'",
         printable(function.name), *fixed_length(), printable(function.inputs[roles_.tokens].name));
}

std::optional<int64_t> Decoder::fixed_length() const {
  const int64_t length = function_.inputs[roles_.tokens].dims->back().value;
  return length < 0 ? std::nullopt : std::optional(length);
}

std::optional<int64_t> Decoder::vocabulary_size() const {
  const int64_t size = function_.outputs[roles_.logits].dims->back().value;
  return size < 0 ? std::nullopt : std::optional(size);
}

std::vector<double> Decoder::append(std::span<const int64_t> tokens) {
  if (!has_cache()) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    return run(text_, 0);
  }
  const int64_t at_once = fixed_length().value_or(std::ssize(tokens));
  if (at_once == 0 || std::ssize(tokens) % at_once != 0)
    fail({}, "'{}' takes {} tokens at once, and {} were given; export it with a dynamic axis for the length of '{}'",
         printable(function_.name), at_once, tokens.size(), printable(function_.inputs[roles_.tokens].name));
  std::vector<double> logits;
  for (size_t done = 0; done < tokens.size(); done += static_cast<size_t>(at_once)) {
    logits = run(tokens.subspan(done, static_cast<size_t>(at_once)), past_);
    past_ += at_once;
  }
  return logits;
}

// Gives caches that are extended in place room for so many tokens, and for as many again.
void Decoder::make_room(int64_t tokens) {
  constexpr int64_t kLeastRoom = 64;
  const vm::DimInfo& batch = function_.inputs[roles_.tokens].dims->front();
  for (size_t i = 0; i < caches_.size(); ++i) {
    const DecoderRoles::Cache& cache = roles_.caches[i];
    if (!cache.length || caches_[i].shape()[cache.axis] >= tokens) continue;
    const Tensor longer = new_cache(function_.inputs[cache.past], cache.axis, std::max(2 * tokens, kLeastRoom), batch);
    copy_tokens(caches_[i], longer, cache.axis);
    caches_[i] = longer;
  }
}

// Returns the value of an input that is neither a cache nor one of the others.
vm::Value Decoder::input(size_t place, std::span<const int64_t> tokens, int64_t past) const {
  const vm::ValueInfo& info = function_.inputs[place];
  if (place == roles_.tokens) return row_of_numbers(info, tokens);
  if (place == roles_.mask)
    return row_of_numbers(info, std::vector<int64_t>(static_cast<size_t>(past) + tokens.size(), 1));
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), past);
  return row_of_numbers(info, positions);
}

std::vector<double> Decoder::run(std::span<const int64_t> tokens, int64_t past) {
  std::vector<vm::Value> inputs(function_.inputs.size());
  make_room(past + std::ssize(tokens));
  for (size_t i = 0; i < roles_.caches.size(); ++i) {
    inputs[roles_.caches[i].past] = caches_[i];
    if (roles_.caches[i].length) inputs[*roles_.caches[i].length] = past;
  }
  for (size_t i = 0; i < roles_.others.size(); ++i) inputs[roles_.others[i]] = others_[i];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_none()) inputs[i] = input(i, tokens, past);
  }
  const std::vector<NamedValue> results = flat_results(session_.run_values(inputs, function_.name), function_.outputs);
  for (size_t i = 0; i < roles_.caches.size(); ++i) caches_[i] = results.at(roles_.caches[i].present).value.tensor();
  return last_row(results.at(roles_.logits).value.tensor());
}

}  // namespace relaxc::tools
