#include "profile/function_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/text.h"
#include "profile/function_name.h"

namespace culprit {

namespace {

constexpr std::array<std::string_view, kFunctionKinds> kKindNames = {
    "other",          "gpu_compute",  "gpu_comm",        "gpu_memcpy_h2d", "gpu_memcpy_d2h", "gpu_memcpy_d2d",
    "gpu_memcpy_p2p", "gpu_memcpy",   "gpu_memset",      "gpu_annotation", "cuda_api",       "sync",
    "cpu_op",         "annotation",   "python",          "oncpu",          "runq",           "blocked",
    "syscall_memory", "syscall_file", "syscall_network", "syscall_wait",   "syscall_other",  "overhead"};

constexpr std::array<std::string_view, kKernelFamilies> kFamilyNames = {
    "other",    "gemm",        "attention", "elementwise", "reduce",        "norm",          "softmax",
    "copy",     "convolution", "sort_scan", "embedding",   "optimizer",     "communication", "moe",
    "sampling", "rope",        "quantize",  "pooling",     "linear_algebra"};

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

std::string lower(std::string_view text) {
  constexpr std::size_t kLooksAt = 8192;
  return to_lower(text.substr(0, kLooksAt));
}

/// `text` is lower case.
bool matches(std::string_view text, std::string_view pattern) {
  const bool anchored = pattern.starts_with('^');
  const bool at_word = pattern.starts_with('<');
  if (anchored || at_word) pattern.remove_prefix(1);
  std::size_t from = 0;
  for (bool first = true; !pattern.empty() || first; first = false) {
    const std::size_t star = pattern.find('*');
    const std::string_view piece = pattern.substr(0, star);
    if (first && anchored) {
      if (!text.starts_with(piece)) return false;
      from = piece.size();
    } else {
      std::size_t hit = text.find(piece, from);
      while (first && at_word && hit != std::string_view::npos && hit > 0 && is_lower(text[hit - 1]))
        hit = text.find(piece, hit + 1);
      if (hit == std::string_view::npos) return false;
      from = hit + piece.size();
    }
    if (star == std::string_view::npos) break;
    pattern.remove_prefix(star + 1);
  }
  return true;
}

KernelFamily family_at(std::size_t row) {
  const auto rows = function_kind_table::families();
  return row < rows.size() ? rows[row].family : KernelFamily::other;
}

}  // namespace

std::string_view to_string(FunctionKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
std::string_view to_string(KernelFamily family) { return kFamilyNames[static_cast<std::size_t>(family)]; }

std::optional<FunctionKind> parse_function_kind(std::string_view text) {
  const auto* it = std::ranges::find(kKindNames, text);
  if (it == kKindNames.end()) return std::nullopt;
  return static_cast<FunctionKind>(it - kKindNames.begin());
}

namespace function_kind_table {

std::size_t deciding_family_row(std::string_view kernel_name) {
  const auto rows = families();
  const std::string stem = lower(short_name(kernel_name));
  const std::string full = lower(demangle(kernel_name));
  const auto* const it = std::ranges::find_if(rows.data(), rows.data() + rows.size(), [&](const FamilyRow& row) {
    return matches(row.scope == Scope::stem ? stem : full, row.pattern);
  });
  return static_cast<std::size_t>(it - rows.data());
}

std::size_t deciding_kind_row(SliceClass slice_class, std::string_view name) {
  const auto rows = kinds();
  const std::string text = lower(name);
  const auto* const it = std::ranges::find_if(rows.data(), rows.data() + rows.size(), [&](const KindRow& row) {
    return row.slice_class == slice_class && matches(text, row.pattern);
  });
  return static_cast<std::size_t>(it - rows.data());
}

}  // namespace function_kind_table

KernelFamily family_of(std::string_view kernel_name) {
  return family_at(function_kind_table::deciding_family_row(kernel_name));
}

FunctionKind kind_of(SliceClass slice_class, std::string_view name) {
  const auto rows = function_kind_table::kinds();
  const std::size_t row = function_kind_table::deciding_kind_row(slice_class, name);
  if (row < rows.size()) return rows[row].kind;
  switch (slice_class) {
    case SliceClass::kernel:
      return family_of(name) == KernelFamily::communication ? FunctionKind::gpu_comm : FunctionKind::gpu_compute;
    case SliceClass::memcpy:
      return FunctionKind::gpu_memcpy_other;
    case SliceClass::memset:
      return FunctionKind::gpu_memset;
    case SliceClass::runtime:
    case SliceClass::driver:
      return FunctionKind::cuda_api;
    case SliceClass::cpu_op:
      return FunctionKind::cpu_op;
    case SliceClass::annotation:
      return FunctionKind::annotation;
    case SliceClass::gpu_annotation:
      return FunctionKind::gpu_annotation;
    case SliceClass::python:
      return FunctionKind::python;
    case SliceClass::gpu_sync:
      return FunctionKind::sync;
    case SliceClass::overhead:
      return FunctionKind::overhead;
    case SliceClass::syscall:
      return FunctionKind::syscall_other;
    case SliceClass::os_sched:
    case SliceClass::counter_range:
    case SliceClass::other:
      break;
  }
  return FunctionKind::other;
}

bool is_gpu_kind(FunctionKind kind) { return kind >= FunctionKind::gpu_compute && kind <= FunctionKind::gpu_memset; }

}  // namespace culprit
