// SPDX-License-Identifier: Apache-2.0
// The patterns; each is described in the list of rewrite.cpp.
#pragma once

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

void drop_identities(GraphEdit& edit, const RewriteContext& context);
void drop_dropouts(GraphEdit& edit, const RewriteContext& context);
void fold_constants(GraphEdit& edit, const RewriteContext& context);
void clean_casts(GraphEdit& edit, const RewriteContext& context);
void clean_reshapes(GraphEdit& edit, const RewriteContext& context);
void clean_transposes(GraphEdit& edit, const RewriteContext& context);
void drop_duplicates(GraphEdit& edit, const RewriteContext& context);
void drop_dead_nodes(GraphEdit& edit, const RewriteContext& context);
void fuse_gelus(GraphEdit& edit, const RewriteContext& context);
void fuse_swishes(GraphEdit& edit, const RewriteContext& context);
void fuse_layer_norms(GraphEdit& edit, const RewriteContext& context);
void fuse_rms_norms(GraphEdit& edit, const RewriteContext& context);
void fuse_skip_norms(GraphEdit& edit, const RewriteContext& context);
void fuse_attentions(GraphEdit& edit, const RewriteContext& context);
void fuse_dequantized_products(GraphEdit& edit, const RewriteContext& context);
void fuse_matmul_transposes(GraphEdit& edit, const RewriteContext& context);
void fuse_matmul_scales(GraphEdit& edit, const RewriteContext& context);
void fuse_matmul_biases(GraphEdit& edit, const RewriteContext& context);
void fuse_linear_activations(GraphEdit& edit, const RewriteContext& context);
void fuse_product_residuals(GraphEdit& edit, const RewriteContext& context);
void fuse_linear_residuals(GraphEdit& edit, const RewriteContext& context);
void fuse_gates(GraphEdit& edit, const RewriteContext& context);
void fuse_rotaries(GraphEdit& edit, const RewriteContext& context);
void fuse_chains(GraphEdit& edit, const RewriteContext& context);
void fold_conv_norms(GraphEdit& edit, const RewriteContext& context);
void fuse_channel_affines(GraphEdit& edit, const RewriteContext& context);
void fuse_channel_shuffles(GraphEdit& edit, const RewriteContext& context);
void fuse_conv_residuals(GraphEdit& edit, const RewriteContext& context);
void fuse_conv_activations(GraphEdit& edit, const RewriteContext& context);

}  // namespace parallax::runtime
