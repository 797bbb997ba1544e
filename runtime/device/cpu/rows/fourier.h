// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of any length in n log n steps, in double, several signals side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace parallax::runtime {

// exp(-2 pi i k / n) for k < n, or their conjugates for the inverse, as pairs of numbers. Quarters of the circle are
// exact, so that what cancels in theory cancels here.
std::vector<double> roots_of_unity(int64_t n, bool inverse);

// Sums over j of value(j) root(j k), without the inverse's factor. Lengths whose primes are small go stage by stage
// (Stockham's order: Cochran et al., "What is the fast Fourier transform?", 1967); others become a convolution of a
// length that is a power of two (Bluestein, 1970).
class Fourier {
 public:
  Fourier(int64_t n, bool inverse);
  ~Fourier();
  Fourier(Fourier&&) noexcept;
  Fourier& operator=(Fourier&&) noexcept;

  struct Parts {
    double* real;
    double* imaginary;
  };

  // Doubles of scratch memory that run() needs.
  int64_t scratch_size(int64_t signals) const;
  // Element j of signal s is number j * signals + s; the spectra replace the values.
  void run(int64_t signals, const Parts& values, double* scratch) const;

 private:
  struct Chirp;

  void run_stages(int64_t signals, const Parts& values, double* scratch) const;
  void run_chirp(int64_t signals, const Parts& values, double* scratch) const;

  int64_t n_;
  std::vector<double> roots_;
  std::vector<int64_t> radices_;  // empty: there is a chirp
  std::unique_ptr<Chirp> chirp_;
};

}  // namespace parallax::runtime
