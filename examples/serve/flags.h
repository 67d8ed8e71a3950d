// The command lines of the two programs: an artifact and numbers, serve ARTIFACT --port 8080 --batch 32
#pragma once
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace serve {

struct Number {
  int value;  // the default at first
  int least, most;
};

struct Flags {
  std::string artifact;
  std::map<std::string, Number, std::less<>> numbers;

  // Throws std::invalid_argument for a wrong command line. --help prints the usage and ends the program.
  Flags(int argc, char** argv, std::map<std::string, Number, std::less<>> known) : numbers(std::move(known)) {
    const std::vector<std::string_view> arguments(argv + 1, argv + argc);
    for (const std::string_view argument : arguments) {
      if (argument != "--help" && argument != "-h") continue;
      fmt::print("{}\n", usage(argv[0]));
      std::exit(0);
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].starts_with('-') && artifact.empty()) {
        artifact = arguments[i];
      } else {
        const std::string_view value = i + 1 < arguments.size() ? arguments[i + 1] : "";
        set(arguments[i], value, usage(argv[0]));
        ++i;
      }
    }
    if (artifact.empty()) throw std::invalid_argument("expected an artifact\n" + usage(argv[0]));
  }
  int operator[](std::string_view name) const { return numbers.find(name)->second.value; }

 private:
  void set(std::string_view flag, std::string_view text, const std::string& usage) {
    auto found = numbers.find(flag.starts_with("--") ? flag.substr(2) : "");
    if (found == numbers.end()) throw std::invalid_argument(fmt::format("unknown argument '{}'\n{}", flag, usage));
    Number& number = found->second;
    auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
    const bool is_number = error == std::errc() && rest == text.data() + text.size();
    if (!is_number || number.value < number.least || number.value > number.most)
      throw std::invalid_argument(
          fmt::format("{}: expected a number from {} to {}, found '{}'", flag, number.least, number.most, text));
  }

  std::string usage(std::string_view program) const {
    std::string text = fmt::format("usage: {} ARTIFACT", program);
    for (const auto& [name, number] : numbers) text += fmt::format(" [--{} {}]", name, number.value);
    return text;
  }
};

}  // namespace serve
