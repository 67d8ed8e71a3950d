// Hashes of texts and files, as names of files in caches: XXH3-128. They find equal content, and are no protection
// against somebody who makes two files of the same hash.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace relaxc::vm {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  // Adds a text with its length, so that the parts of a list cannot be taken for those of another one.
  ContentHash& add(std::string_view text);
  ContentHash& add(std::span<const std::byte> bytes);
  // Returns 32 hexadecimal digits.
  std::string digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the hash of a file's content. Throws RuntimeError where it cannot be read.
std::string hash_of_file(const std::string& path);

}  // namespace relaxc::vm
