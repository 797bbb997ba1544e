// SPDX-License-Identifier: Apache-2.0
// An error picture as SVG: the map of errors and the two histograms.
#pragma once

#include <string>

#include "inspector/diff/compare/error_picture.h"

namespace parallax {

// `limit` is the absolute error that the value is allowed (its atol and rtol at the value's own size); errors above it
// are drawn in the colors of divergence. 0: any error is.
std::string error_map_svg(const ErrorPicture& picture, double limit);
std::string histograms_svg(const ErrorPicture& picture);

}  // namespace parallax
