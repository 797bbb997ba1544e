// SPDX-License-Identifier: Apache-2.0
// A person at the viewer, who presses keys and looks at what is shown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "gui/viewmodel/viewer.h"
#include "inspector/executors/make_executor.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::view_test {

// A node of the main graph.
inline int32_t item_in(const Document& document, const std::string& node) {
  return document.items->find_node("", node);
}

class Person {
 public:
  explicit Person(const Dumps& dumps) : Person(std::vector<std::string>{dumps.a, dumps.b}) {}
  explicit Person(std::vector<std::string> files) : viewer(make_executor) {
    viewer.open(std::move(files));
    viewer.wait_idle();
  }
  bool press(std::string_view chord) {
    const Command* command = command_for_key(chord);
    return command != nullptr && command->run(viewer);
  }
  std::string path() const {
    return viewer.row() < 0 ? "" : viewer.document()->rows[static_cast<size_t>(viewer.row())].path;
  }
  std::string node() const {
    return viewer.row() < 0 ? "" : viewer.document()->rows[static_cast<size_t>(viewer.row())].node;
  }
  nlohmann::json shown() { return nlohmann::json::parse(view_to_json(viewer)); }

  Viewer viewer;
};

}  // namespace parallax::view_test
