// SPDX-License-Identifier: Apache-2.0
// .npz files: zip archives of .npy files, through libzip.
#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/output_file.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/dump/tensor_files/npy_header.h"

namespace parallax {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr zip_int64_t kMaxEntries = 1000000;
constexpr zip_uint64_t kMaxDeflateRatio = 1032;  // what deflate can reach: 258 bytes for two bits

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Error zip_failure(const std::string& action, zip_error_t* error) {
  Error failure = corrupt_file(action + ": " + zip_error_strerror(error));
  zip_error_fini(error);
  return failure;
}

Result<Archive> open_archive(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return corrupt_file(
        "it is empty; it must be a .npz archive");  // libzip would take it for an archive without entries
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return zip_failure("it cannot be read", &error);
  Archive archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    return zip_failure("it is no zip archive", &error);
  }
  zip_error_fini(&error);
  return archive;
}

// The whole entry, decompressed; libzip holds it against its CRC at the end.
Result<Tensor> read_entry(zip_t* archive, zip_uint64_t index, const zip_stat_t& info) {
  const std::unique_ptr<zip_file_t, CloseEntry> file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return corrupt_file(zip_strerror(archive));
  const auto size = static_cast<int64_t>(info.size);
  Tensor buffer = PX_TRY(Tensor::allocate(DType::uint8, Shape{size}));
  zip_uint64_t filled = 0;
  while (true) {
    std::byte beyond{};
    std::byte* target = filled < info.size ? buffer.mutable_data() + filled : &beyond;
    const zip_int64_t count = zip_fread(file.get(), target, filled < info.size ? info.size - filled : 1);
    if (count < 0) return corrupt_file(zip_file_strerror(file.get()));
    if (count == 0) break;
    filled += static_cast<zip_uint64_t>(count);
    if (filled > info.size) return corrupt_file("it is longer than the archive says; both sizes must agree");
  }
  if (filled != info.size) return corrupt_file("it is shorter than the archive says; both sizes must agree");
  return buffer;
}

Status check_entry(const zip_stat_t& info) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((info.valid & kNeeded) != kNeeded)
    return corrupt_file("the archive does not describe it; it must give name, sizes and method of each entry");
  if (info.encryption_method != ZIP_EM_NONE) return unsupported("it is encrypted; save it without a password");
  const bool is_deflated = info.comp_method == ZIP_CM_DEFLATE;
  if (!is_deflated && info.comp_method != ZIP_CM_STORE)
    return unsupported(fmt::format("compression method {} is not one that numpy writes; it must be stored or deflated",
                                   info.comp_method));
  const zip_uint64_t most = is_deflated ? info.comp_size * kMaxDeflateRatio + 64 : info.comp_size;
  if (info.comp_size > (zip_uint64_t{1} << 50) || info.size > most)
    return corrupt_file("its size cannot come from its compressed bytes");
  return {};
}

// The head and the elements one after the other, without a copy.
zip_source_t* source_of(zip_t* archive, dump::NpyFile& file) {
  // libzip's type is for owned bytes as well; these it does not free.
  auto* head = reinterpret_cast<zip_uint8_t*>(file.head.data());
  auto* data = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(file.tensor_data.data()));
  const zip_buffer_fragment_t fragments[] = {{head, file.head.size()}, {data, file.tensor_data.size()}};
  return zip_source_buffer_fragment(archive, fragments, file.tensor_data.empty() ? 1 : 2, 0);
}

}  // namespace

