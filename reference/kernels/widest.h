// SPDX-License-Identifier: Apache-2.0
// PX_WIDEST: a function compiled for several vector widths, chosen as the program starts. Its lanes are different sums,
// so the bits do not depend on the choice. Sanitizers cannot run what chooses at load time, and clang 14 has no such
// attribute: there it means nothing.
#pragma once

#if defined(__x86_64__) && !defined(PARALLAX_SANITIZED) && !defined(__clang__)
#define PX_WIDEST __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define PX_WIDEST
#endif
