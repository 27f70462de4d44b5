// What a named thing that takes time is: the kind decides in which part of a ledger its time stands, the family says
// what a kernel computes. Both depend on the name (and the class of its category) alone and are computed once per name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trace/trace.h"

namespace culprit {

enum class FunctionKind : std::uint8_t {
  other,
  gpu_compute,
  gpu_comm,  ///< collectives, point-to-point and device-initiated communication kernels
  gpu_memcpy_h2d,
  gpu_memcpy_d2h,
  gpu_memcpy_d2d,
  gpu_memcpy_p2p,
  gpu_memcpy_other,  ///< a copy whose direction the name does not tell
  gpu_memset,
  gpu_annotation,  ///< a range on a GPU track: a shadow of host annotations, no work of its own
  cuda_api,        ///< runtime or driver call of CUDA, HIP and their kin that does not wait
  sync,            ///< a call or record that waits for the GPU
  cpu_op,
  annotation,
  python,
  oncpu,
  runq,
  blocked,  ///< neither running nor runnable, by the scheduler's account
  syscall_memory,
  syscall_file,
  syscall_network,
  syscall_wait,  ///< waits by design: futex, poll, sleep
  syscall_other,
  overhead,  ///< the profiler's own time
  count_
};
inline constexpr std::size_t kFunctionKinds = static_cast<std::size_t>(FunctionKind::count_);

/// What a GPU kernel does.
enum class KernelFamily : std::uint8_t {
  other,
  gemm,
  attention,
  elementwise,
  reduce,
  norm,
  softmax,
  copy,  ///< copy, cast, concatenate, transpose, fill
  convolution,
  sort_scan,  ///< sort, scan, selection, search
  embedding,  ///< embedding, gather, scatter, indexing, KV cache writes
  optimizer,
  communication,
  moe,
  sampling,  ///< token sampling and random numbers
  rope,
  quantize,
  pooling,         ///< pooling, upsampling, resampling
  linear_algebra,  ///< factorisations, solves, FFT
  count_
};
inline constexpr std::size_t kKernelFamilies = static_cast<std::size_t>(KernelFamily::count_);

std::string_view to_string(FunctionKind kind);
std::string_view to_string(KernelFamily family);
/// The inverse of to_string; nullopt for an unknown text.
std::optional<FunctionKind> parse_function_kind(std::string_view text);

/// The kind of a function from the class of its category and its name. Looks at the first 8 KiB of the name only.
FunctionKind kind_of(SliceClass slice_class, std::string_view name);

/// What the GPU kernel of that name computes. Looks at the first 8 KiB of the name only.
KernelFamily family_of(std::string_view kernel_name);

/// True for work of a GPU that counts as GPU time.
bool is_gpu_kind(FunctionKind kind);

namespace function_kind_table {

/// What a pattern is looked for in.
enum class Scope : std::uint8_t {
  stem,  ///< the short name of the function: no template arguments, no parameters
  full,  ///< the whole demangled name
};

/// One row. The first row that matches decides. A pattern is lower case; `*` stands for any text, a leading `^` for the
/// beginning of the name, a leading `<` for a place where no letter stands before; everything else is literal.
struct FamilyRow {
  KernelFamily family;
  Scope scope;
  std::string_view pattern;
  std::string_view examples[3];  ///< names that this row decides
};

struct KindRow {
  SliceClass slice_class;
  FunctionKind kind;
  std::string_view pattern;
  std::string_view examples[3];
};

std::span<const FamilyRow> families();
std::span<const KindRow> kinds();

/// Row of families() that decides the name, or families().size().
std::size_t deciding_family_row(std::string_view kernel_name);
/// Row of kinds() that decides the name, or kinds().size().
std::size_t deciding_kind_row(SliceClass slice_class, std::string_view name);

}  // namespace function_kind_table

}  // namespace culprit
