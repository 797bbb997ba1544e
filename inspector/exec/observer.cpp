// SPDX-License-Identifier: Apache-2.0
// Observers are told apart by a number that is never given twice: an address may be.
#include "inspector/exec/observer.h"

#include <atomic>

namespace parallax {
namespace {

uint64_t next_identity() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Observer::Observer() : identity_(next_identity()) {}
Observer::Observer(const Observer&) : identity_(next_identity()) {}

}  // namespace parallax
