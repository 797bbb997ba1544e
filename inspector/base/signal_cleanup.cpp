// SPDX-License-Identifier: Apache-2.0
// Lists of what is there, and the thread that cleans up: a signal handler cannot.
#include "inspector/base/signal_cleanup.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "inspector/base/mapped_addresses.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

struct Lists {
  std::mutex mutex;
  std::list<std::string> temporary;
  std::vector<int> groups;
  std::vector<std::pair<std::string, bool>> outputs;  // whether it is whole
};

// Never destroyed: the thread may need it while the program ends.
Lists& lists() {
  static auto* const all = new Lists;
  return *all;
}

// Somebody may still be writing there, until the folder is gone. A file or an empty folder goes where no descriptor is
// left to look into it.
void remove(const std::string& path) {
  constexpr int kMostTries = 100;
  if (std::remove(path.c_str()) == 0) return;
  std::error_code error;
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    fs::remove_all(path, error);
    if (!error) return;
  }
}

bool is_inside(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

void remove_temporary(const Lists& all) {
  for (const std::string& path : all.temporary) remove(path);
}

SignalCleanup clean_up(const Lists& all) {
  for (const int leader : all.groups) ::kill(-leader, SIGKILL);
  remove_temporary(all);
  SignalCleanup left;
  std::error_code unknown;
  for (const auto& [path, is_whole] : all.outputs) {
    if (fs::is_regular_file(path, unknown)) (is_whole ? left.whole : left.unfinished).push_back(path);
  }
  return left;
}

std::string listed(const std::vector<std::string>& files) {
  constexpr size_t kMostNamed = 4;
  const size_t count = files.size() > kMostNamed ? kMostNamed - 1 : files.size();
  const std::string names =
      fmt::format("'{}'", fmt::join(files.begin(), files.begin() + static_cast<int>(count), "', '"));
  return count == files.size() ? names : fmt::format("{} and {} more files", names, files.size() - count);
}

int ending_signals[2] = {-1, -1};  // a pipe from the handler to the thread

void tell_signal(int number) {
  const auto byte = static_cast<char>(number);
  if (::write(ending_signals[1], &byte, 1) != 1) ::_exit(128 + number);
}

struct sigaction earlier_at_bus {};
std::atomic<const char*> lost_file{nullptr};

// The thread of the fault waits here for the end: it holds no lock that the cleanup needs, since it was only reading.
void tell_bus(int number, siginfo_t* info, void* /*context*/) {
  const bool is_fault = info->si_code > 0;
  const char* const path = is_fault ? MappedAddresses::path_at(info->si_addr) : nullptr;
  if (path == nullptr) {
    ::sigaction(number, &earlier_at_bus, nullptr);  // a fault comes again
    if (!is_fault) ::raise(number);
    return;
  }
  lost_file = path;
  tell_signal(number);
  while (true) ::pause();
}

void catch_bus() {
  struct sigaction action {};
  action.sa_sigaction = tell_bus;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &earlier_at_bus);
}

}  // namespace

TemporaryPath::TemporaryPath(std::string path, Held /*lists*/) : path_(std::move(path)) {
  lists().temporary.push_back(path_);
}

TemporaryPath::TemporaryPath(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(lists().mutex);
  lists().temporary.push_back(path_);
}

Result<std::unique_ptr<TemporaryPath>> TemporaryPath::make_folder(std::string_view name) {
  std::error_code error;
  const fs::path given(name);
  const fs::path base = given.is_absolute() ? fs::path() : fs::temp_directory_path(error);
  if (error)
    return io_error(fmt::format("no folder for temporary files: {}; set TMPDIR to one that is there", error.message()));
  std::string path = (base / given).string() + "-XXXXXX";
  // Held, so that a signal finds the folder in the list or stops the process before there is one.
  const std::lock_guard lock(lists().mutex);
  if (::mkdtemp(path.data()) == nullptr)
    return io_error(fmt::format("cannot create a folder in '{}': {}; it must be one that can be written",
                                fs::path(path).parent_path().string(), std::strerror(errno)));
  return std::unique_ptr<TemporaryPath>(new TemporaryPath(std::move(path), Held{}));
}

TemporaryPath::~TemporaryPath() {
  if (is_kept_) return;
  remove(path_);
  keep();
  const std::lock_guard lock(lists().mutex);
  std::erase_if(lists().outputs, [&](const auto& output) { return is_inside(output.first, path_); });
}

