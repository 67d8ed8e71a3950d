// The command lines of the two programs: an artifact and numbers, serve ARTIFACT --port 8080 --batch 32
#pragma once
#include <charconv>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace serve {

struct Flags {
  std::string artifact;
  std::map<std::string, int> numbers;  // with their defaults at first

  Flags(int argc, char** argv, std::map<std::string, int> defaults) : numbers(std::move(defaults)) {
    if (argc < 2 || argv[1][0] == '-') throw std::invalid_argument(usage(argv[0]));
    artifact = argv[1];
    for (int i = 2; i < argc; i += 2) {
      auto number = numbers.find(std::strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "");
      if (number == numbers.end() || i + 1 == argc) throw std::invalid_argument(usage(argv[0]));
      const char* end = argv[i + 1] + std::strlen(argv[i + 1]);
      auto [rest, error] = std::from_chars(argv[i + 1], end, number->second);
      const bool is_port = number->first == "port" && number->second > 65535;
      if (error != std::errc() || rest != end || number->second < 0 || is_port)
        throw std::invalid_argument(fmt::format("{}: expected a number, found '{}'", argv[i], argv[i + 1]));
    }
  }
  int operator[](const std::string& name) const { return numbers.at(name); }

 private:
  std::string usage(const std::string& program) const {
    std::string text = fmt::format("usage: {} ARTIFACT", program);
    for (const auto& [name, value] : numbers) text += fmt::format(" [--{} {}]", name, value);
    return text;
  }
};

}  // namespace serve
