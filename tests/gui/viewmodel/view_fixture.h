// SPDX-License-Identifier: Apache-2.0
// Dumps for the tests of views: made by real runs of sample models, one side with a seeded fault.
#pragma once

#include <string>

#include "gui/viewmodel/view_document.h"

namespace parallax::view_test {

struct Dumps {
  std::string a, b;
};

// A layer of Llama; in B one element of the weight of its down projection is another one.
const Dumps& llama_fault();
// The name of the node that reads the changed weight.
std::string llama_culprit_node();
// A Loop that decodes greedily; in B its score weight is changed.
const Dumps& loop_fault();
// y = Log(|x| + 1) against y = Log(|x| - 1): NaN in B alone.
const Dumps& nan_fault();

// y = Log(|x| + 1) of 490,000 elements against y = Log(|x| + 1.5).
const Dumps& large_fault();

// x -> scale -> soft -> end -> y; A has a second output `u` by `clip`, B `z` by `late`. In B values have other names,
// and `soft` has another axis. `dumps` are of a run of both `models`.
struct TwoGraphs {
  Dumps models, dumps;
};
const TwoGraphs& two_graphs();

// Values without a graph: `off` differs, `same` does not, `lone` is in B alone, `shapes` is 4x2 in A and 3x2 in B.
const Dumps& plain_values();

std::string sample(const std::string& name);   // path below samples/
std::string scratch(const std::string& name);  // path in a folder of this process, removed at its end

// Opened and compared.
std::shared_ptr<const Document> opened(const Dumps& dumps);

}  // namespace parallax::view_test
