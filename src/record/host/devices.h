// Devices of the host: disks, network interfaces, temperatures, power.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/host/tracks.h"

namespace culprit::record {

/// Whole disks that have ever been used.
class DiskSampler {
 public:
  explicit DiskSampler(const std::string& root);
  void sample(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Disk {
    bool whole = false;
    RateTrack read, written, reads, writes, busy, queue;
  };
  Disk& disk_of(std::string_view name);

  std::string root_;
  KernelFile file_;
  std::vector<char> buffer_;
  std::map<std::string, Disk, std::less<>> disks_;
};

/// Interfaces of the network namespace that the recorder is in, and TCP as a whole.
class NetworkSampler {
 public:
  explicit NetworkSampler(const std::string& root);
  void sample(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Interface {
    RateTrack received, sent, receive_drops, send_drops, errors;
  };
  KernelFile devices_;
  KernelFile snmp_;
  std::vector<char> buffer_;
  std::map<std::string, Interface, std::less<>> interfaces_;
  RateTrack retransmits_;
  RateTrack segments_;
};

/// Temperatures (hwmon, else thermal zones) and energy counters (RAPL).
class SensorSampler {
 public:
  explicit SensorSampler(const std::string& root);
  void sample(Ns now, Emitter& emitter);
  void sights(std::vector<Sight>& out) const;

 private:
  struct Temperature {
    Track track;
    KernelFile file;
  };
  struct Energy {
    RateTrack track;
    KernelFile file;
    std::uint64_t wraps_at = 0;
  };
  std::vector<char> buffer_;
  std::vector<Temperature> temperatures_;
  std::vector<Energy> energies_;
  std::string energy_trouble_;
};

}  // namespace culprit::record
