// A cache that evicts the least recently used values (LRU) when the weights of all exceed a limit. Values are copied in
// and out. Safe to use from several threads.
#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace relaxc {

template <class Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(size_t limit) : limit_(limit) {}

  std::optional<Value> find(uint64_t key) {
    std::lock_guard lock(mutex_);
    auto found = places_.find(key);
    if (found == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  // Replaces the value under the key, if there is one.
  void add(uint64_t key, Value value, size_t weight = 1) {
    std::list<Entry> forgotten;  // destroyed after the lock is released
    std::lock_guard lock(mutex_);
    auto forget = [&](typename std::list<Entry>::iterator entry) {
      weight_ -= entry->weight;
      places_.erase(entry->key);
      forgotten.splice(forgotten.end(), entries_, entry);
    };
    if (auto found = places_.find(key); found != places_.end()) forget(found->second);
    entries_.push_front({key, std::move(value), weight});
    places_.emplace(key, entries_.begin());
    weight_ += weight;
    while (weight_ > limit_) forget(std::prev(entries_.end()));
  }

 private:
  struct Entry {
    uint64_t key;
    Value value;
    size_t weight;
  };

  std::mutex mutex_;
  const size_t limit_;
  size_t weight_ = 0;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<uint64_t, typename std::list<Entry>::iterator> places_;
};

}  // namespace relaxc
