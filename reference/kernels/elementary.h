// SPDX-License-Identifier: Apache-2.0
// exp, tanh, erf and the logistic function of many numbers at once, in plain double arithmetic: the same bits on every
// processor. They are within 1, 4, 3 and 4 units in the last place of double of libm's, so that the float they are
// rounded to is another than libm's once in many millions.
#pragma once

#include <span>

namespace parallax::reference {

// Each replaces x by its function.
void exp_each(std::span<double> values);
void tanh_each(std::span<double> values);
void erf_each(std::span<double> values);
void sigmoid_each(std::span<double> values);  // 1 / (1 + e^-x)

}  // namespace parallax::reference
