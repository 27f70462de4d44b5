#include "record/bpf/call_links.h"

#include <bpf/libbpf.h>

#include <atomic>
#include <system_error>

#include "record/collector/collector.h"

namespace culprit::record::bpf {

void CallLinks::destroy() const {
  bpf_link__destroy(enter);
  bpf_link__destroy(exit);
}

std::future<CallLinks> attach_calls(bpf_program* enter, bpf_program* exit, std::uint32_t& uncounted) {
  const auto attach = [enter, exit, &uncounted] {
    CallLinks links;
    if (exit != nullptr) links.exit = bpf_program__attach(exit);
    links.enter = bpf_program__attach(enter);
    if (links.enter == nullptr) return links;
    std::atomic_ref<std::uint32_t>(uncounted).store(0);
    links.at = monotonic_now();
    return links;
  };
  try {
    return std::async(std::launch::async, attach);
  } catch (const std::system_error&) {
    std::promise<CallLinks> attached;
    attached.set_value(attach());
    return attached.get_future();
  }
}

}  // namespace culprit::record::bpf
