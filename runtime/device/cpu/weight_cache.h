// SPDX-License-Identifier: Apache-2.0
// WeightCache: what a session prepares once from constant weights (packed matrices, reordered filters, primitives), by
// key. What never changes once it is made is shared with clones of the session.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace parallax::runtime {

// Entries of several sessions of one plan, whose constants their keys name by address.
class SharedWeights {
 public:
  // As WeightCache::get. Others wait while an entry is made, so that each is made once.
  std::shared_ptr<void> get(const std::string& key, const std::function<std::shared_ptr<void>()>& make) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) return found->second;
    std::shared_ptr<void> made = make();
    if (entries_.size() >= kMaxEntries) entries_.clear();
    entries_.emplace(key, made);
    return made;
  }

 private:
  static constexpr size_t kMaxEntries = 8192;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<void>> entries_;
};

class WeightCache {
 public:
  // Entries of get_shared() are those of `other`, too, from now on.
  void share_with(const WeightCache& other) { shared_ = other.shared_; }

  // get() for an entry that is not changed once it is made, whichever sessions use it.
  template <class T, class Make>
  std::shared_ptr<T> get_shared(const std::string& key, const Make& make) {
    return get<T>(key, [&] {
      return std::static_pointer_cast<T>(shared_->get(
          key, [&] { return std::const_pointer_cast<std::remove_const_t<T>>(std::shared_ptr<T>(make())); }));
    });
  }

  // The entry under `key`, made by `make` when there is none. T is fixed by the key's prefix.
  template <class T, class Make>
  std::shared_ptr<T> get(const std::string& key, const Make& make) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) return std::static_pointer_cast<T>(found->second);
    std::shared_ptr<T> made = make();
    if (entries_.size() >= kMaxEntries) {  // shapes that keep changing must not grow it without bound
      entries_.clear();
      bytes_ = 0;
    }
    entries_.emplace(key, made);
    return made;
  }

  // Bytes that entries hold besides the weights they were made from.
  void add_bytes(int64_t bytes) { bytes_ += bytes; }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kMaxEntries = 8192;
  std::shared_ptr<SharedWeights> shared_ = std::make_shared<SharedWeights>();
  int64_t bytes_ = 0;
  std::unordered_map<std::string, std::shared_ptr<void>> entries_;
};

// Builds keys from plain values.
class CacheKey {
 public:
  explicit CacheKey(std::string prefix) : text_(std::move(prefix)) {}
  template <class T>
  CacheKey& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
    return *this;
  }
  template <class Range>
  CacheKey& add_all(const Range& values) {
    for (const auto& value : values) add(value);
    return add('|');
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace parallax::runtime
