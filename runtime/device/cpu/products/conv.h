// SPDX-License-Identifier: Apache-2.0
// conv: convolution and its transpose: oneDNN in float (filters reordered once), plain loops for double and integers.
#pragma once

#include <memory>

#include "runtime/device/cpu/activation.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// x is [batch, in_channels, spatial...], the filters [out_channels, in_channels / groups, kernel...] (for the transpose
// [in_channels, out_channels / groups, kernel...]), y [batch, out_channels, out_spatial...]. All row-major.
struct ConvProblem {
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t groups = 1;
  Ints in_spatial;
  Ints out_spatial;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;
  Ints pads_end;
  bool filters_are_constant = false;
  Activation activation;         // of the float convolution's result; the others have none
  bool x_channels_last = false;  // x is [batch, in_spatial..., in_channels]; see suits_channels_last
  bool y_channels_last = false;  // y is [batch, out_spatial..., out_channels]
  int64_t spatial_rank() const { return kernel.size(); }
};

// True where the float convolution gains from a channels-last y; only then may x and y be so.
bool suits_channels_last(const ConvProblem& problem);
// True where it is worth a copy of a row-major x with its channels last, where y is so.
bool gains_from_channels_last_copy(const ConvProblem& problem);

// `bias` is one value for each output channel, or null.
Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters, const float* bias,
            float* y);
// A convolution whose filters and bias outlive the queue and never change, and y channels last: prepared once, run
// often.
struct ReadyConv;
Result<std::shared_ptr<ReadyConv>> make_ready(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters,
                                              const float* bias);
// The operand that is added to the result, which is in y's order and has no activation of its own then.
struct Addend {
  const float* values = nullptr;  // null: nothing is added
  Activation activation;          // of the sum
};
Status conv(Queue<Cpu>& queue, ReadyConv& ready, const float* x, const Addend& addend, float* y);

Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const double* x, const double* filters, const double* bias,
            double* y);
Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const int64_t* x, const int64_t* filters,
            const int64_t* bias, int64_t* y);

Status conv_transpose(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters,
                      const float* bias, float* y);
Status conv_transpose(Queue<Cpu>& queue, const ConvProblem& problem, const double* x, const double* filters,
                      const double* bias, double* y);

}  // namespace parallax::runtime
