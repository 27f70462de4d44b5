// The CPUs of the host: what each did, how many tasks wanted one, how fast they ran.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Clock ticks of a CPU since boot, in the order of /proc/stat; guest time is contained in user and nice.
enum CpuState : std::uint8_t { kUser, kNice, kSystem, kIdle, kIowait, kIrq, kSoftirq, kSteal, kCpuStates };
using CpuTicks = std::array<std::uint64_t, kCpuStates>;

/// /proc/stat. Lines that are not understood are left out.
struct CpuStat {
  std::vector<std::pair<int, CpuTicks>> cores;
  std::optional<std::uint64_t> switches;
  std::optional<std::uint64_t> forks;
  std::optional<std::uint64_t> running;
  std::optional<std::uint64_t> blocked;
};
void parse_cpu_stat(std::string_view text, CpuStat& stat);

/// Samples CPUs. Fractions of one interval sum to 1 per core.
class CpuSampler {
 public:
  explicit CpuSampler(const std::string& root);

  void sample(Ns now, Emitter& emitter);
  /// Frequencies of a tenth of the cores; ten calls see all.
  void sample_frequencies(Ns now, Emitter& emitter);
  /// CPUs' worth of time used by everybody in the last interval, and when that began. nullopt: not known yet.
  struct Used {
    double cores = 0;
    Ns begin = 0;
  };
  [[nodiscard]] const std::optional<Used>& used() const { return used_; }
  void sights(std::vector<Sight>& out) const;

 private:
  struct Core {
    std::optional<CpuTicks> last{};
    Ns at = 0;
    std::array<Track, 8> tracks{};
    std::uint64_t round = 0;
  };
  struct Frequency {
    Track track;
    KernelFile file;  ///< closed: the frequency stands in cpuinfo
  };
  static std::array<Track, 8> tracks_of(const std::string& prefix);
  void sample_cpuinfo(Ns now, Emitter& emitter);

  std::string root_;
  KernelFile stat_file_;
  std::vector<char> buffer_;
  CpuStat stat_;
  std::map<int, Core> cores_;
  std::uint64_t round_ = 0;
  std::array<Track, 8> host_;
  std::optional<Used> used_;
  Track used_track_;
  RateTrack switches_;
  RateTrack forks_;
  Track running_;
  Track blocked_;
  std::map<int, Frequency> frequencies_;
  bool cpufreq_ = false;
  bool cpuinfo_mhz_ = false;
  std::size_t next_frequency_ = 0;
  std::uint64_t frequency_calls_ = 0;
};

}  // namespace culprit::record
