#include "record/bpf/program_info.h"

#include <bpf/bpf.h>

#include <string_view>

namespace culprit::record::bpf {

bpf_prog_info info_of(const bpf_program* program) {
  bpf_prog_info info{};
  __u32 size = sizeof info;
  const int fd = bpf_program__fd(program);
  if (fd >= 0) static_cast<void>(bpf_obj_get_info_by_fd(fd, &info, &size));
  return info;
}

void add_left_out(culprit_losses& losses, const bpf_object* programs) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, programs) {
    const std::string_view section = bpf_program__section_name(program);
    (section == "tp_btf/sys_enter"          ? losses.totals_missed
     : section == "tp_btf/sys_exit"         ? losses.times_missed
     : section.starts_with("tp_btf/block_") ? losses.requests_missed
                                            : losses.ring_full_sched) += info_of(program).recursion_misses;
  }
}

}  // namespace culprit::record::bpf
