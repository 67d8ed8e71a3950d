// Reports of the long tests for people: ./dev test prints build/reports/*.txt at its end.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace relaxc::test {

inline void write_report(const std::string& topic, const std::string& text) {
  std::string dir = std::string(RELAXC_BINARY_DIR) + "/reports";
  std::filesystem::create_directories(dir);
  std::ofstream(dir + "/" + topic + ".txt") << text;
  fmt::print("{}", text);
  std::fflush(stdout);
}

// tests/CMakeLists.txt tells ctest to call a test skipped when it prints this.
inline void skip(const std::string& reason) { fmt::print("test skipped: {}\n", reason); }

}  // namespace relaxc::test
