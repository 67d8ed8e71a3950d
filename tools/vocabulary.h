// The texts of a model's tokens. It needs the runtime only.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace relaxc::tools {

class Vocabulary {
 public:
  // Reads a file with a token in each line, the first one being token 0. \n, \r, \t and \\ stand for characters that
  // have no place in a line. Throws a CompileError for a file that cannot be read, or holds a token twice.
  static Vocabulary read_lines(const std::string& path);
  // `encoder`, unless it is null, cuts texts into tokens.
  using Encoder = std::function<std::vector<int64_t>(std::string_view text)>;
  explicit Vocabulary(std::vector<std::string> tokens, Encoder encoder = nullptr);

  // Returns the tokens of a text: at each place the longest one that fits, unless there is an encoder. Throws a
  // CompileError that names the place where none does.
  std::vector<int64_t> encode(std::string_view text) const;
  // Returns the text of a token, "" for one that the vocabulary does not have.
  std::string_view text(int64_t token) const;
  // Returns the token of this text, or nullptr.
  const int64_t* find(const std::string& text) const;

 private:
  std::vector<std::string> texts_;
  std::map<std::string, int64_t> tokens_;
  size_t longest_ = 0;  // bytes of a token
  Encoder encoder_;
};

}  // namespace relaxc::tools
