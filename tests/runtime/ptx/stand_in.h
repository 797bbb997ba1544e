// SPDX-License-Identifier: Apache-2.0
// Functions of the stand-in libraries beyond those that they stand in for: tests read the counts, and the stand-ins of
// libraries submit their work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parallax::ptx {

// Counts of the process so far.
struct StandInCounts {
  int64_t launches = 0;           // of kernels, by the host
  int64_t recorded_launches = 0;  // while a stream was captured
  int64_t replayed_launches = 0;  // by graphs
  int64_t graph_launches = 0;
  int64_t library_calls = 0;  // of cuBLAS and cuDNN, not recorded
  int64_t waits = 0;          // of the host, for a stream or an event that was not reached
  int64_t copies_to_device = 0;
  int64_t copies_to_host = 0;
  int64_t copies_on_device = 0;
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
  int64_t allocations = 0;
  int64_t instructions = 0;   // of kernels' threads
  int64_t kernel_bytes = 0;   // of device memory, each once a launch as read and once as written; with PTX_RACES=on
  int64_t library_bytes = 0;  // of the operands of libraries
  int64_t problems = 0;
};

// A range of device memory that a library reads or writes.
struct LibraryOperand {
  const void* memory = nullptr;
  int64_t bytes = 0;
  const char* name = "";
};

}  // namespace parallax::ptx

extern "C" {
// In libcudart.so.13 where it is the stand-in; dlsym(RTLD_DEFAULT, ...) finds it.
const parallax::ptx::StandInCounts* parallax_stand_in_counts();
}

namespace parallax::ptx {

// Work of a library in the order of a stream. Its operands have to be the device's when it runs, and guard zones have
// to be whole after it.
void submit_library_call(void* stream, const std::string& name, const std::vector<LibraryOperand>& operands,
                         std::function<void()> run);
bool is_device_memory(const void* memory);

}  // namespace parallax::ptx
