// Who ran beside the program: programs, threads of the kernel, which work for somebody, and who comes and goes.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "diagnose/cpu.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

using model::Verdict;

namespace {

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "md0_raid1", "md127_resync".
bool is_of_raid(std::string_view name) {
  constexpr std::array<std::string_view, 4> kWork = {"raid", "resync", "reshape", "cluster"};
  if (!name.starts_with("md")) return false;
  const std::size_t end = name.find('_');
  if (end == std::string_view::npos || end == 2 || !is_number(name.substr(2, end - 2))) return false;
  name.remove_prefix(end + 1);
  return std::ranges::any_of(
      kWork, [&](std::string_view work) { return name.starts_with(work) && is_number(name.substr(work.size())); });
}

}  // namespace

bool is_kernel_thread(std::string_view name) {
  constexpr auto kBegins = std::to_array<std::string_view>({"kworker/",
                                                            "ksoftirqd/",
                                                            "migration/",
                                                            "rcub/",
                                                            "rcuc/",
                                                            "rcuog/",
                                                            "rcuop/",
                                                            "rcuos/",
                                                            "rcu_exp_gp_kthread_worker/",
                                                            "rcu_exp_par_gp_kthread_worker/",
                                                            "irq/",
                                                            "cpuhp/",
                                                            "ktimers/",
                                                            "idle_inject/",
                                                            "watchdog/",
                                                            "napi/",
                                                            "backlog_napi/",
                                                            "jbd2/",
                                                            "xfsaild/",
                                                            "xfs-cil/",
                                                            "xfs-conv/",
                                                            "xfs-buf/",
                                                            "kdmflush/",
                                                            "dmcrypt_write/"});
  constexpr auto kWhole = std::to_array<std::string_view>({"khugepaged",
                                                           "ksmd",
                                                           "kthreadd",
                                                           "kdevtmpfs",
                                                           "kauditd",
                                                           "khungtaskd",
                                                           "oom_reaper",
                                                           "kdmflush",
                                                           "dmcrypt_write",
                                                           "usb-storage",
                                                           "nfsd",
                                                           "nvme-wq",
                                                           "nvme-reset-wq",
                                                           "txg_sync",
                                                           "txg_quiesce",
                                                           "z_wr_iss",
                                                           "z_wr_iss_h",
                                                           "z_wr_int",
                                                           "z_wr_int_h",
                                                           "z_rd_iss",
                                                           "z_rd_int",
                                                           "arc_evict",
                                                           "arc_prune",
                                                           "arc_reap",
                                                           "arc_reclaim",
                                                           "dbu_evict",
                                                           "dbuf_evict",
                                                           "btrfs-cleaner",
                                                           "btrfs-transaction",
                                                           "btrfs-worker",
                                                           "btrfs-worker-high",
                                                           "btrfs-delalloc",
                                                           "btrfs-delayed-meta",
                                                           "btrfs-compressed-write",
                                                           "btrfs-endio",
                                                           "btrfs-endio-meta",
                                                           "btrfs-endio-write",
                                                           "btrfs-endio-raid56",
                                                           "btrfs-endio-repair",
                                                           "ext4-rsv-conversion",
                                                           "pool_workqueue_release",
                                                           "rcu_preempt",
                                                           "rcu_sched",
                                                           "rcu_bh",
                                                           "rcu_gp",
                                                           "rcu_par_gp",
                                                           "rcu_tasks",
                                                           "rcu_tasks_kthread",
                                                           "rcu_tasks_rude_kthread",
                                                           "rcu_tasks_trace_kthread",
                                                           "rcu_exp_gp_kthread_worker",
                                                           "rcu_exp_par_gp_kthread_worker"});
  constexpr auto kNumbered = std::to_array<std::string_view>(
      {"kswapd", "kcompactd", "kdamond.", "scsi_eh_", "loop", "z_wr_iss_", "z_wr_int_", "z_rd_iss_", "z_rd_int_"});
  constexpr std::size_t kCut = 15;  // characters that a kernel may leave of a name
  // As ps shows them: "[kswapd0]".
  if (name.starts_with('[')) name.remove_prefix(1);
  if (name.ends_with(']')) name.remove_suffix(1);
  const auto is_whole = [&](std::string_view whole) { return name == whole || name == whole.substr(0, kCut); };
  const auto is_numbered = [&](std::string_view begin) {
    return name.size() > begin.size() && name.starts_with(begin) && is_number(name.substr(begin.size()));
  };
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(kWhole, is_whole) || std::ranges::any_of(kNumbered, is_numbered) || is_of_raid(name);
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

std::optional<ShortPrograms> short_programs(const Evidence& evidence) {
  constexpr double kManyForks = 20;  // per second
  const auto behind = evidence.behind_others();
  if (behind && behind->rise() < kSomeOfThem * queue_rise(evidence)) return std::nullopt;
  const auto started = evidence.counter("host.cpu.forks");
  const auto others = evidence.counter("host.cpu.others");
  if (!started || !others || started->rise() < kManyForks || started->ratio() < kFarMore) return std::nullopt;
  ShortPrograms found{*others, *started};
  for (const model::HostChange& change : evidence.comparison().host->beside) {
    found.cpus.with -= change.value[evidence.side()].value_or(0);
    found.cpus.without -= change.value[1 - evidence.side()].value_or(0);
  }
  found.cpus.without = std::max(0.0, found.cpus.without);
  return found.cpus.rise() >= kManyOthers ? std::optional(found) : std::nullopt;
}

std::string started_text(const ShortPrograms& programs) {
  return fmt::format("Programs that end at once took {} CPUs; {} processes and threads a second were started",
                     instead_number(programs.cpus), instead_number(programs.started));
}

void comes_and_goes(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kLittle = 0.05;  // of what it waited longer: they are there for a part of the time only
  const auto& host = evidence.comparison().host;
  if (!host || !host->bursts || host->bursts->side != evidence.side()) return;
  if (!felt_queue(evidence) || has_detail(verdicts, "other_processes")) return;
  const model::Bursts& bursts = *host->bursts;
  Verdict verdict = cpu_verdict(evidence, "other_processes", 0.8);
  // Of units of work several are done at once, and how long one takes is not how often they come.
  verdict.impact_ns =
      evidence.comparison().work ? queue_rise(evidence) : bursts.of_steps * (bursts.step_ns[1] - bursts.step_ns[0]);
  verdict.evidence = {
      fmt::format("Programs that were not recorded came and went: for {:.0f} % of the time they had {} instead of {} "
                  "CPUs, and a {} came every {} then and every {} else",
                  bursts.of_time * 100, short_number(bursts.cpus[1]), short_number(bursts.cpus[0]), evidence.repeats(),
                  format_duration(bursts.step_ns[1]), format_duration(bursts.step_ns[0]))};
  if (std::string rival = first_rival(evidence, kLittle, true); !rival.empty())
    verdict.evidence.push_back(std::move(rival));
  verdict.evidence.push_back(queue_text(evidence));
  verdict.next_step = kWhoHadThem;
  verdicts.push_back(std::move(verdict));
}

}  // namespace culprit::diagnose
