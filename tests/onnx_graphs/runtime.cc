#include "tests/onnx_graphs/runtime.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/process.h"

namespace relaxc::test {

namespace fs = std::filesystem;

std::string find_onnx_runtime() {
  const char* given = std::getenv("RELAXC_ORT");
  std::string folder = given ? given : RELAXC_SOURCE_DIR "/bench/ort/node_modules/onnxruntime-node";
  return fs::is_directory(folder) ? folder : "";
}

void run_onnx_runtime(std::vector<std::string> folders, const std::string& runtime, double limit_seconds) {
  while (!folders.empty()) {
    std::vector<std::string> command = {"node", RELAXC_SOURCE_DIR "/tests/onnx_graphs/ort.mjs", runtime};
    command.insert(command.end(), folders.begin(), folders.end());
    Outcome outcome = run_program(command, limit_seconds);
    if (outcome.exit_code == 127) return;
    // If it crashed, it did so in the first folder without results.
    size_t before = folders.size();
    std::erase_if(folders, [](const std::string& folder) { return fs::exists(folder + "/ort_done"); });
    if (!folders.empty() && folders.size() == before)
      std::ofstream(folders[0] + "/ort_error.txt") << outcome.how_it_ended();
    if (folders.size() == before) folders.erase(folders.begin());
  }
}

}  // namespace relaxc::test
