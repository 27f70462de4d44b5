// Who ran beside the program: programs, and threads of the kernel, which work for somebody.
#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/cpu.h"

namespace culprit::diagnose {

bool is_kernel_thread(std::string_view name) {
  constexpr auto kBegins = std::to_array<std::string_view>(
      {"kworker/",     "ksoftirqd/",   "migration/",    "rcu_",          "rcub/",
       "rcuc/",        "rcuog/",       "rcuop/",        "rcuos/",        "irq/",
       "cpuhp/",       "idle_inject/", "watchdog/",     "napi/",         "jbd2/",
       "ext4-rsv-",    "xfsaild/",     "scsi_eh_",      "dmcrypt_write", "kdmflush",
       "kswapd",       "kcompactd",    "khugepaged",    "ksmd",          "kthreadd",
       "kdevtmpfs",    "kauditd",      "khungtaskd",    "oom_reaper",    "kdamond.",
       "txg_sync",     "z_wr_",        "z_rd_",         "btrfs-cleaner", "btrfs-endio",
       "btrfs-worker", "btrfs-delall", "btrfs-transac", "btrfs-compr",   "pool_workqueue_",
       "usb-storage"});
  // As ps shows them: "[kswapd0]".
  if (name.starts_with('[')) name.remove_prefix(1);
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); });
}

MoreBeside more_beside(const Evidence& evidence) {
  constexpr double kGone = 0.02;  // CPUs: as Evidence::more_others() has it
  MoreBeside more;
  double programs = evidence.more_others();
  double kernel = 0;
  for (Beside& one : evidence.more_beside()) {
    if (!is_kernel_thread(one.name)) {
      more.programs.push_back(std::move(one));
      continue;
    }
    kernel += one.cpus.rise();
    more.kernel.push_back(std::move(one));
  }
  programs -= kernel;
  if (const auto& host = evidence.comparison().host)
    for (const model::HostChange& change : host->beside) {
      const double with = change.value[evidence.side()].value_or(0);
      const double without = change.value[1 - evidence.side()].value_or(0);
      if (is_kernel_thread(change.what) && with < kGone && with < without) programs += without - with;
    }
  more.cpus = programs < kFewOthers ? programs : programs + std::min(kernel, programs);
  return more;
}

}  // namespace culprit::diagnose
