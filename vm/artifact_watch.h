// Tells an artifact that was only touched from one whose content has changed while programs use it.
#pragma once
#include <atomic>

#include "vm/file_memory.h"

namespace relaxc::vm {

class ArtifactWatch {
 public:
  // The artifact was checked (load_artifact), and lives as long as this.
  explicit ArtifactWatch(const MappedFile& file);
  // Throws a RuntimeError where the file has another size than when it was mapped, or another time of modification and
  // another content. One system call, unless the time is not that of the last call: then the whole file is read.
  void check() const;

 private:
  // Returns the time of modification; -1 where the size is another one.
  int64_t modified_ns() const;
  bool has_same_content() const;
  const MappedFile& file_;
  uint64_t hash_, weights_hash_;           // of its footer
  mutable std::atomic<int64_t> known_ns_;  // the time of modification that the same content had last
};

}  // namespace relaxc::vm
