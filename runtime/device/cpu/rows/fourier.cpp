// SPDX-License-Identifier: Apache-2.0
// A stage of radix r splits groups of m * r elements into r groups of m. Loops run over the signals and over the groups
// of earlier stages, so they are vector code from the first or second stage on.
#include "runtime/device/cpu/rows/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

using Parts = Fourier::Parts;

constexpr int64_t kMostRadix = 31;  // of primes: above, the chirp is faster

// 4 first; empty where a prime is too large.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> radices;
  const auto divide = [&](int64_t radix) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  };
  divide(4);
  for (int64_t radix = 2; radix <= kMostRadix; ++radix) divide(radix);
  if (n > 1) radices.clear();
  return radices;
}

// One stage. Groups have `group` = m * r elements, runs `run` numbers each; roots[i * step] are those of the group.
struct Stage {
  int64_t group, radix, run;
  const double* roots;
  int64_t step;
  int64_t m() const { return group / radix; }
  double cosine(int64_t i) const { return roots[2 * i * step]; }
  double sine(int64_t i) const { return roots[2 * i * step + 1]; }
};

// to = (to + from * root) for a run of complex numbers.
inline void add_product(const Parts& to, const Parts& from, double cosine, double sine, int64_t count) {
  double* const to_real = to.real;
  double* const to_imaginary = to.imaginary;
  const double* const real = from.real;
  const double* const imaginary = from.imaginary;
  PX_INDEPENDENT_ITERATIONS
  for (int64_t q = 0; q < count; ++q) {
    to_real[q] += real[q] * cosine - imaginary[q] * sine;
    to_imaginary[q] += real[q] * sine + imaginary[q] * cosine;
  }
}

// from * root for one complex number.
inline void store_product(double real, double imaginary, double cosine, double sine, double* to_real,
                          double* to_imaginary) {
  *to_real = real * cosine - imaginary * sine;
  *to_imaginary = real * sine + imaginary * cosine;
}

inline Parts at(const Parts& parts, int64_t offset) { return {parts.real + offset, parts.imaginary + offset}; }

// Group element p + m * i goes to p * r + u, as the sum over i of root_r(i u), times root_group(p u).
inline void any_radix(const Stage& stage, int64_t p, const Parts& in, const Parts& out) {
  const int64_t m = stage.m();
  for (int64_t u = 0; u < stage.radix; ++u) {
    const Parts target = at(out, (p * stage.radix + u) * stage.run);
    std::fill_n(target.real, stage.run, 0.0);
    std::fill_n(target.imaginary, stage.run, 0.0);
    for (int64_t i = 0; i < stage.radix; ++i) {
      const int64_t root = (i * u % stage.radix * m + p * u) % stage.group;
      add_product(target, at(in, (p + m * i) * stage.run), stage.cosine(root), stage.sine(root), stage.run);
    }
  }
}

inline void radix_four(const Stage& stage, int64_t p, const Parts& in, const Parts& out) {
  const int64_t run = stage.run;
  const int64_t m = stage.m();
  const double turn = stage.sine(m);  // of a quarter: -1, or 1 for the inverse
  const double* const real = in.real + p * run;
  const double* const imaginary = in.imaginary + p * run;
  const int64_t quarter = m * run;
  double* const to_real = out.real + 4 * p * run;
  double* const to_imaginary = out.imaginary + 4 * p * run;
  const double cosines[] = {stage.cosine(p), stage.cosine(2 * p), stage.cosine(3 * p)};
  const double sines[] = {stage.sine(p), stage.sine(2 * p), stage.sine(3 * p)};
  PX_INDEPENDENT_ITERATIONS
  for (int64_t q = 0; q < run; ++q) {
    const double even_real = real[q] + real[q + 2 * quarter];
    const double even_imaginary = imaginary[q] + imaginary[q + 2 * quarter];
    const double odd_real = real[q] - real[q + 2 * quarter];
    const double odd_imaginary = imaginary[q] - imaginary[q + 2 * quarter];
    const double sum_real = real[q + quarter] + real[q + 3 * quarter];
    const double sum_imaginary = imaginary[q + quarter] + imaginary[q + 3 * quarter];
    const double rotated_real = -turn * (imaginary[q + quarter] - imaginary[q + 3 * quarter]);
    const double rotated_imaginary = turn * (real[q + quarter] - real[q + 3 * quarter]);
    to_real[q] = even_real + sum_real;
    to_imaginary[q] = even_imaginary + sum_imaginary;
    store_product(odd_real + rotated_real, odd_imaginary + rotated_imaginary, cosines[0], sines[0], to_real + q + run,
                  to_imaginary + q + run);
    store_product(even_real - sum_real, even_imaginary - sum_imaginary, cosines[1], sines[1], to_real + q + 2 * run,
                  to_imaginary + q + 2 * run);
    store_product(odd_real - rotated_real, odd_imaginary - rotated_imaginary, cosines[2], sines[2],
                  to_real + q + 3 * run, to_imaginary + q + 3 * run);
  }
}

}  // namespace

