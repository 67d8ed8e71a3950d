// Runs a decoder: prompts, then token by token. It needs the runtime only.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/decoder_roles.h"
#include "vm/program.h"

namespace relaxc::tools {

// Returns why the function cannot continue several texts of different lengths at once; "" where it can. Rows of a batch
// are as long as the longest text, and a mask and positions tell where each one ends.
std::string why_one_by_one(const vm::Function& function, const DecoderRoles& roles);

class Decoder {
 public:
  // Continues so many texts, more than one only where why_one_by_one() is empty. The session and the function must live
  // as long; `others` are the values of roles.others. Throws a CompileError where a cache has dims that neither the
  // model nor the batch decides.
  Decoder(Session& session, const vm::Function& function, DecoderRoles roles, std::vector<vm::Value> others,
          int64_t texts = 1);

  // Appends tokens to each text, at least one to one of them, and returns the logits of each one's next token; none of
  // a text without new tokens. Throws RuntimeError as a run does.
  std::vector<std::vector<double>> append(std::span<const std::vector<int64_t>> tokens);
  // Without a cache each run reads the whole text again.
  bool has_cache() const { return !roles_.caches.empty(); }
  // Returns the number of tokens in the vocabulary, where the model declares it.
  std::optional<int64_t> vocabulary_size() const;

 private:
  // A text as its row of the batch has it.
  struct Text {
    std::vector<int64_t> tokens = {};  // where there is no cache
    std::vector<int64_t> mask = {};    // of each place in the cache: 1 for a token, 0 behind a shorter text
    int64_t length = 0;
  };
  // The places of the batch that a run computes, in each row those from `begin` to `end` of the new ones.
  struct Part {
    std::span<const std::vector<int64_t>> tokens;
    size_t begin, end;
    int64_t size() const { return static_cast<int64_t>(end - begin); }
  };

  std::optional<int64_t> fixed_length() const;
  int64_t rows() const { return std::ssize(texts_); }
  Tensor run(const Part& part);
  void make_room(int64_t tokens);
  vm::Value input(size_t place, const Part& part) const;
  Tensor new_cache(const vm::ValueInfo& info, size_t axis, int64_t capacity) const;

  Session& session_;
  const vm::Function& function_;
  DecoderRoles roles_;
  std::vector<vm::Value> others_;
  std::vector<Tensor> caches_;
  std::vector<Text> texts_;
  int64_t past_ = 0;  // places in the cache
};

}  // namespace relaxc::tools
