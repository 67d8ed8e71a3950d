// Results that outlive the process, under keys that are hashes of all that a result depends on. The implementation may
// forget any of them at any time. Safe to use from several threads.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

class ResultStore {
 public:
  virtual ~ResultStore() = default;
  // Returns the bytes that were kept under the key.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  // Fails silently: a result that is not kept is computed again.
  virtual void keep(const std::string& key, std::string_view result) = 0;
};

}  // namespace relaxc
