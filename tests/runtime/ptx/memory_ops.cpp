// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics, moves, and the conversions between addresses of a space and generic ones.
#include <algorithm>
#include <cstring>

#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

size_t element_bytes(const Block& block, const Thread& thread, const Instruction& instruction) {
  if (instruction.type == Type::b128) block.refuse(thread, "elements of 128 bits are not known");
  return static_cast<size_t>(bytes_of(instruction.type));
}
const Operand& element(const Instruction& instruction, const Operand& operand, size_t index) {
  return instruction.vector > 1 ? operand.list[index] : operand;
}

Block::Access access_of(const Instruction& instruction, Block::Access weak) {
  return instruction.is_strong ? Block::Access::atomic : weak;
}

void load(Block& block, Thread& thread, const Instruction& instruction) {
  const size_t bytes = element_bytes(block, thread, instruction);
  const auto count = static_cast<size_t>(instruction.vector);
  const std::byte* source = block.memory(thread, instruction, instruction.operands[1], bytes * count,
                                         access_of(instruction, Block::Access::read));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, source + i * bytes, bytes);
    block.set(thread, element(instruction, instruction.operands[0], i), extended(instruction.type, bits));
  }
}

void store(Block& block, Thread& thread, const Instruction& instruction) {
  const size_t bytes = element_bytes(block, thread, instruction);
  const auto count = static_cast<size_t>(instruction.vector);
  std::byte* target = block.memory(thread, instruction, instruction.operands[0], bytes * count,
                                   access_of(instruction, Block::Access::write));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = block.value(thread, element(instruction, instruction.operands[1], i));
    std::memcpy(target + i * bytes, &bits, bytes);
  }
}

uint64_t sum_of(Type type, uint64_t a, uint64_t b) {
  if (type == Type::f32) return bits_of(as_float(a) + as_float(b));
  if (type == Type::f64) return bits_of(as_double(a) + as_double(b));
  return a + b;
}

// The bits that an atomic instruction stores; `held` and `given` are as wide as the type.
uint64_t combined(const Block& block, const Thread& thread, const Instruction& instruction, uint64_t held,
                  uint64_t given, uint64_t third) {
  const Type type = instruction.type;
  const bool is_less = is_signed(type) ? as_signed(type, held) < as_signed(type, given) : held < given;
  switch (instruction.mode) {
    case Mode::add:
      return sum_of(type, held, given);
    case Mode::exch:
      return given;
    case Mode::cas:
      return held == given ? third : held;
    case Mode::min:
      return is_less ? held : given;
    case Mode::max:
      return is_less ? given : held;
    case Mode::and_:
      return held & given;
    case Mode::or_:
      return held | given;
    case Mode::xor_:
      return held ^ given;
    case Mode::inc:
      return held >= given ? 0 : held + 1;
    case Mode::dec:
      return held == 0 || held > given ? given : held - 1;
    default:
      block.refuse(thread, "this atomic operation is not known");
  }
}

void update(Block& block, Thread& thread, const Instruction& instruction, size_t address, uint64_t& held) {
  const auto& operands = instruction.operands;
  const size_t bytes = element_bytes(block, thread, instruction);
  std::byte* target = block.memory(thread, instruction, operands[address], bytes, Block::Access::atomic);
  held = 0;
  std::memcpy(&held, target, bytes);
  const uint64_t given = cut(instruction.type, block.value(thread, operands[address + 1]));
  const uint64_t third = instruction.mode == Mode::cas ? block.value(thread, operands[address + 2]) : 0;
  const uint64_t result = combined(block, thread, instruction, held, given, third);
  std::memcpy(target, &result, bytes);
}
void atomic(Block& block, Thread& thread, const Instruction& instruction) {
  uint64_t held = 0;
  update(block, thread, instruction, 1, held);
  block.set(thread, instruction.operands[0], extended(instruction.type, held));
}
void reduce(Block& block, Thread& thread, const Instruction& instruction) {
  uint64_t held = 0;
  update(block, thread, instruction, 0, held);
}

void convert_address(Block& block, Thread& thread, const Instruction& instruction) {
  const uint64_t address = block.value(thread, instruction.operands[1]);
  const uint64_t base = block.base_of(thread, instruction.space);
  block.set(thread, instruction.operands[0], instruction.to_space ? address - base : address + base);
}
void is_in_space(Block& block, Thread& thread, const Instruction& instruction) {
  const Space space = block.space_of(thread, block.value(thread, instruction.operands[1]));
  block.set(thread, instruction.operands[0], space == instruction.space ? 1 : 0);
}

// One register, or its parts: the first is the lowest.
void move(Block& block, Thread& thread, const Instruction& instruction) {
  const Operand &target = instruction.operands[0], &source = instruction.operands[1];
  const auto part_bits = [&](const Operand& list) {
    return static_cast<uint32_t>(8 * bytes_of(instruction.type)) / static_cast<uint32_t>(list.list.size());
  };
  if (target.kind == Operand::Kind::list) {
    const uint64_t bits = block.value(thread, source);
    const uint32_t width = part_bits(target);
    for (uint32_t i = 0; i < target.list.size(); ++i)
      block.set(thread, target.list[i], bits >> (i * width) & ((uint64_t{1} << width) - 1));
  } else if (source.kind == Operand::Kind::list) {
    const uint32_t width = part_bits(source);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < source.list.size(); ++i)
      bits |= (block.value(thread, source.list[i]) & ((uint64_t{1} << width) - 1)) << (i * width);
    block.set(thread, target, bits);
  } else {
    const uint64_t bits = block.value(thread, source);
    block.set(thread, target, instruction.type == Type::pred ? bits & 1 : cut(instruction.type, bits));
  }
}

constexpr OpcodeRow kRows[] = {
    {"ld", Family::any, load},
    {"ldu", Family::any, load},
    {"st", Family::any, store},
    {"atom", Family::any, atomic},
    {"red", Family::any, reduce},
    {"cvta", Family::any, convert_address},
    {"isspacep", Family::any, is_in_space},
    {"mov", Family::any, move},
};

}  // namespace

std::span<const OpcodeRow> memory_rows() { return kRows; }

}  // namespace parallax::ptx
