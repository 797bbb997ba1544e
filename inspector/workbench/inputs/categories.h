// SPDX-License-Identifier: Apache-2.0
// The values of an input that a model of classical features knows: the words and numbers that its encoders list.
#pragma once

#include <string>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax {

// The values that one column of an input may hold; one of the two lists is empty, or both where nothing is known of it.
struct Categories {
  std::vector<std::string> texts;
  std::vector<double> numbers;

  bool empty() const { return texts.empty() && numbers.empty(); }
};

struct InputCategories {
  std::vector<Categories> columns;  // along the last axis; one alone holds for all. Empty: nothing is listed.
  bool is_prose = false;            // texts are cut into words before they are looked up
  std::string reader;               // for people: the first node that lists some
};

// Followed through operators that keep elements what they are and those that choose columns, to OneHotEncoder,
// LabelEncoder, CategoryMapper and TfIdfVectorizer.
InputCategories find_categories(const Graph& graph, ValueId input);

}  // namespace parallax