void TemporaryPath::forget(Held /*lists*/) {
  auto& temporary = lists().temporary;
  if (const auto found = std::ranges::find(temporary, path_); found != temporary.end()) temporary.erase(found);
}

void TemporaryPath::keep() {
  const std::lock_guard lock(lists().mutex);
  forget(Held{});
  is_kept_ = true;
}

// Held, so that a signal finds the file by the name that it has.
bool TemporaryPath::move_to(const std::string& path, bool is_kept) {
  const std::lock_guard lock(lists().mutex);
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  forget(Held{});
  path_ = path;
  is_kept_ = is_kept;
  if (!is_kept) lists().temporary.push_back(path_);
  return true;
}

OwnedProcessGroup::OwnedProcessGroup(int leader) : leader_(leader) {
  const std::lock_guard lock(lists().mutex);
  lists().groups.push_back(leader);
}

OwnedProcessGroup::~OwnedProcessGroup() {
  const std::lock_guard lock(lists().mutex);
  std::erase(lists().groups, leader_);
}

void note_output(const std::string& path, bool is_whole) {
  const std::lock_guard lock(lists().mutex);
  auto& outputs = lists().outputs;
  const auto found = std::ranges::find(outputs, path, [](const auto& output) { return output.first; });
  found == outputs.end() ? static_cast<void>(outputs.emplace_back(path, is_whole))
                         : static_cast<void>(found->second = is_whole);
}

void forget_output(const std::string& path) {
  const std::lock_guard lock(lists().mutex);
  std::erase_if(lists().outputs, [&](const auto& output) { return output.first == path; });
}

void stop_where_ending() { const std::lock_guard lock(lists().mutex); }

std::string to_string(const SignalCleanup& left) {
  if (left.whole.empty() && left.unfinished.empty()) return "nothing was written";
  std::string text = "kept ";
  if (!left.whole.empty()) text += listed(left.whole);
  if (!left.unfinished.empty()) {
    text += fmt::format("{}{}, unfinished: what had been written can be read", left.whole.empty() ? "" : " and ",
                        listed(left.unfinished));
  }
  return text;
}

Error lost_file_error(const SignalCleanup& left) {
  return io_error(fmt::format(
      "'{}' lost bytes while it was in use: another process cut it, or its disk failed; {}; run the command "
      "again when nothing writes to that file",
      left.lost_file, to_string(left)));
}

void clean_up_at_signals(std::function<void(int signal, const SignalCleanup& left)> last_words) {
  if (::pipe2(ending_signals, O_CLOEXEC) != 0) return;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = tell_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
  catch_bus();
  std::thread([last_words = std::move(last_words)] {
    char number = 0;
    if (::read(ending_signals[0], &number, 1) != 1) return;
    // Held to the end: whoever makes something new, or meets that something is gone, waits for it.
    const std::lock_guard lock(lists().mutex);
    SignalCleanup left = clean_up(lists());
    if (number == SIGBUS) left.lost_file = lost_file.load();
    if (last_words) last_words(number, left);
    ::signal(number, SIG_DFL);
    remove_temporary(lists());  // a folder may have been made anew meanwhile
    if (number == SIGBUS) ::_exit(exit_code(ErrorCode::io));
    ::raise(number);
  }).detach();
}

namespace {

void (*report_exhaustion)(const Error&) = nullptr;
std::terminate_handler earlier_terminate = nullptr;
std::atomic_flag is_ending;
thread_local bool ends_here = false;

std::optional<Error> exhaustion_error() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return out_of_memory("the system has no more memory for this program");
  } catch (const std::length_error&) {
    return out_of_memory("a table would have more entries than memory can hold");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return out_of_memory("the system starts no more threads for this program; raise its limit or give --threads 1");
  } catch (...) {
    return std::nullopt;
  }
  return std::nullopt;
}

void end_exhausted() {
  if (ends_here) ::_exit(exit_code(ErrorCode::out_of_memory));  // not even the report has memory
  ends_here = true;
  while (is_ending.test_and_set()) ::pause();  // another thread ends the process
  const auto error = exhaustion_error();
  if (!error.has_value()) return earlier_terminate();
  if (const std::unique_lock lock(lists().mutex, std::try_to_lock); lock.owns_lock())
    static_cast<void>(clean_up(lists()));
  report_exhaustion(*error);
  ::_exit(exit_code(error->code));
}

}  // namespace

void clean_up_at_exhaustion(void (*report)(const Error& error)) {
  report_exhaustion = report;
  earlier_terminate = std::set_terminate(end_exhausted);
}

}  // namespace parallax
