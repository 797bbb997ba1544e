// SPDX-License-Identifier: Apache-2.0
// The operator table against the registry: no row for what does not exist, no version claimed twice.
#include "reference/ops/table.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "inspector/model/opset/opset_registry.h"

namespace parallax::reference {
namespace {

TEST(Table, RowsNameVersionsTheRegistryKnows) {
  for (const OpRow& row : op_rows()) {
    const auto versions = OpsetRegistry::standard().versions(row.domain, row.op);
    ASSERT_FALSE(versions.empty()) << row.op;
    const auto knows = [&](int64_t version) {
      return std::any_of(versions.begin(), versions.end(),
                         [&](const OpSchema& schema) { return schema.since_version == version; });
    };
    EXPECT_TRUE(knows(row.first_version)) << row.op << "-" << row.first_version;
    EXPECT_TRUE(knows(row.last_version)) << row.op << "-" << row.last_version;
    EXPECT_LE(row.first_version, row.last_version) << row.op;
    EXPECT_NE(row.function, nullptr) << row.op;
  }
}

TEST(Table, RowsOfOneOperatorDoNotOverlap) {
  const auto rows = op_rows();
  for (size_t a = 0; a < rows.size(); ++a) {
    for (size_t b = a + 1; b < rows.size(); ++b) {
      if (rows[a].op != rows[b].op || rows[a].domain != rows[b].domain) continue;
      EXPECT_TRUE(rows[a].last_version < rows[b].first_version || rows[b].last_version < rows[a].first_version)
          << rows[a].op;
    }
  }
}

}  // namespace
}  // namespace parallax::reference
