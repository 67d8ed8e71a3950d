// Runs a decoder: a prompt, then token by token. It needs the runtime only.
#pragma once
#include <span>
#include <vector>

#include "tools/decoder_roles.h"
#include "vm/program.h"

namespace relaxc::tools {

class Decoder {
 public:
  // The session and the function must live as long; `others` are the values of roles.others. Throws a CompileError
  // where a cache has dims that neither the model nor a batch of 1 decides.
  Decoder(Session& session, const vm::Function& function, DecoderRoles roles, std::vector<vm::Value> others);

  // Appends tokens to the text and returns the logits of the next one. The tokens are at least one. Throws RuntimeError
  // as a run does.
  std::vector<double> append(std::span<const int64_t> tokens);
  // Without a cache each run reads the whole text again.
  bool has_cache() const { return !roles_.caches.empty(); }
  // Returns the number of tokens in the vocabulary, where the model declares it.
  std::optional<int64_t> vocabulary_size() const;

 private:
  std::optional<int64_t> fixed_length() const;
  std::vector<double> run(std::span<const int64_t> tokens, int64_t past);
  void make_room(int64_t tokens);
  vm::Value input(size_t place, std::span<const int64_t> tokens, int64_t past) const;

  Session& session_;
  const vm::Function& function_;
  DecoderRoles roles_;
  std::vector<vm::Value> others_;
  std::vector<Tensor> caches_;
  std::vector<int64_t> text_;  // where there is no cache
  int64_t past_ = 0;           // tokens in the cache
};

}  // namespace relaxc::tools
