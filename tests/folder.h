// A folder in the temporary one for the files of a test.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace relaxc::test {

// The folder is empty at first, of this process alone, and removed with the object.
struct Folder {
  std::filesystem::path path;

  explicit Folder(std::string_view name)
      : path(std::filesystem::temp_directory_path() / fmt::format("relaxc_{}_{}", name, getpid())) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  // Returns the path of a file in it. write() makes the file before.
  std::string at(const std::string& name) const { return (path / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  size_t count() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {})); }
  std::string read(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

}  // namespace relaxc::test
