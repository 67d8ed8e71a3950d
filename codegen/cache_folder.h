// A folder in the user's cache whose files are named by hashes: whose they must be, and how they are read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace relaxc::codegen {

// Returns whether the path is a regular file, as caches write them, and not a link to one.
bool is_cached_file(const std::string& path);
// Removes what has the name and is not such a file, so that nothing is written through a link.
void make_way(const std::string& path);
// Returns whether the text has the form of a hash of vm::ContentHash.
bool is_cache_key(const std::string& text);

// Makes the folder, with its parents, for this user only. Throws RuntimeError.
void make_private_folder(const std::string& folder);
// Throws RuntimeError where somebody else could put machine code into the folder.
void check_private_folder(const std::string& folder);

struct CachedFile {
  std::string path;
  std::filesystem::file_time_type time;  // of its last change
  uint64_t bytes;
};
// Returns the cached files of this suffix, the one that was modified last first.
std::vector<CachedFile> cached_files(const std::string& folder, const std::string& suffix);
// Removes those that were modified first, until at most so many files of at most so many bytes stay.
void trim_folder(const std::string& folder, const std::string& suffix, uint64_t most_bytes, uint64_t most_files);

}  // namespace relaxc::codegen
