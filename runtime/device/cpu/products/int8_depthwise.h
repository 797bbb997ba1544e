// SPDX-License-Identifier: Apache-2.0
// Int8 convolutions with one filter a channel, all channels side by side: four lines of the input are interleaved, so
// that one instruction adds the products of four taps above each other.
#pragma once

#include "runtime/device/cpu/products/int8_im2col.h"

namespace parallax::runtime {

// Filters of one or two axes. Blocks of 64 channels; of each, for every four lines of a filter and every column, four
// vectors in the order in which lacing leaves the channels.
struct Int8Filters {
  int64_t channels = 0, lines = 1, columns = 1;
  int64_t line_bytes = 0, column_bytes = 0;  // of the input, from one tap to the next
  int64_t column_step = 1;                   // of the input, from one position to the next, in columns
  int64_t column_reach = 1;                  // of the filter, from one tap to the next, in columns
  AlignedBytes numbers;
  std::vector<int32_t> sums;  // of each channel's numbers
  int64_t fours() const { return (lines + 3) / 4; }
  int64_t blocks() const { return (channels + 63) / 64; }
};

// True where all filter values less their zero point are int8 numbers.
bool suits_int8_filters(const ConvProblem& problem, const QuantizedValues& filters);
std::shared_ptr<Int8Filters> pack_int8_filters(const ConvProblem& problem, const Int8Im2colShape& im2col,
                                               const QuantizedValues& filters);
// The initial values of each channel's sums; filled up to whole blocks.
std::vector<int32_t> int8_filter_starts(const Int8Filters& filters, int32_t zero, const int64_t* bias);

// One line of the result at a time, on one thread.
class Int8FilterLine {
 public:
  Int8FilterLine(const Int8Filters& filters, int64_t width);
  // `first` is the first tap of the first output position.
  void run(const uint8_t* first, const int32_t* starts, const Int8Sums& target);

 private:
  const Int8Filters& filters_;
  int64_t width_, im2col_columns_;
  AlignedBytes interleaved_;      // [fours, columns of the input, 256]
  AlignedNumbers<int32_t> sums_;  // [positions, channels filled up]
};

}  // namespace parallax::runtime
