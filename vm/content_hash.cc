#include "vm/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/formatted.h"
#include "vm/file_memory.h"

namespace relaxc::vm {

struct ContentHash::State {
  XXH3_state_t xxh3;  // its type makes it cache-line aligned
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
ContentHash::~ContentHash() = default;

ContentHash& ContentHash::add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

ContentHash& ContentHash::add(std::span<const std::byte> bytes) {
  const uint64_t size = bytes.size();
  XXH3_128bits_update(&state_->xxh3, &size, sizeof size);
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
  return *this;
}

std::string ContentHash::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return formatted("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_of_file(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string hash = ContentHash().add(file->bytes()).digest();
  file->check_unchanged();
  return hash;
}

}  // namespace relaxc::vm
