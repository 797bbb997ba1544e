// SPDX-License-Identifier: Apache-2.0
// The Python that runs the runners and `parallax sweep`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace parallax::foreign {

// The Python package of Parallax, as pip knows it.
inline constexpr std::string_view kPackage = "parallax-onnx";

// For a process that a Python runs: that one's executable, and the folder of the package parallax where that Python
// does not find it by itself.
void set_python(std::string executable, std::string package_folder);

// The one that was set, else PARALLAX_PYTHON, else python3 in the folder of this program (or of the environment in
// whose site-packages it is), else python3 of PATH. Errors: usage, where there is none, or PARALLAX_PYTHON names no
// program.
Result<std::string> find_python();

// The words that start a module of the package parallax: "PYTHON", "-m", "parallax.runners", ...
Result<std::vector<std::string>> python_module(std::string_view module, const std::vector<std::string>& arguments);

// The command of the shell that becomes a Python with these words; it finds the package as the Python that was set
// does.
std::string python_command(const std::vector<std::string>& words);

// Those of parallax.runners, parallax.sweep and the runtimes' packages that the Python finds, without importing them.
// Empty where it does not answer.
std::vector<std::string> packages_of(const std::string& python);

// Says how a package comes to an interpreter that lacks it: "install it there: ...".
std::string install_advice(const std::string& python, std::string_view package);

}  // namespace parallax::foreign
