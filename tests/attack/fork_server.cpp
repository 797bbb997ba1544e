// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that forks a program before its main() for each run asked for, so that what loading and
// constructors cost, most of a short run under AddressSanitizer, is paid once.
//
// ATTACK_SERVER   two descriptors, 'IN OUT'. IN brings a run as its number of bytes, uint32, then its texts, each ended
//                 by a zero byte: folder, file of stdout, file of stderr, 'NAME=VALUE' for the environment or an
//                 empty text, argv[1] and so on. OUT gets the child's process number, then its wait status, a line
//                 each. The end of IN ends the server. Without the variable the program runs as ever.
#include <cstdint>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Main = int (*)(int, char**, char**);
using StartMain = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);

Main program_main = nullptr;
constexpr size_t kTextsBeforeArguments = 4;

bool read_all(int file, void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = ::read(file, static_cast<char*>(bytes) + done, size - done);
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

/// The texts of the next run; empty at the end of the input.
std::vector<std::string> next_run(int input) {
  uint32_t size = 0;
  if (!read_all(input, &size, sizeof size)) return {};
  std::string bytes(size, '\0');
  if (!read_all(input, bytes.data(), size)) return {};
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < size;) {
    const size_t end = bytes.find('\0', begin);
    texts.push_back(bytes.substr(begin, end - begin));
    begin = end == std::string::npos ? size : end + 1;
  }
  return texts;
}

bool replace_descriptor(int descriptor, const char* path, int flags) {
  const int file = ::open(path, flags, 0600);
  return file >= 0 && ::dup2(file, descriptor) >= 0 && (file == descriptor || ::close(file) == 0);
}

/// The child's part: it becomes what a shell would have started, and enters the program.
int run_child(char* name, const std::vector<std::string>& texts) {
  constexpr int kWritten = O_WRONLY | O_CREAT | O_TRUNC;
  if (::setsid() < 0 || ::chdir(texts[0].c_str()) != 0 || !replace_descriptor(STDIN_FILENO, "/dev/null", O_RDONLY) ||
      !replace_descriptor(STDOUT_FILENO, texts[1].c_str(), kWritten) ||
      !replace_descriptor(STDERR_FILENO, texts[2].c_str(), kWritten))
    ::_exit(127);
  std::vector<std::string> kept = texts;  // lives as long as the program does: this frame is below main()
  if (const size_t equals = kept[3].find('='); equals != std::string::npos)
    ::setenv(kept[3].substr(0, equals).c_str(), kept[3].c_str() + equals + 1, 1);
  std::vector<char*> arguments = {name};
  for (size_t index = kTextsBeforeArguments; index < kept.size(); ++index) arguments.push_back(kept[index].data());
  const int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  return program_main(count, arguments.data(), environ);
}

int serve(int argc, char** argv, char** variables) {
  int in = -1, out = -1;
  const char* server = getenv("ATTACK_SERVER");
  if (server == nullptr || sscanf(server, "%d %d", &in, &out) != 2) return program_main(argc, argv, variables);
  ::unsetenv("ATTACK_SERVER");
  ::unsetenv("LD_PRELOAD");
  while (true) {
    const std::vector<std::string> texts = next_run(in);
    if (texts.size() < kTextsBeforeArguments) return 0;
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(in);
      ::close(out);
      return run_child(argv[0], texts);
    }
    int status = 127 << 8;
    ::dprintf(out, "%d\n", static_cast<int>(child));
    if (child > 0) ::waitpid(child, &status, 0);
    ::dprintf(out, "%d\n", status);
  }
}

}  // namespace

extern "C" int __libc_start_main(Main entry, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack_end) {
  program_main = entry;
  const auto real = reinterpret_cast<StartMain>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(serve, argc, argv, init, fini, loader_fini, stack_end);
}
