// Which inputs and outputs of a function make it a decoder: a network that continues a text token by token.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vm/program.h"

namespace relaxc::tools {

// Places among the inputs and outputs of a function. The names are those of exports from torch and Hugging Face:
// input_ids, attention_mask, position_ids, past_key_values.0.key and so on; logits, present.0.key and so on.
struct DecoderRoles {
  size_t tokens;                         // [batch, length], integers
  std::optional<size_t> mask = {};       // [batch, past + length]: 1 for each token
  std::optional<size_t> positions = {};  // [batch, length] or [length]
  struct Cache {
    size_t past, present;               // an input, and the output that is its value in the next run
    size_t axis;                        // of the tokens
    std::optional<size_t> length = {};  // of one that a run extends in place, the input with the number of its tokens
  };
  std::vector<Cache> caches = {};
  std::vector<size_t> others = {};  // inputs that are the same in each run, such as the states of an encoder
  size_t logits = 0;                // [batch, length, vocabulary] or [batch, vocabulary]
};

// Finds them by their names; `caches` has the output for each input whose name does not tell it. Throws a CompileError
// that says what was expected and what the function has.
DecoderRoles decoder_roles(const Program& program, const vm::Function& function,
                           const std::map<std::string, std::string>& caches);

}  // namespace relaxc::tools
