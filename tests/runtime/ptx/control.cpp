// SPDX-License-Identifier: Apache-2.0
// Branches, calls, the end of a thread, and what needs nothing done: fences, for threads run one after the other.
#include <algorithm>
#include <cstring>

#include "tests/runtime/ptx/block.h"
#include "tests/runtime/ptx/module.h"

namespace parallax::ptx {
namespace {

void nothing(Block&, Thread&, const Instruction&) {}

void branch(Block&, Thread& thread, const Instruction& instruction) { thread.position = instruction.operands[0].index; }

void branch_by_index(Block& block, Thread& thread, const Instruction& instruction) {
  const std::vector<int>& table = thread.function->tables[static_cast<size_t>(instruction.operands[1].index)];
  const uint64_t index = cut(Type::u32, block.value(thread, instruction.operands[0]));
  if (index >= table.size())
    block.refuse(thread,
                 "index " + std::to_string(index) + " is outside of a table of " + std::to_string(table.size()));
  thread.position = table[index];
}

constexpr size_t kMostCalls = 64;  // one in the other

// Arguments are parameters of the caller, or registers; they are laid out as the callee's parameters.
void call(Block& block, Thread& thread, const Instruction& instruction) {
  auto& functions = thread.function->module->functions;
  const auto found = functions.find(instruction.operands[1].text);
  if (found == functions.end()) block.refuse(thread, "there is no function " + instruction.operands[1].text);
  if (thread.callers.size() >= kMostCalls) block.refuse(thread, "more than 64 calls are within each other");
  Function& callee = *found->second;
  if (!callee.is_parsed) parse(callee);
  std::vector<std::byte> parameters(static_cast<size_t>(callee.parameter_bytes));
  const std::vector<Operand>& given = instruction.operands[2].list;
  for (size_t i = 0; i < std::min(given.size(), callee.parameters.size()); ++i) {
    const Parameter& parameter = callee.parameters[i];
    std::byte* target = parameters.data() + parameter.offset;
    if (given[i].space == Space::param) {
      std::memcpy(target, thread.parameters.data() + given[i].immediate, static_cast<size_t>(parameter.bytes));
    } else {
      const uint64_t bits = block.value(thread, given[i]);
      std::memcpy(target, &bits, static_cast<size_t>(std::min(8, parameter.bytes)));
    }
  }
  thread.callers.push_back({thread.function, thread.position, std::move(thread.registers), std::move(thread.parameters),
                            std::move(thread.local)});
  thread.function = &callee;
  thread.position = 0;
  thread.registers.assign(static_cast<size_t>(callee.registers), 0);
  thread.parameters = std::move(parameters);
  thread.local.assign(static_cast<size_t>(callee.local_bytes), static_cast<std::byte>(kFreshByte));
}

void exit_thread(Block&, Thread& thread, const Instruction&) { thread.state = ThreadState::ended; }

void return_to_caller(Block& block, Thread& thread, const Instruction& instruction) {
  if (thread.callers.empty()) return exit_thread(block, thread, instruction);
  const Function& callee = *thread.function;
  const std::vector<std::byte> made = std::move(thread.parameters);
  Frame frame = std::move(thread.callers.back());
  thread.callers.pop_back();
  thread.function = frame.function;
  thread.registers = std::move(frame.registers);
  thread.parameters = std::move(frame.parameters);
  thread.local = std::move(frame.local);
  const Instruction& called = frame.function->code[static_cast<size_t>(frame.position)];
  const std::vector<Operand>& targets = called.operands[0].list;
  for (size_t i = 0; i < std::min(targets.size(), callee.results.size()); ++i) {
    const Parameter& result = callee.results[i];
    if (targets[i].space == Space::param) {
      std::memcpy(thread.parameters.data() + targets[i].immediate, made.data() + result.offset,
                  static_cast<size_t>(result.bytes));
    } else {
      uint64_t bits = 0;
      std::memcpy(&bits, made.data() + result.offset, static_cast<size_t>(std::min(8, result.bytes)));
      block.set(thread, targets[i], bits);
    }
  }
  thread.position = frame.position + 1;
}

void trap(Block& block, Thread& thread, const Instruction&) { block.refuse(thread, "the kernel gives up"); }

constexpr OpcodeRow kRows[] = {
    {"bra", Family::any, branch, Flow::jump},
    {"brx", Family::any, branch_by_index, Flow::jump},
    {"call", Family::any, call, Flow::jump},
    {"ret", Family::any, return_to_caller, Flow::jump},
    {"exit", Family::any, exit_thread, Flow::jump},
    {"trap", Family::any, trap},
    {"bar", Family::any, nothing, Flow::barrier},
    {"barrier", Family::any, nothing, Flow::barrier},
    {"membar", Family::any, nothing},
    {"fence", Family::any, nothing},
    {"nanosleep", Family::any, nothing},
    {"prefetch", Family::any, nothing},
    {"prefetchu", Family::any, nothing},
    {"griddepcontrol", Family::any, nothing},
};

}  // namespace

std::span<const OpcodeRow> control_rows() { return kRows; }

}  // namespace parallax::ptx
