#include "record/bpf/kernel_layout.h"

#include <bpf/btf.h>

#include <string_view>

namespace culprit::record::bpf {

namespace {

constexpr int kDeepest = 8;  // structures in structures

std::string_view name_of(const btf* kernel, std::uint32_t offset) {
  const char* name = btf__name_by_offset(kernel, offset);
  return name != nullptr ? name : "";
}

const btf_type* type_of(const btf* kernel, std::uint32_t id) {
  const btf_type* type = btf__type_by_id(kernel, id);
  for (int i = 0; i < kDeepest && type != nullptr && (btf_is_mod(type) || btf_is_typedef(type)); ++i)
    type = btf__type_by_id(kernel, type->type);
  return type;
}

/// Bytes from the begin of a structure to a member, which may be one of an unnamed structure in it.
std::optional<std::int64_t> offset_of(const btf* kernel, const btf_type* type, std::string_view member, int depth = 0) {
  if (type == nullptr || !btf_is_composite(type) || depth == kDeepest) return std::nullopt;
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const std::int64_t at = btf_member_bit_offset(type, i) / 8;
    const std::string_view name = name_of(kernel, members[i].name_off);
    if (name == member) return at;
    if (!name.empty()) continue;
    if (const auto inner = offset_of(kernel, type_of(kernel, members[i].type), member, depth + 1)) return at + *inner;
  }
  return std::nullopt;
}

bool has_member(const btf* kernel, const char* structure, std::string_view member) {
  const int id = btf__find_by_name_kind(kernel, structure, BTF_KIND_STRUCT);
  return id > 0 && offset_of(kernel, btf__type_by_id(kernel, static_cast<std::uint32_t>(id)), member).has_value();
}

}  // namespace

bool switch_has_state(const btf* kernel) {
  const int id = btf__find_by_name_kind(kernel, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
  if (id < 0) return false;
  const btf_type* type = btf__type_by_id(kernel, static_cast<std::uint32_t>(id));
  type = btf__type_by_id(kernel, type->type);                       // pointer
  if (type != nullptr) type = btf__type_by_id(kernel, type->type);  // function
  return type != nullptr && btf_kind(type) == BTF_KIND_FUNC_PROTO && btf_vlen(type) >= 5;
}

bool has_tracepoint(const btf* kernel, const char* type_name) {
  return btf__find_by_name_kind(kernel, type_name, BTF_KIND_TYPEDEF) > 0;
}

std::optional<std::int64_t> preempt_count_from_run_queue(const btf* kernel) {
  if (!has_member(kernel, "sched_entity", "cfs_rq") || !has_member(kernel, "cfs_rq", "rq")) return std::nullopt;
  const int id = btf__find_by_name_kind(kernel, ".data..percpu", BTF_KIND_DATASEC);
  if (id <= 0) return std::nullopt;
  const btf_type* section = btf__type_by_id(kernel, static_cast<std::uint32_t>(id));
  const btf_var_secinfo* variables = btf_var_secinfos(section);
  std::optional<std::int64_t> queue;
  std::optional<std::int64_t> count;
  for (std::uint32_t i = 0; i < btf_vlen(section); ++i) {
    const btf_type* variable = btf__type_by_id(kernel, variables[i].type);
    if (variable == nullptr) continue;
    const std::string_view name = name_of(kernel, variable->name_off);
    const std::int64_t at = variables[i].offset;
    if (name == "runqueues") queue = at;
    if (name == "__preempt_count") count = at;
    if (name == "pcpu_hot")  // Linux 6.2 to 6.14
      if (const auto inner = offset_of(kernel, type_of(kernel, variable->type), "preempt_count")) count = at + *inner;
  }
  return queue && count ? std::optional(*count - *queue) : std::nullopt;
}

}  // namespace culprit::record::bpf
