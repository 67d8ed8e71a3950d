// The flags of `generate` and what it does, for relaxc and relaxc-run. It needs the runtime only.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>

#include "tools/inputs.h"
#include "tools/sampler.h"
#include "tools/vocabulary.h"
#include "vm/program.h"

namespace relaxc::tools {

struct GenerationOptions {
  std::vector<std::string> prompt;  // numbers
  std::string text, vocabulary;     // the prompt as text; a file
  std::string prompts;              // a file with a prompt in each line
  int64_t count = 32, batch = 8;    // tokens of each text; prompts at once
  SamplerOptions sampler;
  std::vector<std::string> stops, caches;
  InputOptions inputs;  // of an encoder
  int threads = 0;
  int64_t memory_limit = 0;  // of SessionOptions
  // Reads a vocabulary in JSON, where the program can.
  std::function<Vocabulary(const std::string& path)> read_json = nullptr;
  void add_to(CLI::App& app);
};

// Writes the tokens that follow the prompt to standard output, and how fast they came to standard error. Throws a
// CompileError where the function is not a decoder, or the flags do not fit it.
void generate(const Program& program, const vm::Function& function, const GenerationOptions& options);

}  // namespace relaxc::tools
