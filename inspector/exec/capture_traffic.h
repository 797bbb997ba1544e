// SPDX-License-Identifier: Apache-2.0
// CaptureTraffic: what a session whose values are on a device reports about their copies for the observer.
#pragma once

#include <cstdint>
#include <optional>

namespace parallax {

struct CaptureCounts {
  int64_t copies = 0;           // from the device to the host, of values and of statistics taken there
  int64_t bytes = 0;            // in them
  int64_t bytes_in_pieces = 0;  // of those: of values larger than the room there was
  int64_t waits = 0;            // for copies that had not come when they were needed: the run was ahead of them
  double waited_ms = 0;
};

class CaptureTraffic {
 public:
  virtual ~CaptureTraffic() = default;
  // Since the session was made; nothing where values are on the host anyway.
  virtual std::optional<CaptureCounts> capture_counts() const = 0;
};

}  // namespace parallax
