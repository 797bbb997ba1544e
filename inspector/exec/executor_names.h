// SPDX-License-Identifier: Apache-2.0
// Names of executors as they are typed (EXEC): the list that commas separate, and what follows from a name alone.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace parallax {

// The executors of Parallax itself.
inline constexpr std::array<std::string_view, 4> kOwnExecutors = {"reference", "reference:double", "cpu", "cuda"};

// True for a program of its own (FOREIGN.md): every other name.
bool is_foreign_executor(std::string_view name);

// The names in "reference,cmd:./runner 'a,b'". A comma begins another one, except within quotes and after a backslash,
// which stay, since a command is for the shell.
std::vector<std::string> split_executors(std::string_view text);

// The name as a part of a file's name: "reference:double", "cmd:my-runner-x" of "cmd:./my runner x".
std::string file_name_of(std::string_view executor);

}  // namespace parallax
