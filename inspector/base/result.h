// SPDX-License-Identifier: Apache-2.0
// Result<T> and Status: how every library edge of Parallax reports failure. No exception crosses a library edge.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parallax {

// The kind of an error, coarse enough that a program can act on it. exit_code() maps it to the process exit code.
enum class ErrorCode {
  usage,          // the request makes no sense: unknown option, executor, path
  invalid_model,  // the model breaks the ONNX specification
  unsupported,    // the model is valid, but something in it is not supported by the executor asked
  execution,      // a node failed while running (bad indices, shape mismatch, division of integers by zero)
  out_of_memory,  // an allocation or a memory limit
  corrupt_file,   // a dump or tensor file that breaks its format
  io,             // the operating system refused to read or write
  cancelled,      // the cancel token was set
};

// One sentence for a person, and its location where that is known.
struct Error {
  ErrorCode code = ErrorCode::execution;
  std::string message;
  std::string node;  // display name of the node at fault, or empty
  std::string op;    // "Softmax-13", or empty

  // Puts `context` in front: "context: message". Called on the way up, outermost last.
  Error with_context(std::string_view context) &&;
  // Names the node unless an inner call has already named one.
  Error at_node(std::string_view node_name, std::string_view op_name) &&;
};

// 2 usage, 3 model invalid or unsupported, 4 execution failed, 5 file unreadable or I/O.
int exit_code(ErrorCode code);
std::string_view name_of(ErrorCode code);

Error make_error(ErrorCode code, std::string message);
Error usage_error(std::string message);
Error invalid_model(std::string message);
Error unsupported(std::string message);
Error execution_error(std::string message);
Error out_of_memory(std::string message);
Error corrupt_file(std::string message);
Error io_error(std::string message);

// A value or an Error. One pointer larger than the value; moving only.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T take() { return std::move(*value_); }

  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<T> value_;
  std::unique_ptr<Error> error_;
};

// Success or an Error; a null pointer when fine.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  void take() {}
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::unique_ptr<Error> error_;
};

using Status = Result<void>;
inline Status ok_status() { return {}; }

template <class T>
Result<T> add_context(Result<T> result, std::string_view context) {
  if (result.ok()) return result;
  return std::move(result).error().with_context(context);
}

}  // namespace parallax

// Yields the value of a Result, or returns its error from the enclosing function; elements before it in braces leak.
#define PX_TRY(...)                                                   \
  __extension__({                                                     \
    auto px_try_result = (__VA_ARGS__);                               \
    if (!px_try_result.ok()) return std::move(px_try_result).error(); \
    px_try_result.take();                                             \
  })

// PX_TRY with the context added to the error.
#define PX_TRY_CONTEXT(context, ...)                                                        \
  __extension__({                                                                           \
    auto px_try_result = (__VA_ARGS__);                                                     \
    if (!px_try_result.ok()) return std::move(px_try_result).error().with_context(context); \
    px_try_result.take();                                                                   \
  })
