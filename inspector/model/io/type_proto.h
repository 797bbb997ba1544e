// SPDX-License-Identifier: Apache-2.0
// TypeProto and ValueInfoProto, between message and IR. Private to this folder.
#pragma once

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

namespace proto {
class TypeProto;
class ValueInfoProto;
}  // namespace proto

// The type in the IR's terms; denotations and the names of opaque types are dropped. Errors: nested deeper than
// max_depth.
Result<TypeInfo> type_from_proto(const proto::TypeProto& type, int max_depth);
void type_to_proto(const TypeInfo& type, proto::TypeProto& out);

// Makes `out` say `type`. What it said before stays if it says the same and more (denotations, opaque names).
void update_type(const TypeInfo& type, proto::TypeProto& out);

// True when `type` has nothing that TypeInfo would lose.
bool is_covered(const TypeInfo& info, const proto::TypeProto& type);

// Reads type, doc and metadata of a listing out of the message into `value`; what is left over goes to value.unparsed.
Status take_value_info(proto::ValueInfoProto& info, int max_depth, ValueDef& value);
void put_value_info(const ValueDef& value, proto::ValueInfoProto& out);

}  // namespace parallax