Result<std::vector<NamedValue>> parse_npz(std::span<const std::byte> bytes) {
  const Archive archive = PX_TRY(open_archive(bytes));
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count > kMaxEntries)
    return corrupt_file(fmt::format("it holds {} entries; it must hold at most {}", count, kMaxEntries));
  std::vector<NamedValue> values;
  std::set<std::string> names;
  for (zip_int64_t index = 0; index < count; ++index) {
    zip_stat_t info;
    zip_stat_init(&info);
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(index), 0, &info) != 0)
      return corrupt_file(zip_strerror(archive.get()));
    PX_TRY_CONTEXT(fmt::format("entry {}", index), check_entry(info));
    std::string name = info.name;
    const std::string context = "entry '" + name + "'";
    if (!name.ends_with(kEnding)) return corrupt_file(context + " is no .npy file; all entries must be");
    name.resize(name.size() - kEnding.size());
    if (!names.insert(name).second) return corrupt_file(context + " stands twice; each name must stand once");
    const Tensor buffer = PX_TRY_CONTEXT(context, read_entry(archive.get(), static_cast<zip_uint64_t>(index), info));
    const std::span contents(static_cast<const std::byte*>(buffer.view().data), buffer.size_bytes());
    Tensor tensor = PX_TRY_CONTEXT(context, parse_npy(contents, buffer.storage()));
    values.push_back({name, std::move(tensor)});
  }
  return values;
}

Result<std::vector<NamedValue>> read_npz(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto reserved = PX_TRY(MemoryBudget::reserve(static_cast<int64_t>(file->bytes().size()), "'" + path + "'"));
  return PX_TRY_CONTEXT("'" + path + "'", parse_npz(file->bytes()));
}

namespace {

// The commands of a source by which libzip writes to a file of ours. Nothing is read from it.
zip_int64_t write_archive(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& file = *static_cast<OutputFile*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT: {
      auto& info = *static_cast<zip_stat_t*>(data);
      zip_stat_init(&info);
      info.size = 0;
      info.valid = ZIP_STAT_SIZE;
      return sizeof info;
    }
    case ZIP_SOURCE_ERROR: {
      const int errors[2] = {ZIP_ER_WRITE, errno};
      std::memcpy(data, errors, sizeof errors);
      return sizeof errors;
    }
    case ZIP_SOURCE_WRITE:
      return file.write({static_cast<const char*>(data), length}).ok() ? static_cast<zip_int64_t>(length) : -1;
    case ZIP_SOURCE_TELL_WRITE:
      return ::lseek(file.descriptor(), 0, SEEK_CUR);
    case ZIP_SOURCE_SEEK_WRITE: {
      const auto& seek = *static_cast<const zip_source_args_seek_t*>(data);
      return ::lseek(file.descriptor(), static_cast<off_t>(seek.offset), seek.whence) < 0 ? -1 : 0;
    }
    default:  // opening, committing and freeing: the file's owner does it
      return 0;
  }
}

}  // namespace

Status write_npz(const std::string& path, std::span<const NamedValue> values) {
  const std::string context = "'" + path + "'";
  std::vector<dump::NpyFile> files;  // must live until the archive is closed
  for (const NamedValue& value : values) {
    if (!value.value.is_tensor())
      return unsupported(context + ": value '" + value.name + "' is no tensor; only tensors can be written");
    files.push_back(PX_TRY_CONTEXT(context + ": value '" + value.name + "'", dump::make_npy(value.value.tensor())));
  }
  const auto file = PX_TRY(OutputFile::create(path));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const target = zip_source_function_create(write_archive, file.get(), &error);
  if (target == nullptr) return io_error(zip_failure("cannot create " + context, &error).message);
  Archive archive(zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error));
  if (archive == nullptr) {
    zip_source_free(target);
    return io_error(zip_failure("cannot create " + context, &error).message);
  }
  zip_error_fini(&error);
  for (size_t index = 0; index < files.size(); ++index) {
    zip_source_t* source = source_of(archive.get(), files[index]);
    const std::string name = values[index].name + std::string(kEnding);
    const zip_int64_t added =
        source == nullptr ? -1 : zip_file_add(archive.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (added < 0) {
      zip_source_free(source);
      return io_error("cannot add '" + name + "' to " + context + ": " + zip_strerror(archive.get()));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(added), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) return io_error("cannot write " + context + ": " + zip_strerror(archive.get()));
  static_cast<void>(archive.release());
  return file->finish();
}

}  // namespace parallax
