#include "tools/decoder.h"

#include <algorithm>
#include <cstring>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "tools/values.h"

namespace relaxc::tools {

namespace {

// Returns a tensor of the input's dtype and rank with these rows, as long as each other. Dims before the rows are 1.
Tensor tensor_of_rows(const vm::ValueInfo& info, const std::vector<std::vector<int64_t>>& rows) {
  std::vector<int64_t> shape(info.dims->size(), 1);
  if (shape.size() > 1) shape[shape.size() - 2] = std::ssize(rows);
  shape.back() = std::ssize(rows[0]);
  const Tensor result = Tensor::empty(std::move(shape), *info.dtype);
  const bool is_float = info.dtype->is_float();
  int64_t i = 0;
  for (const std::vector<int64_t>& row : rows) {
    for (int64_t number : row) {
      is_float ? result.set_double(i, static_cast<double>(number)) : result.set_int(i, number);
      ++i;
    }
  }
  return result;
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

// Returns the logits of a text at a place of those that a run computed; logits without places are those of the last
// one.
std::vector<double> logits_at(const Tensor& logits, int64_t text, int64_t texts, int64_t place) {
  const std::vector<int64_t>& shape = logits.shape();
  const int64_t count = shape.empty() ? 0 : shape.back(), rows = count == 0 ? 0 : logits.size() / count;
  if (rows == 0 || rows % texts != 0) throw_runtime_error("the logits are {}, without a row", describe(logits));
  const int64_t places = rows / texts, row = text * places + std::min(place, places - 1);
  std::vector<double> result;
  for (int64_t i = row * count; i < (row + 1) * count; ++i) result.push_back(logits.as_double(i));
  return result;
}

}  // namespace

std::string why_one_by_one(const vm::Function& function, const DecoderRoles& roles) {
  const vm::ValueInfo &tokens = function.inputs[roles.tokens], &logits = function.outputs[roles.logits];
  const vm::DimInfo& batch = tokens.dims->front();
  auto name_of = [](const vm::ValueInfo& info) { return printable(to_string(info)); };
  if (batch.value >= 0) return fmt::format("the batch of '{}' is fixed", name_of(tokens));
  if (roles.caches.empty()) return "it has no cache";
  if (!roles.mask) return "it has no input 'attention_mask', which tells the ends of texts of different lengths";
  if (!roles.positions || function.inputs[*roles.positions].dims->size() != 2)
    return "it has no input 'position_ids' [batch, length], which numbers the tokens of each text";
  if (!roles.others.empty())
    return fmt::format("its input '{}' is the same for all", name_of(function.inputs[roles.others[0]]));
  if (logits.dims->size() != 3 || (*logits.dims)[1] != tokens.dims->back())
    return fmt::format("its output '{}' has no logits of each token", name_of(logits));
  for (const DecoderRoles::Cache& cache : roles.caches) {
    const std::vector<vm::DimInfo>& dims = *function.inputs[cache.past].dims;
    const bool has_batch =
        std::ranges::any_of(dims, [&](const vm::DimInfo& dim) { return dim.value < 0 && dim.text == batch.text; });
    if (!has_batch) return fmt::format("its cache '{}' has no batch", name_of(function.inputs[cache.past]));
  }
  return "";
}

Decoder::Decoder(Session& session, const vm::Function& function, DecoderRoles roles, std::vector<vm::Value> others,
                 int64_t texts)
    : session_(session),
      function_(function),
      roles_(std::move(roles)),
      others_(std::move(others)),
      texts_(static_cast<size_t>(texts)) {
  const vm::DimInfo& batch = function.inputs[roles_.tokens].dims->front();
  if (batch.value > 1)
    fail({}, "the batch of input '{}' is {}, expected 1 or a symbolic dim",
         printable(function.inputs[roles_.tokens].name), batch.value);
  for (const DecoderRoles::Cache& cache : roles_.caches)
    caches_.push_back(new_cache(function.inputs[cache.past], cache.axis, 0));
  if (!has_cache() && fixed_length())
    fail({}, "'{}' takes {} tokens at once and has no cache; export it with a dynamic axis for the length of '{}'",
         printable(function.name), *fixed_length(), printable(function.inputs[roles_.tokens].name));
}

// Returns a cache with room for so many tokens of each text.
Tensor Decoder::new_cache(const vm::ValueInfo& info, size_t axis, int64_t capacity) const {
  const vm::DimInfo& batch = function_.inputs[roles_.tokens].dims->front();
  std::vector<int64_t> shape;
  for (size_t d = 0; d < info.dims->size(); ++d) {
    const vm::DimInfo& dim = (*info.dims)[d];
    const bool is_batch = dim.value < 0 && dim.text == batch.text;
    if (dim.value < 0 && d != axis && !is_batch)
      fail({}, "the size of '{}' in the cache '{}' is not known; state it by --type '{}=...'", printable(dim.text),
           printable(to_string(info)), printable(info.name));
    shape.push_back(d == axis ? capacity : is_batch ? rows() : dim.value);
  }
  return Tensor::empty(std::move(shape), *info.dtype);
}

std::optional<int64_t> Decoder::fixed_length() const {
  const int64_t length = function_.inputs[roles_.tokens].dims->back().value;
  return length < 0 ? std::nullopt : std::optional(length);
}

std::optional<int64_t> Decoder::vocabulary_size() const {
  const int64_t size = function_.outputs[roles_.logits].dims->back().value;
  return size < 0 ? std::nullopt : std::optional(size);
}

std::vector<std::vector<double>> Decoder::append(std::span<const std::vector<int64_t>> tokens) {
  if (!has_cache()) {
    std::vector<int64_t>& all = texts_[0].tokens;
    all.insert(all.end(), tokens[0].begin(), tokens[0].end());
    const Tensor logits = run({std::span(&all, 1), 0, all.size()});
    return {logits_at(logits, 0, 1, std::ssize(all) - 1)};
  }
  const size_t longest = std::ranges::max(tokens, {}, [](const auto& text) { return text.size(); }).size();
  const auto at_once = static_cast<size_t>(fixed_length().value_or(static_cast<int64_t>(longest)));
  if (at_once == 0 || longest % at_once != 0)
    fail({}, "'{}' takes {} tokens at once, and {} were given; export it with a dynamic axis for the length of '{}'",
         printable(function_.name), at_once, longest, printable(function_.inputs[roles_.tokens].name));
  std::vector<std::vector<double>> logits(texts_.size());
  for (size_t begin = 0; begin < longest; begin += at_once) {
    const Part part{tokens, begin, begin + at_once};
    for (size_t i = 0; i < texts_.size(); ++i) {
      for (size_t place = part.begin; place < part.end; ++place) texts_[i].mask.push_back(place < tokens[i].size());
    }
    const Tensor computed = run(part);
    past_ += part.size();
    for (size_t i = 0; i < texts_.size(); ++i) {
      const size_t last = tokens[i].size() - 1;  // beyond all parts where there are none
      if (last >= part.begin && last < part.end)
        logits[i] = logits_at(computed, static_cast<int64_t>(i), rows(), static_cast<int64_t>(last - part.begin));
    }
  }
  for (size_t i = 0; i < texts_.size(); ++i) texts_[i].length += std::ssize(tokens[i]);
  return logits;
}

// Gives caches that are extended in place room for so many tokens, and for as many again.
void Decoder::make_room(int64_t tokens) {
  constexpr int64_t kLeastRoom = 64;
  for (size_t i = 0; i < caches_.size(); ++i) {
    const DecoderRoles::Cache& cache = roles_.caches[i];
    if (!cache.length || caches_[i].shape()[cache.axis] >= tokens) continue;
    const Tensor longer = new_cache(function_.inputs[cache.past], cache.axis, std::max(2 * tokens, kLeastRoom));
    copy_tokens(caches_[i], longer, cache.axis);
    caches_[i] = longer;
  }
}

// Returns the value of an input that is neither a cache nor one of the others. Behind the end of a shorter text stands
// token 0, which the mask hides, at the position of the last token.
vm::Value Decoder::input(size_t place, const Part& part) const {
  std::vector<std::vector<int64_t>> rows;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    if (place == roles_.mask) {
      rows.push_back(has_cache() ? text.mask : std::vector<int64_t>(part.end, 1));
      continue;
    }
    std::vector<int64_t>& row = rows.emplace_back();
    for (size_t k = part.begin; k < part.end; ++k) {
      const size_t count = part.tokens[i].size();
      const int64_t token = k < count ? part.tokens[i][k] : 0, position = text.length + static_cast<int64_t>(k);
      row.push_back(place == roles_.tokens ? token : std::min(position, text.length + static_cast<int64_t>(count) - 1));
    }
  }
  return tensor_of_rows(function_.inputs[place], rows);
}

Tensor Decoder::run(const Part& part) {
  std::vector<vm::Value> inputs(function_.inputs.size());
  make_room(past_ + part.size());
  for (size_t i = 0; i < roles_.caches.size(); ++i) {
    inputs[roles_.caches[i].past] = caches_[i];
    if (roles_.caches[i].length) inputs[*roles_.caches[i].length] = past_;
  }
  for (size_t i = 0; i < roles_.others.size(); ++i) inputs[roles_.others[i]] = others_[i];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_none()) inputs[i] = input(i, part);
  }
  const std::vector<NamedValue> results = flat_results(session_.run_values(inputs, function_.name), function_.outputs);
  for (size_t i = 0; i < roles_.caches.size(); ++i) caches_[i] = results.at(roles_.caches[i].present).value.tensor();
  return results.at(roles_.logits).value.tensor();
}

}  // namespace relaxc::tools
