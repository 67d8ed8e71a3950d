// relaxc generate: lets a decoder continue a text.
#include <memory>

#include "tools/byte_level.h"
#include "tools/generation.h"
#include "tools/progress_line.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct GenerateOptions {
  std::string model;
  CompilerOptions compiler;
  CacheOptions cache;
  GenerationOptions generation;
};

int generate_from(const GenerateOptions& options) {
  CompileSettings settings = options.compiler.get(options.model);
  if (!settings.caches.is_given() && options.generation.caches.empty())
    settings.caches = {.by_name = true, .may_be_missing = true};
  const Program program = options.cache.load(options.model, settings, options.compiler).program;
  progress_line().end();
  generate(program, program.function(settings.function), options.generation);
  return kRight;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "continue a text by a decoder, token by token");
  command->add_option("model", options->model, "the model (.onnx, .py) or artifact (.so)")->required();
  options->generation.read_json = read_byte_level;
  options->generation.add_to(*command);
  options->cache.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc generate model.onnx --tokens 1,2,3 --count 20");
  command->callback([options, &exit_code] { exit_code = generate_from(*options); });
}

}  // namespace relaxc::tools
