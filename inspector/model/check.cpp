// What can be wrong with a model that was read: names and edges, operators, attributes, types.
#include <unordered_map>

#include "inspector/model/import.h"
#include "inspector/model/link.h"

namespace parallax {

std::vector<ModelProblem> check_model(const Model& model) {
  std::vector<ModelProblem> problems;
  for (const ValueDef& value : model.graph.values) {
    const bool has_source = value.producer != kNoNode || value.input_index >= 0 || value.initializer_index >= 0 ||
                            value.sparse_initializer_index >= 0 || value.is_outer;
    if (has_source) continue;
    problems.push_back(
        {"value '" + value.name + "'", "is read but nothing defines it", "", "", ErrorCode::invalid_model});
  }
  return problems;
}

}  // namespace parallax
