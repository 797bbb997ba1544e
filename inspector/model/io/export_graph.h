// SPDX-License-Identifier: Apache-2.0
// Graph and Function to their messages: each starts from what import left unread and gets the IR's fields on top.
// Private to this folder.
#pragma once

#include "inspector/base/result.h"
#include "inspector/model/io/tensor_proto.h"
#include "inspector/model/ir.h"

namespace parallax {

namespace proto {
class FunctionProto;
class GraphProto;
}  // namespace proto

Status put_graph(const Graph& graph, PayloadSink* sink, proto::GraphProto& out);
Status put_function(const Function& function, PayloadSink* sink, proto::FunctionProto& out);

}  // namespace parallax
