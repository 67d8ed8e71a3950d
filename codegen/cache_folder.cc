#include "codegen/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc::codegen {

namespace fs = std::filesystem;

bool is_cached_file(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::regular;
}

void make_way(const std::string& path) {
  std::error_code ignored;
  if (!is_cached_file(path)) fs::remove(path, ignored);
}

bool is_cache_key(const std::string& text) {
  return text.size() == 32 && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

void make_private_folder(const std::string& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored)) return;
  const std::string parent = fs::path(folder).parent_path().string();
  if (!parent.empty()) vm::make_folder(parent);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw_runtime_error("cannot make the folder '{}': {}", folder, std::strerror(errno));
}

void check_private_folder(const std::string& folder) {
  struct stat status{};
  if (stat(folder.c_str(), &status) != 0) throw_runtime_error("the folder '{}' cannot be read", folder);
  if (status.st_uid != geteuid())
    throw_runtime_error("the folder '{}' of artifacts belongs to another user; name one of your own (--cache)", folder);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw_runtime_error("other users may write to the folder '{}' of artifacts; chmod go-w lets it be used", folder);
}

std::vector<CachedFile> cached_files(const std::string& folder, const std::string& suffix) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const bool is_ours = entry.path().extension() == suffix && is_cache_key(entry.path().stem().string());
    if (!is_ours || !is_cached_file(entry.path().string())) continue;
    files.push_back({entry.path().string(), entry.last_write_time(error), entry.file_size(error)});
  }
  std::ranges::sort(files, std::greater(), [](const CachedFile& file) { return std::pair(file.time, file.path); });
  return files;
}

void trim_folder(const std::string& folder, const std::string& suffix, uint64_t most_bytes, uint64_t most_files) {
  uint64_t bytes = 0, count = 0;
  std::error_code ignored;
  for (const CachedFile& file : cached_files(folder, suffix)) {
    bytes += file.bytes, ++count;
    if (bytes > most_bytes || count > most_files) fs::remove(file.path, ignored);
  }
}

}  // namespace relaxc::codegen
