// A comparison as one HTML file that needs nothing beside it: verdict, first divergence, a table to sort and filter,
// the picture.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"

namespace parallax {

// `svg` is the graph's picture as Graphviz writes it; empty: no picture.
std::string comparison_to_html(const Comparison& comparison, const std::string& svg);

}  // namespace parallax
