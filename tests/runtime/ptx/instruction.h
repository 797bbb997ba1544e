// SPDX-License-Identifier: Apache-2.0
// A PTX function as the interpreter runs it: instructions with operands that are resolved, and the table of opcodes.
// The language is NVIDIA's "PTX ISA"; what nvcc does not make of this tree's kernels is refused when it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace parallax::ptx {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  f16,
  bf16,
  b32,
  u32,
  s32,
  f32,
  b64,
  u64,
  s64,
  f64,
  b128,
  f16x2,
  bf16x2,
  tf32
};
enum class Space : uint8_t { generic, global, shared, local, param, constant };

struct TypeInfo {
  std::string_view name;
  Type type;
  int bytes;
  bool is_signed;
};
std::optional<Type> type_named(std::string_view name);
const TypeInfo& info_of(Type type);
inline int bytes_of(Type type) { return info_of(type).bytes; }

// The registers that the hardware fills.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  lanes_below,
  lanes_up_to,
  lanes_above,
  lanes_from,
  own_lane,
  clock,
  dynamic_shared_bytes
};

struct Operand {
  enum class Kind : uint8_t { none, reg, immediate, special, label, list, name };
  Kind kind = Kind::none;
  bool is_negated = false;       // !%p
  int index = -1;                // register, Special, or the instruction that a label names
  int second = -1;               // the second destination of d|p
  uint64_t immediate = 0;        // or the offset of an address
  Space space = Space::generic;  // of the variable that an immediate is the address of
  std::vector<Operand> list;     // {a, b}
  std::string text;
};

enum class Rounding : uint8_t {
  none,
  nearest,
  nearest_away,  // ties away from zero
  zero,
  down,
  up,
  nearest_integer,
  zero_integer,
  down_integer,
  up_integer
};
enum class Compare : uint8_t { none, eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Combine : uint8_t { none, and_, or_, xor_ };
// The variant of an instruction that has several.
enum class Mode : uint8_t {
  none,
  down,
  up,
  bfly,
  idx,
  ballot,
  any,
  all,
  uni,
  add,
  exch,
  cas,
  min,
  max,
  and_,
  or_,
  xor_,
  inc,
  dec,
  finite,
  infinite,
  number,
  notanumber,
  normal,
  subnormal,
  popc,
  shared,
  global,
  local,
  m16n8k16,
  m16n8k8
};

class Block;
struct Thread;
struct Instruction;
using Handler = void (*)(Block& block, Thread& thread, const Instruction& instruction);

// The step that follows the handler, or replaces it.
enum class Flow : uint8_t {
  next,     // goes on with the next instruction
  jump,     // the handler has set the thread's position
  barrier,  // waits for the block
  warp      // waits for the lanes that it names; the handler runs once for all of them, on the first lane
};

struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::next;
  int predicate = -1;  // register; -1: none
  bool predicate_is_negated = false;
  Type type = Type::none;    // the first of the opcode
  Type second = Type::none;  // the second: a source's, the first one's of several
  Space space = Space::generic;
  Compare compare = Compare::none;
  Combine combine = Combine::none;
  Mode mode = Mode::none;
  Rounding rounding = Rounding::none;
  int vector = 1;
  bool flushes = false;    // .ftz
  bool saturates = false;  // .sat
  bool is_strong = false;  // .volatile, .relaxed, ...: threads may access the same memory so at once
  bool is_wide = false;
  bool is_high = false;
  bool is_approximate = false;
  bool has_carry = false;  // .cc
  bool keeps_nan = false;  // .NaN
  bool clamps = false;
  bool is_left = false;
  bool is_reduction = false;  // bar.red
  bool to_space = false;      // cvta.to
  int mask_operand = -1;      // of a warp's instruction; -1: all lanes
  std::array<Operand, 5> operands;
  int line = 0;  // in the PTX file
  std::string text;
};

struct Parameter {
  std::string name;
  int offset = 0;
  int bytes = 0;
  int alignment = 1;
};

struct Module;
struct Function {
  std::string name;
  std::string body;
  int first_line = 1;  // of the body in the file
  Module* module = nullptr;
  bool is_parsed = false;
  std::vector<Parameter> parameters, results;
  int parameter_bytes = 0;
  int registers = 0;
  int shared_bytes = 0;
  int local_bytes = 0;
  std::vector<Instruction> code;
  std::vector<std::vector<int>> tables;  // of brx.idx
};

// A variable of a module, in device memory.
struct Variable {
  Space space = Space::global;
  std::unique_ptr<std::vector<std::byte>> bytes;
};
struct SharedVariable {
  int bytes = 0;  // -1: extern, the launch gives its size
  int alignment = 16;
};

struct Module {
  std::string file;
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::map<std::string, Variable> variables;
  std::map<std::string, SharedVariable> shared;
};

// A text that is not PTX as it is known here, or an access that is not allowed: one sentence.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// ---- The table of opcodes ----

// The types that a row of the table is for.
enum class Family : uint8_t { any, f32, f64, integer };

struct OpcodeRow {
  std::string_view name;
  Family family;
  Handler handler;
  Flow flow = Flow::next;
  int mask_operand = -1;
};
// The rows of each file, and the one for an opcode with these types; null where there is none.
std::span<const OpcodeRow> float_rows();
std::span<const OpcodeRow> integer_rows();
std::span<const OpcodeRow> bit_rows();
std::span<const OpcodeRow> conversion_rows();
std::span<const OpcodeRow> memory_rows();
std::span<const OpcodeRow> control_rows();
std::span<const OpcodeRow> warp_rows();
const OpcodeRow* find_opcode(std::string_view name, Type type);

// The first address of extern shared memory among those of shared memory.
constexpr int kDynamicBase = 65536;

}  // namespace parallax::ptx