std::vector<double> roots_of_unity(int64_t n, bool inverse) {
  constexpr double kQuarters[][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  std::vector<double> roots;
  roots.reserve(static_cast<size_t>(2 * n));
  for (int64_t k = 0; k < n; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    const bool is_quarter = 4 * k % n == 0;
    const double sine = is_quarter ? kQuarters[4 * k / n][1] : std::sin(angle);
    roots.push_back(is_quarter ? kQuarters[4 * k / n][0] : std::cos(angle));
    roots.push_back(inverse ? sine : -sine);
  }
  return roots;
}

// X(k) = c(k) sum over j of (x(j) c(j)) conj(c(k - j)), where c(k) is the root of order 2 n with index k^2: a
// convolution, made by transforms of the length of `whole`.
struct Fourier::Chirp {
  Chirp(int64_t n, bool inverse)
      : length(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)))), whole(length, false) {
    const std::vector<double> fine = roots_of_unity(2 * n, inverse);
    roots.resize(static_cast<size_t>(2 * n));
    filter.resize(static_cast<size_t>(2 * length));
    for (int64_t k = 0; k < n; ++k) {
      const auto square = static_cast<size_t>(k % (2 * n) * k % (2 * n));
      const double cosine = fine[2 * square], sine = fine[2 * square + 1];
      roots[static_cast<size_t>(2 * k)] = cosine;
      roots[static_cast<size_t>(2 * k + 1)] = sine;
      for (const int64_t location : {k, (length - k) % length}) {
        filter[static_cast<size_t>(location)] = cosine / static_cast<double>(length);
        filter[static_cast<size_t>(length + location)] = -sine / static_cast<double>(length);
      }
    }
    std::vector<double> scratch(static_cast<size_t>(whole.scratch_size(1)));
    whole.run(1, {filter.data(), filter.data() + length}, scratch.data());
  }

  int64_t length;
  Fourier whole;
  std::vector<double> roots;   // c(k), pairs
  std::vector<double> filter;  // the transform of conj(c), real parts first, over `length`
};

Fourier::Fourier(int64_t n, bool inverse) : n_(n), radices_(radices_of(n)) {
  if (n > 1 && radices_.empty()) {
    chirp_ = std::make_unique<Chirp>(n, inverse);
  } else {
    roots_ = roots_of_unity(n, inverse);
  }
}
Fourier::~Fourier() = default;
Fourier::Fourier(Fourier&&) noexcept = default;
Fourier& Fourier::operator=(Fourier&&) noexcept = default;

int64_t Fourier::scratch_size(int64_t signals) const {
  if (chirp_ != nullptr) return 2 * chirp_->length * signals + chirp_->whole.scratch_size(signals);
  return 2 * n_ * signals;
}

void Fourier::run(int64_t signals, const Parts& values, double* scratch) const {
  if (chirp_ != nullptr) return run_chirp(signals, values, scratch);
  run_stages(signals, values, scratch);
}

void Fourier::run_stages(int64_t signals, const Parts& values, double* scratch) const {
  Parts in = values;
  Parts out{scratch, scratch + n_ * signals};
  Stage stage{n_, 1, signals, roots_.data(), 1};
  for (const int64_t radix : radices_) {
    stage.radix = radix;
    vectorized(0, stage.m(), [stage, in, out](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (stage.radix == 4) {
          radix_four(stage, p, in, out);
        } else {
          any_radix(stage, p, in, out);
        }
      }
    });
    stage.group /= radix;
    stage.run *= radix;
    stage.step *= radix;
    std::swap(in, out);
  }
  if (in.real == values.real) return;
  std::copy_n(in.real, n_ * signals, values.real);
  std::copy_n(in.imaginary, n_ * signals, values.imaginary);
}

void Fourier::run_chirp(int64_t signals, const Parts& values, double* scratch) const {
  const int64_t length = chirp_->length;
  const Parts padded{scratch, scratch + length * signals};
  double* const rest = scratch + 2 * length * signals;
  std::fill_n(scratch, 2 * length * signals, 0.0);
  for (int64_t j = 0; j < n_; ++j) {
    const double cosine = chirp_->roots[static_cast<size_t>(2 * j)];
    const double sine = chirp_->roots[static_cast<size_t>(2 * j + 1)];
    add_product(at(padded, j * signals), at(values, j * signals), cosine, sine, signals);
  }
  chirp_->whole.run(signals, padded, rest);
  // Times the filter; conjugated, so that the same transform goes back.
  for (int64_t j = 0; j < length; ++j) {
    const double cosine = chirp_->filter[static_cast<size_t>(j)];
    const double sine = chirp_->filter[static_cast<size_t>(length + j)];
    for (int64_t i = j * signals; i < (j + 1) * signals; ++i) {
      const double real = padded.real[i], imaginary = padded.imaginary[i];
      padded.real[i] = real * cosine - imaginary * sine;
      padded.imaginary[i] = -(real * sine + imaginary * cosine);
    }
  }
  chirp_->whole.run(signals, padded, rest);
  for (int64_t k = 0; k < n_; ++k) {
    const double cosine = chirp_->roots[static_cast<size_t>(2 * k)];
    const double sine = chirp_->roots[static_cast<size_t>(2 * k + 1)];
    for (int64_t i = k * signals; i < (k + 1) * signals; ++i) {
      const double real = padded.real[i], imaginary = -padded.imaginary[i];
      values.real[i] = real * cosine - imaginary * sine;
      values.imaginary[i] = real * sine + imaginary * cosine;
    }
  }
}

}  // namespace parallax::runtime
