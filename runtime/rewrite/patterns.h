// The patterns; each is described in the list of rewrite.cpp.
#pragma once

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

void drop_identities(GraphEdit& edit, const RewriteContext& context);
void drop_dropouts(GraphEdit& edit, const RewriteContext& context);
void fold_constants(GraphEdit& edit, const RewriteContext& context);

}  // namespace parallax::runtime
